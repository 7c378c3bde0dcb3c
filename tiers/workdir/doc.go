// Package workdir creates, protects and removes the work directory of a run.
//
//	paths.go    CheckPath, DefaultCacheDir: allowed paths
//	workdir.go  Dir: Open, Remove
//	marker.go   the file that marks a directory as the suite's, and its lock
//	files.go    the names of the run's files, and the walk that counts and removes them
//	removal.go  the progress of the removal
//
// Three mechanisms keep a user's files safe, also when SIGKILL ends a run at any point:
//
//   - A marker is written before the first file and removed after the last one. A directory with files
//     but without the marker is refused. A lock on the marker keeps other runs out; the kernel releases
//     it when the process ends.
//   - Only regular files are removed whose paths below the directory match the names that the suite
//     gives.
//   - Only empty directories are removed that have the sticky bit. The system call that creates the
//     suite's directories sets it, so that even an empty one is recognised after a kill.
//
// Tests here recover each state in which a kill can leave a directory; benchmarks/e2e kills runs at
// random. Both compare whole trees.
package workdir
