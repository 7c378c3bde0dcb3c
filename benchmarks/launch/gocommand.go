//go:build !darwin

package launch

// IsGoCommand tells whether a process is the go command. Where there is no /proc none is, and no
// run ends with its parent.
func IsGoCommand(pid int) bool { return proc("/proc").isGoCommand(pid) }
