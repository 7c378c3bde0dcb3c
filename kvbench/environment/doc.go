// Package environment describes the machine, the directory and the program of a run in the form of
// a result.
//
//	environment.go  Read: the machine, the mount of a directory, the block devices behind it
//	version.go      Version: the revision from the linker, from the Go command's VCS stamp, or of the
//	                checkout
//
// Package host reads a machine's properties, and package result defines the fields of a result.
// This package converts from host to result. kvreport discover uses it to describe a machine
// without a run.
//
// No function returns an error. A value that cannot be read is empty or null, never 0. All
// functions are safe for concurrent use.
package environment
