package privtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Server is a process that serves a filesystem over FUSE: a device's file, or a directory.
type Server struct {
	pid        int
	connection string // the kernel's number of the mount
}

// Hang makes it accept requests and complete none, until Answer or the end of the test. When Hang
// returns, earlier completions may still be on their way to the callers.
func (s *Server) Hang(t testing.TB) {
	t.Helper()
	if err := syscall.Kill(s.pid, syscall.SIGSTOP); err != nil {
		t.Fatalf("stop the process that serves the filesystem: %v", err)
	}
	// Unmounting and detaching at the end needs completions.
	t.Cleanup(func() { _ = syscall.Kill(s.pid, syscall.SIGCONT) })
	for stopped := false; !stopped; time.Sleep(time.Millisecond) {
		// The state follows the name, which is in brackets and may hold anything.
		stat := readLine(fmt.Sprintf("/proc/%d/stat", s.pid))
		stopped = strings.HasPrefix(stat[strings.LastIndexByte(stat, ')')+1:], " T")
	}
}

// Answer ends what Hang began.
func (s *Server) Answer(t testing.TB) {
	t.Helper()
	if err := syscall.Kill(s.pid, syscall.SIGCONT); err != nil {
		t.Fatalf("let the process that serves the filesystem go on: %v", err)
	}
}

// Abort ends the connection to the server: requests in flight and all later ones fail. An administrator
// does this to a server that does not recover.
func (s *Server) Abort(t testing.TB) {
	t.Helper()
	control := t.TempDir()
	Need(t, unix.Mount("fusectl", control, "fusectl", 0, ""))
	t.Cleanup(func() { _ = unix.Unmount(control, 0) })
	err := os.WriteFile(filepath.Join(control, s.connection, "abort"), []byte("1"), 0o200)
	if err != nil {
		t.Fatalf("abort the connection of the filesystem: %v", err)
	}
}

// Freeze blocks all writes to the filesystem until thaw is called, or until the end of the test.
func (l *Loop) Freeze(t testing.TB) (thaw func()) {
	t.Helper()
	// From linux/fs.h; a frozen filesystem can still be opened.
	const freeze, unfreeze = 0xc0045877, 0xc0045878
	control := func(request uint) error {
		fd, err := unix.Open(l.Dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.IoctlSetInt(fd, request, 0)
	}
	if err := control(freeze); err != nil {
		t.Fatalf("freeze %s: %v", l.Dir, err)
	}
	thaw = sync.OnceFunc(func() {
		if err := control(unfreeze); err != nil {
			t.Errorf("thaw %s: %v", l.Dir, err)
		}
	})
	t.Cleanup(thaw)
	return thaw
}
