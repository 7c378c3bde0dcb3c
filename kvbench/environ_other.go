//go:build !darwin

package kvbench

// systemEnvironment has nothing to add to /proc and /sys.
func systemEnvironment(*Environment) {}
