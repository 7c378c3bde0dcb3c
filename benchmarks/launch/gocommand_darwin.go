package launch

import "golang.org/x/sys/unix"

// IsGoCommand tells whether a process is the go command.
func IsGoCommand(pid int) bool {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && unix.ByteSliceToString(p.Proc.P_comm[:]) == "go"
}
