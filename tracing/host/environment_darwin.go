package host

import "golang.org/x/sys/unix"

// systemEnvironment fills in what macOS keeps in sysctl instead of /proc.
func systemEnvironment(e *Environment) {
	e.Kernel, _ = unix.Sysctl("kern.osrelease")
	e.CPUModel, _ = unix.Sysctl("machdep.cpu.brand_string")
	e.MemoryBytes, _ = physicalMemory()
}
