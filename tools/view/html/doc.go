// Package html is the page of kvreport html: results as one self-contained file, without a script,
// that asks no network for anything.
//
//	page.go         the template and what it calls
//	page.html.tmpl  the page; style.css: light, dark and print
//	svg.go          charts as SVG: scales, legend
//	draw.go         axes, ticks, lines and bars of a chart
//
// Colours are CSS variables of the page (--c0 … --c7, --ink, --muted, --grid), so that light, dark
// and print need one drawing. They are told apart without telling red from green; with one run a
// colour is that of what is shown, with several that of the run. Every axis has a label with its
// unit.
//
// The page is opened from disk, from mail and from artifacts of jobs: a policy in its head forbids
// whatever a name in the input might smuggle in, and html/template escapes all of it.
package html
