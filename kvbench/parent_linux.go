package kvbench

// isGoCommand tells whether a process is the go command.
func isGoCommand(pid int) bool { return machine{}.isGoCommand(pid) }
