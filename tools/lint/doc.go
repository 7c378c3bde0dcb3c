// Package lint checks rules of the source layout as tests; it has no code of its own.
//
//	imports_test.go   which package may import which: one table
//	files_test.go     the size of files
package lint
