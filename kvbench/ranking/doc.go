// Package ranking sets what -bench Engines has measured side by side into one table.
//
//	ranking.go  Rank: results → rows, in which order, and which places their trials leave open
//	reasons.go  what the traces of a run say of each row, and in what a row differs from the next
//	text.go     the table and the sentences below it
//
// A row is what was swept as an engine or a layout. Its value is found tokens per second: tokens of
// prompts that were found, and so need not be computed, ÷ the window. A fast storage with few hits
// has few of them, and many hits on a slow one, too. Rows stand in the order of their medians.
//
// That is an order of what was measured. Which of it is more than chance the trials have to show:
// every pair of rows is compared as a gate compares two sides, within rounds that went there and
// back (see package contrast), two-sided, and the p values of all pairs are corrected together. The
// places of a row are those that the pairs shown leave open: the first is one more than the rows
// shown to be better, the last one less than all that are not shown to be worse.
package ranking
