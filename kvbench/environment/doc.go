// Package environment describes the machine, the directory and the program of a run as results do.
//
//	environment.go  Read: the machine, the mount of a directory, the block devices behind it
//	version.go      Version: the revision as linked in, as stamped by the Go command, or of the
//	                checkout
//
// Package host reads a machine's properties, and package result has the fields for readers. This
// package converts one to the other, because a result is read on other machines, and kvreport
// discover describes a machine without a run.
//
// Nothing fails: an unreadable value is unknown, which is empty or null, never 0. All functions may
// be called from any goroutine.
package environment
