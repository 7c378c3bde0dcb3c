//go:build !darwin

package benchmarks

// isGoCommand reports whether a process is the go command. Where there is no /proc none is, and no
// run ends with its parent.
func isGoCommand(pid int) bool { return proc("/proc").isGoCommand(pid) }
