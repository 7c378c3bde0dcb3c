// Package contrast sets the trials of two sides against each other: whether they differ by more
// than chance, by how much at least, and which difference would have been seen.
//
//	contrast.go      Contrast: two sides compared by ranks, within turns: exact p values
//	sight.go         Sight: how large a loss is, at least, and which one would have been seen
//	significance.go  Holm's correction, how many trials are needed
//
// Nothing is assumed of the distributions. Each side may take its trials in turns with the other:
// then trials of one turn alone are compared. All values are moved by the median of their turn and
// ranked together (the aligned ranks of Hodges and Lehmann, 1962), and the p value is the share of
// all ways to deal the ranks of each turn out to its sides that are as extreme. It is exact if
// trials within a turn could have been exchanged, whatever turns differ by. Without turns it is the
// test of Mann and Whitney. Three samples a side can never differ significantly: the most extreme
// of the 20 ways to deal them out has p = 0.1.
//
// Where several claims are judged together, their p values are corrected by Holm's method.
package contrast
