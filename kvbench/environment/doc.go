// Package environment describes the machine and the directory of a run as results do.
//
//	environment.go  Read: the machine, the mount of a directory, the block devices behind it
//
// Package host knows what can be asked of a machine, package result how a reader is told. This one
// stands between them, because a result is read where no machine can be asked, and kvreport
// discover describes one without a run.
//
// Nothing fails: what cannot be read is unknown, which is empty or null, never 0. All functions may
// be called from any goroutine.
package environment
