// Package xlsx is the workbook of kvreport xlsx: results as a spreadsheet with native charts.
//
//	workbook.go  Write: the sheets from the first to the last
//	columns.go   the columns of Summary; columns.txt lists them
//	parts.go     sheets of what only some results have, from package view
//	charts.go    what the charts show
//	draw.go      a chart and its data on their sheets
//	sheet.go     cells, styles, tables
//
// Summary has a row for each result. Its first 99 columns are those of the Python benchmark's
// sheet, by the same titles and in the same order, so that what people have built on that sheet
// works on this one. Ours follow behind them.
//
// Units stand in the heads and values are numbers, so that a reader can go on reckoning. An empty
// cell is a value that nobody knows; a 0 was measured. Shares are fractions that are shown in per
// cent.
//
// Charts stand on a sheet of their own with their data on another: a chart that refers to the rows
// of Summary would break when somebody sorts them. Programs differ in how wide they lay out a
// chart, so that each fits a page with room to spare.
//
// A book keeps its first error and does nothing after it. It is made by one goroutine.
package xlsx
