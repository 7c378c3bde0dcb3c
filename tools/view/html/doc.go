// Package html is the page of kvreport html: results as one self-contained file, without a script,
// that asks no network for anything.
//
//	page.go         the template and what it calls
//	page.html.tmpl  the page; style.css: light, dark and print
//	svg.go          charts as SVG
//	draw.go         axes, ticks, lines and bars of a chart
//
// Colours are CSS variables of the page (--c0 … --c7, --ink, --muted, --grid), so that light, dark
// and print need one drawing. Every axis has a label with its unit.
package html
