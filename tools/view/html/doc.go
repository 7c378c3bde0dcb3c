// Package html is the page of kvreport html: results as one self-contained file that asks no
// network for anything.
//
//	page.go         the templates and what they call; the policy of the page
//	page.html.tmpl  the page; single.html.tmpl: one of facts, figures and tables that compares no
//	                results; style.css: light, dark and print
//	chart.svg.tmpl  a chart as SVG
//	draw.go         where lines, bars and legend of a chart stand
//	live.go         the numbers that the script draws a chart from
//	scale.go        values to positions: ranges and ticks
//	script.js       zoom, values under the pointer, choosing runs, sorting tables
//	uplot/          the library that draws for the script: uPlot 1.6.32 (MIT), as released
//
// Everything is there without a script: drawings, tables, and what a drawing tells in a title where
// somebody points. The script puts a chart that can be moved in the place of each drawing when it
// comes near, from numbers that stand beside the drawing; printed is the drawing. It knows nothing
// of what is shown: a new figure is made in package view, and has all of it.
//
// Colours are CSS variables of the page (--c0 … --c11, --ink, --muted, --grid), so that light, dark
// and print need one drawing. They are told apart without telling red from green; with one run a
// colour is that of what is shown, with several that of the run. Nobody tells twelve colours apart:
// each run has a number, too, which stands at its lines and before its name. What belongs to a run
// (a row, a column, a line) has it as data-run, by which it is hidden.
//
// A drawing is 480 units wide and 316 high, and grows with its legend; text stays readable down to
// three quarters of that. Coordinates have one decimal: a tenth of a unit is finer than any screen.
// Every axis has a label with its unit.
//
// Captions stand outside of the drawings, so that a reader can search and translate them, and in
// them for readers who hear the page.
//
// Ranges are fitted to the data, but for axes that begin at 0 because lengths are compared, and
// shares, which end at 1. Ticks are round numbers; on logarithmic axes decades, with 2 and 5 where
// there are few.
//
// Golden files hold the page as text and one page as it is; the text is what a reader without eyes
// for graphics gets, and shows what a change means. Another test opens the page in Chromium, moves
// a mouse over it, and finds nothing on its console.
//
// The page is opened from disk, from mail and from artifacts of jobs: a policy in its head names
// its own scripts by their hashes and forbids whatever else a name in the input might smuggle in,
// and html/template escapes all of it.
package html
