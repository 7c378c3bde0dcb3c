package benchmarks

// isGoCommand tells whether a process is the go command.
func isGoCommand(pid int) bool { return proc("/proc").isGoCommand(pid) }
