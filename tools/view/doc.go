// Package view is the model of a report: what is shown of results, in which words, for the page and
// for the workbook.
//
//	answer.go      how runs differ, in a sentence each; the scale of the headlines
//	report.go      Report, the page from the top; what could not be made; Page: one of facts,
//	               figures and tables that compares no results
//	runs.go        what ran: facts of each run, its warnings
//	tiers.go       the tiers next to each other
//	sweeps.go      a swept parameter as curves, with the load that reaches 90 % of the maximum; the
//	               curves of a knee
//	benchmarks.go  each benchmark: the sections of its results, next to each other for several runs
//	figures.go     series over time, percentile curves, loading a prompt compared with computing it
//	traces.go      what the kernel saw: octaves, and percentiles as tables
//	trials.go      which trial stands for a run; names of benchmarks and tiers
//	cells.go       what the cells of tables read: values, medians, changes
//	chart.go       Chart: axes, lines, bars
//
// Everything is decided here and in package report, but the drawing: what a reader sees in one
// document he finds in the other under the same name. The sections of package report are the facts
// and tables of one result, for text, page and workbook.
//
// Rules that all documents share stand in one place each. The trial that stands for a run, the one
// whose headline is nearest to the median, is report.Typical's: sections and what happened over
// time are its, because the mean of several trials shows stalls that none of them had at that time.
// Distributions are of all trials together, because rare values need many samples. Trials that
// failed have no values (package load) and are counted by name (package stats). A percentile of
// too few samples is unknown (result.Supported).
//
// A prediction never looks like a measurement: simulated benchmarks have names of their own, and
// every figure of theirs says SIMULATED, since figures are cut out and passed on.
//
// A page answers, from the top: whether runs differ, and which number of each benchmark to quote;
// what ran, in what the runs differ, and what is wrong with it; what each tier can do alone; at
// which load a sweep bends; and for each benchmark what only it has, what its tiers held and moved,
// and its figures:
//
//	rate, p99 by depth     where more requests in flight bring nothing but waiting
//	rounds, hit ratios     what an autoscaler did, what a cache missed that it could have hit
//	bandwidth over time    stalls, warm-up that was too short, a drive whose cache is full
//	latency                percentile curves up to the last that ten values lie beyond
//	fill                   since when the tiers were full, and what was evicted since
//	block requests         sizes, depths and times as the kernel saw them
//	all metrics            every metric with interval and change, folded away
//
// Names of things are those of the result file's keys where it has them, and of the benchmark's
// line elsewhere: read-B/s is "read bandwidth" in every table, and its unit stands below it in
// small.
//
// Which trials are shown together is not decided here: package stats gathers them by benchmark and
// run, and says where two runs cannot be compared. Here such a change is shown as "not comparable",
// with the reason, in the place of a percentage.
//
// The top of the page lists what could not be made, with the first reason: a page without figures,
// for example because the result files are missing, must not look like a page of a run that
// measured nothing. Warnings of a run's results are listed once each; those that differ only in
// numbers are combined.
//
// Colours are numbers. With one run a colour is a quantity; with several runs a colour is a run,
// and dashes distinguish the quantities: a reader who compares drives looks for one drive. Each
// line or row has its run (Run, from 1), so that a reader can hide runs.
//
// Text is formatted by package units, with three significant digits and binary units: more digits
// than the interval allows would be a claim.
//
// What is not known is a dash, never 0. A table without a number has no row, and a chart without
// one is not drawn. Nothing here keeps state; a Report is made and shown by one goroutine.
//
// This package is large because all that a report says is decided in it once, each figure as
// data, so that page and workbook cannot differ; what draws them has packages of its own.
package view
