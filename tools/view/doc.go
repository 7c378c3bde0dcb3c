// Package view is the content of a report of results, for the page and for the workbook.
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
// This package and package report decide what is shown; the documents only draw it. A number has the
// same name in the page and in the workbook. The sections of package report are the facts and tables of
// one result, for text, page and workbook.
//
// Rules that all documents share are in one place. The trial that represents a run is the trial whose
// headline is nearest to the median (report.Typical). Sections and figures over time show this trial,
// because the mean of several trials shows stalls that no trial had at that time. Distributions cover
// all trials, because rare values need many samples. Failed trials have no values (package load) and are
// counted by name (package stats). A percentile of too few samples is unknown (result.Supported).
//
// A simulation never looks like a measurement: simulated benchmarks have their own names, and the title
// of each of their figures says SIMULATED, because readers copy figures.
//
// From the top, a page shows: how the runs differ, and which number of each benchmark to quote; what
// ran, which settings differ, and which warnings there are; each tier alone; the load at which a sweep
// bends; and for each benchmark its own sections, the contents and traffic of its tiers, and its
// figures:
//
//	rate, p99 by depth     the depth above which only the latency grows
//	rounds, hit ratios     the autoscaler's rounds; the hit ratio next to the ideal one
//	bandwidth over time    stalls, a warm-up that was too short, a drive with a full write cache
//	latency                percentile curves up to the last percentile with ten larger values
//	fill                   when the tiers were full, and how much was evicted
//	block requests         sizes, depths and times as the kernel saw them
//	all metrics            every metric with interval and change, folded away
//
// Names are the keys of the result file if it has the value, otherwise the units of the benchmark line.
// read-B/s is "read bandwidth" in every table, with the unit below it.
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
// Package units formats values with three significant digits and binary units. More digits would claim
// more than the confidence interval allows.
//
// An unknown value is a dash, never 0. A table row without a number and a chart without a number are
// left out. The package has no state; one goroutine makes and shows a Report.
//
// The package is large because it decides each fact and each figure once, as data, so that page and
// workbook cannot differ. Other packages draw.
package view
