package e2e

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/kvbench/result"
)

// refuseEnv makes a process of this test's binary become what its arguments say, under a filter
// that refuses io_uring as that of Docker does.
const refuseEnv = "KVTEST_REFUSE_IO_URING"

func init() {
	if os.Getenv(refuseEnv) == "" {
		return
	}
	runtime.LockOSThread() // the filter is the thread's, and that of what it becomes
	err := refuse(unix.SYS_IO_URING_SETUP)
	if err == nil {
		err = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "run", os.Args[1:], "without io_uring:", err)
	os.Exit(1)
}

// refuse lets a system call of this thread fail with EPERM from now on.
func refuse(number uint32) error {
	const load, jumpEqual, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS,
		unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load}, // the number of the call, which is first of what a filter sees
		{Code: jumpEqual, K: number, Jf: 1},
		{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}

// TestTheResultNamesTheEngine: with -io-engine it is that one or the run fails. Else it is one that
// works, with the reason why it is not io_uring.
func TestTheResultNamesTheEngine(t *testing.T) {
	t.Parallel()
	run := func(refused bool, args ...string) (outcome, *bench) {
		b := newBench(t)
		if refused {
			self, err := os.Executable()
			require.NoError(t, err)
			b.command = []string{self, binary(t), "-test.run=^$"}
			b.env = append(b.env, refuseEnv+"=1")
		}
		return b.run(append(append(b.places(), "-test.bench=StorageCeiling/op=read",
			"-storage-capacity-gb=0.125", "-test.benchtime=4x"), args...)...), b
	}
	engine := func(o outcome, b *bench) result.IO {
		require.Equal(t, 0, o.code, o.stdout+o.stderr)
		return theResult(t, b.results).IO
	}
	io := engine(run(false, "-io-engine=psync"))
	assert.Equal(t, "psync", io.Engine)
	assert.Empty(t, io.EngineReason)

	io = engine(run(true))
	assert.Equal(t, "psync", io.Engine)
	assert.Contains(t, io.EngineReason, "a seccomp filter, as Docker's, or a security module "+
		"refuses it: io_uring_setup: operation not permitted")

	o, _ := run(true, "-io-engine=uring")
	assert.Equal(t, exitFailed, o.code)
	assert.Contains(t, o.stdout, "-io-engine uring: a seccomp filter, as Docker's,")

	o, b := run(false, "-io-engine=uring")
	if o.code != 0 {
		require.Contains(t, o.stdout, "-io-engine uring: ")
		t.Skip("this system allows no io_uring: " + o.stdout)
	}
	io = engine(o, b)
	assert.Equal(t, "uring", io.Engine)
	assert.Regexp(t, `^io_uring, \d+ rings of 256, \w+`, io.EngineAbout)
	if io = engine(run(false)); io.Mode == "direct" {
		assert.Equal(t, "uring", io.Engine, "what plain I/O is measured with")
	}
}
