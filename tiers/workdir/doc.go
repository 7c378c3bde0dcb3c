// Package workdir makes, guards and removes the one directory in which a run works.
//
//	paths.go    where it may lie: CheckPath, DefaultCacheDir
//	workdir.go  Dir: Open, Close
//	marker.go   the file that says whose it is, and its lock
//	shared.go   Join: several processes of one run in one directory
//	files.go    the names of the run's files, and the removal of nothing else
//	removal.go  the progress of that
//
// Three things together keep a user's files safe, also when a run is killed with SIGKILL at any
// point: the marker, without which a directory that holds something is refused; the lock on it,
// which the kernel drops when its process ends; and names that only the suite gives. Tests kill
// runs at each state and at random and compare whole trees.
//
// A Dir is safe for concurrent use; Close comes last. Descriptors of the two-digit directories
// belong to it: users open files relative to them and close those.
package workdir
