// Package html is the page of kvreport html: results as one self-contained file that loads
// nothing from a network.
//
//	page.go         the templates and what they call; the policy of the page
//	page.html.tmpl  the page; single.html.tmpl: one of facts, figures and tables that compares no
//	                results; style.css: light, dark and print
//	script.js       charts, values under the pointer, choosing runs, sorting tables
//	uplot/          the library that draws: uPlot 1.6.32 (MIT), as released
//
// The script draws a chart when it comes near, from the JSON in its figure. Without a script the
// same numbers are in a table. Before printing the script draws all charts. The script knows
// nothing of what is shown: a new figure is made in package view.
//
// Colours are CSS variables of the page (--c0 … --c11, --ink, --muted, --grid) for light, dark and
// print. They differ without red against green; with one run a colour is one series, with several
// it is one run. Each run has a number, too, at its lines and before its name, because twelve
// colours are hard to tell apart. What belongs to a run (a row, a column, a line) has data-run, by
// which it is hidden.
//
// Ranges are fitted to the data, but for axes that begin at 0 because lengths are compared, and
// shares, which end at 1. Every axis has a label with its unit.
//
// Golden files hold the text of the page. One test opens the page in Chromium, moves a mouse over
// it, and finds nothing on its console.
//
// The page is opened from disk, from mail and from artifacts of jobs: a policy in its head names
// its own scripts by their hashes and forbids whatever else a name in the input might smuggle in,
// and html/template escapes all of it.
package html
