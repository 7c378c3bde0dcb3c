// Package lint holds the rules of this house as tests; it has no code of its own.
//
//	imports_test.go   which package may import which: the table, which climbs one way
//	files_test.go     sizes, columns, doc.go, comments, words that the field does not know, real time in tests
//	source_test.go    reads the whole module once, every platform and build tag
//	allowed_test.go   what does not hold yet, file by file; an entry that is not needed is an error, so it only shrinks
//
// Each message names the cure. Rules that a machine cannot judge (one concept per file, comments that say why) are not here.
package lint
