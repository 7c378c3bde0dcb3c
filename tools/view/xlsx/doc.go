// Package xlsx writes the workbook of kvreport xlsx: results as a spreadsheet with native charts.
//
//	workbook.go  Write: the sheets from the first to the last
//	columns.go   the columns of Summary; columns.txt lists them
//	charts.go    charts and their data on their sheets
//	sheet.go     cells, styles, tables
//
//	Summary              a row per result, 139 columns
//	Run Parameters       the parameters of the runs, one column per run
//	Performance Metrics  a row per metric: median, interval, spread, change, for each run
//	Facts                the lines of each result's summary, by section
//	Timeline             a row per interval of each result
//	Tiers, Latencies …   one sheet per section of the page with a table
//	Charts, Chart Data   native charts, and the numbers that they draw
//
// The first 99 columns of Summary have the titles and the order of the Python benchmark's sheet, so that
// formulas for that sheet work. kvbench's own columns follow.
//
// Heads have the units and cells are numbers, so that a reader can compute with them. An empty cell is
// an unknown value; a 0 was measured. Shares are fractions shown in per cent.
//
// The charts' data have a sheet of their own: a chart that refers to rows of Summary breaks when they
// are sorted. Programs draw charts in different widths, so a chart leaves space on its page.
//
// The benchmark's name of a simulated result says "(simulated)" on every sheet, so that a copied row keeps
// the mark.
//
// The charts are native, so that a reader can change them. There are at most ten: the first chart of each
// benchmark of the page, then the second of each. Line charts have named positions such as percentiles,
// scatter charts have a numeric axis. A chart has at most twelve series; a note below it says what is left
// out.
//
// Golden files hold all cells as text. Two workbooks of the same results may differ in bytes, because
// the library writes one part in map order.
//
// Each table has a filter, and its head stays on screen. A column fits its longest word, because
// programs wrap heads but not numbers. Each sheet prints in landscape with its head on each page,
// except Summary, which is too wide.
//
// Empty sheets are left out. The columns that name a row are at the left and stay on screen; in Summary
// these are the timestamp and the model, as in the Python benchmark's sheet.
//
// A book keeps its first error and writes nothing after it. One goroutine uses it.
package xlsx
