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
package view
