//go:build !darwin

package host

// systemEnvironment has nothing to add to /proc and /sys.
func systemEnvironment(*Environment) {}
