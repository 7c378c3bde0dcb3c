// Package lint holds the rules of this house as tests; it has no code of its own.
//
//	imports_test.go   which package may import which: the table, which climbs one way
//	files_test.go     sizes, columns, doc.go, comments, words of old, real time in tests
//	arrows_test.go    which way the files of one package use each other
//	source_test.go    reads the whole module once, every platform and build tag, and judges
//
// testdata/exceptions.txt is what does not hold yet, file by file; a line that is not needed is an
// error, so it only shrinks.
//
// Each message names the cure. Rules that a machine cannot judge (one concept per file, comments
// that say why) are not here.
package lint
