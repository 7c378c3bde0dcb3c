// Package tree reads a directory of results by option, trial and rank: who sums over ranks needs to
// know what is missing.
//
//	tree.go   Tree and its Files, each known by where it belongs; settings that differ part groups
//	parse.go  result files, ours and the Python benchmark's, with the line of what is wrong
//
// Results that were merged of several ranks are left aside: those they were made of stand beside
// them. Reading keeps nothing between calls.
package tree
