package benchmarks

import "golang.org/x/sys/unix"

// isGoCommand reports whether a process is the go command.
func isGoCommand(pid int) bool {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && unix.ByteSliceToString(p.Proc.P_comm[:]) == "go"
}
