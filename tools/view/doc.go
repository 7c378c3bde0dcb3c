// Package view is the model of a report: what is shown of results, in which words, for the page and
// for the workbook.
//
//	report.go      Report, the page from the top; Grid, its tables; what could not be made
//	runs.go        what ran: facts of each run, its warnings
//	headlines.go   one number of each benchmark, with interval and change
//	tiers.go       the tiers beside each other
//	sweeps.go      a swept parameter as curves with their knee
//	benchmarks.go  a section for each benchmark; which trial stands for a run
//	parts.go       what only some results have: tables for page and workbook
//	figures.go     series over time, percentile curves, octaves
//	chart.go       Chart: axes, lines, bars
//
// Everything is decided here but the drawing: what a reader sees in one document he finds in the
// other under the same name. The page has texts with units that suit the values; the workbook has
// numbers, whose units stand in the heads. A part says both, so that no number is in one of them
// only.
//
// What happened over time is shown of one trial, the one whose headline is the median: the mean of
// several trials shows stalls that none of them had at that time. Distributions are shown of all
// trials together, because rare values need many samples.
//
// A prediction never looks like a measurement: simulated benchmarks have names of their own, and
// every figure of theirs says SIMULATED, since figures are cut out and passed on.
//
// What is not known is a dash, never 0. A table without a number has no row, and a chart without
// one is not drawn. Nothing here keeps state; a Report is made and shown by one goroutine.
package view
