// Package html writes the page of kvreport html: one self-contained file that loads nothing from a
// network.
//
//	page.go         the templates and what they call; the policy of the page
//	page.html.tmpl  the page; single.html.tmpl: one of facts, figures and tables that compares no
//	                results; style.css: light, dark and print
//	script.js       charts, values under the pointer, choosing runs, sorting tables
//	uplot/          the library that draws: uPlot 1.6.32 (MIT), as released
//
// The script draws a chart when the reader scrolls near it, from the JSON in the figure, and all charts
// before printing. Without a script the same numbers are in a table. A new figure needs no change of the
// script: package view makes figures.
//
// Colours are CSS variables of the page (--c0 … --c11, --ink, --muted, --grid) for light, dark and
// print. They do not depend on red against green. With one run a colour is a series, with several runs
// a run. Each run also has a number at its lines and before its name, because twelve colours are hard
// to distinguish. Each row, column and line of a run has the attribute data-run, by which it is hidden.
//
// Ranges fit the data, except that axes of lengths begin at 0 and axes of shares end at 1. Every axis
// has a label with the unit.
//
// Golden files hold the page's text. One test opens the page in Chromium, moves the mouse over it, and
// checks that the console is empty.
//
// A reader opens the page from disk, from mail or from the artifacts of a CI job. So a policy in its
// head allows only the page's own scripts, by hash, and html/template escapes names in the input.
package html
