// Package view is the content of a report of results, for the page and for the workbook.
//
//	report.go      Report, the page from the top; what is missing; Page: one of facts, figures and
//	               tables that compares no results
//	answer.go      how runs differ, in a sentence each; the axes of the headlines
//	quote.go       Quote: what may be quoted of the runs, as text
//	runs.go        what ran: facts of each run, its warnings
//	sweeps.go      figures of several benchmarks: the tiers next to each other; a swept parameter as
//	               curves, with the load that reaches 90 % of the maximum
//	benchmarks.go  each benchmark: the sections of its results, next to each other for several runs;
//	               which trial stands for a run; names of benchmarks and tiers
//	figures.go     the table of figures: what each shows of a run, and on which axes
//	series.go      data of figures: histograms of all trials as percentile curves and octaves, histograms
//	               over time
//	timeline.go    series over time, as figures of the page and as a table of the workbook
//	engines.go     results of inference engines' own benchmarks, next to ours
//	cells.go       what the cells of tables read: values, medians, changes
//	chart.go       Chart: axes, lines, a heat map
//
// This package and package report decide what is shown; the documents only draw it. A number has the
// same name in the page and in the workbook. The sections of package report are the facts and tables of
// one result, for text, page and workbook. A new figure is a row of the table in figures.go.
//
// The trial that represents a run is the trial whose headline is nearest to the median (report.Typical).
// Sections and figures over time show this trial, because the mean of several trials shows stalls that
// no trial had at that time. Distributions cover all trials, because rare values need many samples.
// Failed trials have no values (package load) and are counted by name (package stats). A percentile of
// too few samples is unknown (result.Supported).
//
// A simulation never looks like a measurement: simulated benchmarks have their own names, and the title
// of each of their figures says SIMULATED, because readers copy figures.
//
// Package stats groups trials by benchmark and run, and says when two runs cannot be compared. Then
// the page shows "not comparable" with the reason instead of a change in per cent.
//
// The top of the page lists what is missing, with the first reason. A page without figures, because
// result files are missing, must not look like a run that measured nothing. Each warning of a run is
// listed once. Warnings that differ only in numbers are combined.
//
// With one run a colour is a quantity. With several runs a colour is a run and dashes distinguish the
// quantities. Each line and row has the number of its run (Run, from 1), so that a reader can hide runs.
//
// An unknown value is a dash, never 0. A table row without a number and a chart without a number are
// left out. The package has no state; one goroutine makes and shows a Report.
package view
