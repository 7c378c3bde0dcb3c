// Package html is the page of kvreport html: results as one self-contained file, without a script,
// that asks no network for anything.
//
//	page.go         the templates and what they call
//	page.html.tmpl  the page; single.html.tmpl: one of facts, figures and tables that compares no
//	                results; style.css: light, dark and print
//	chart.svg.tmpl  a chart as SVG
//	draw.go         where lines, bars and legend of a chart stand
//	scale.go        values to positions: ranges and ticks
//
// Colours are CSS variables of the page (--c0 … --c7, --ink, --muted, --grid), so that light, dark
// and print need one drawing. They are told apart without telling red from green; with one run a
// colour is that of what is shown, with several that of the run. Every axis has a label with its
// unit.
//
// A drawing is 480 units wide and 316 high, and grows with its legend; text stays readable down to
// three quarters of that. Coordinates have one decimal: a tenth of a unit is finer than any screen.
//
// Captions stand outside of the drawings, so that a reader can search and translate them, and in
// them for readers who hear the page.
//
// Ranges are fitted to the data, but for axes that begin at 0 because lengths are compared, and
// shares, which end at 1. Ticks are round numbers; on logarithmic axes decades, with 2 and 5 where
// there are few.
//
// Golden files hold the page as text and one page as it is; the text is what a reader without eyes
// for graphics gets, and shows what a change means.
//
// The page is opened from disk, from mail and from artifacts of jobs: a policy in its head forbids
// whatever a name in the input might smuggle in, and html/template escapes all of it.
package html
