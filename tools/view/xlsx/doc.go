// Package xlsx is the workbook of kvreport xlsx: results as a spreadsheet with native charts.
//
//	workbook.go  Write: the sheets from the first to the last
//	columns.go   the columns of Summary; columns.txt lists them
//	parts.go     sheets of the sections of package report; what happened in each interval;
//	             simulated rows
//	charts.go    charts and their data on their sheets
//	sheet.go     cells, styles, tables
//
//	Summary              a row for each result, 139 columns
//	Run Parameters       what the runs (arguments) were made with, side by side
//	Performance Metrics  a row for each metric: median, interval, spread, change, for each run
//	QoS Metrics          a row for each class of each result
//	Device Tracing       percentiles of the kernel's histograms
//	Trace Histograms     their buckets
//	Facts                the summary's lines of each result, by section
//	Simulation …         the summary's tables: a sheet for each section, a row for each of its rows
//	Timeline             what happened in each interval
//	Charts, Chart Data   native charts, and the numbers that they draw
//
// Summary has a row for each result. Its first 99 columns are those of the Python benchmark's
// sheet, by the same titles and in the same order, so that formulas for that sheet work on this
// one. Ours follow.
//
// Units stand in the heads and values are numbers, so that a reader can compute with them. An empty
// cell is an unknown value; a 0 was measured. Shares are fractions that are shown in per cent.
//
// Charts have a sheet of their own and their data another: a chart that refers to the rows of
// Summary would break when they are sorted. Programs differ in the width of a chart, so each leaves
// space on its page.
//
// Simulated results are coloured in Summary and named "(simulated)" on every sheet: a row that is
// copied into another workbook keeps the mark.
//
// Charts are those of package view with native series, so that a reader can change them. There are
// ten at most: first the comparison of all benchmarks, then charts of the page, one of each
// benchmark before the second. Their kinds follow the data: bars, which lie for long names; lines
// over named positions, such as percentiles; scatter charts over time. A chart has at most twelve
// series or forty bars; a note below the chart counts what it leaves out.
//
// Golden files hold all cells as text. The bytes of two workbooks of the same results may differ,
// since the library writes one part in the order of a map.
//
// The tables filter, and their heads stay on screen. Widths are those of the longest words, since
// programs wrap heads but not numbers. Every sheet prints in landscape with its head on each page;
// Summary, with 139 columns, is for screens.
//
// Empty sheets are left out. The names of the rows stand at the left of each sheet and stay on
// screen; in Summary these are the timestamp and the model, since its order is the Python
// benchmark's.
//
// A book keeps its first error and does nothing after it. It is made by one goroutine.
package xlsx
