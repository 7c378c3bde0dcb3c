// Package workdir creates, protects and removes the work directory of a run.
//
//	paths.go    CheckPath, DefaultCacheDir: allowed paths
//	workdir.go  Dir: Open, Close
//	marker.go   the file that marks a directory as the suite's, and its lock
//	shared.go   Join: several processes of one run in one directory
//	files.go    the names of the run's files, and their removal
//	removal.go  the progress of the removal
//
// Three mechanisms keep a user's files safe, also when SIGKILL ends a run at any point. A directory
// with files but without the marker is refused. The lock on the marker keeps other runs out; the
// kernel releases it when the process ends. The suite only removes files whose names it has given.
// Tests kill runs at each state and at random, and compare whole trees.
//
// A Dir is safe for concurrent use; Close must be the last call. The Dir owns the descriptors of the
// two-digit directories. Callers open files relative to them, and close these files.
package workdir
