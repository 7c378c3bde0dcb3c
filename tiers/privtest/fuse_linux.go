package privtest

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	nodes "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// FuseDir is a directory of a FUSE filesystem, for the duration of the test.
func FuseDir(t testing.TB) (dir string, server *Server) {
	t.Helper()
	base := newBase(t)
	Need(t, unix.Mount("tmpfs", memory(base), "tmpfs", 0, "size=2g"))
	server, err := startFuse(base, false, Times{})
	Need(t, err)
	return served(base), server
}

// Operations that HangOn delays.
const (
	Open      = "open"
	Create    = "create"
	Fallocate = "fallocate"
	Unlink    = "unlink"
)

// HangOn delays the named operations that begin from now on, until AnswerAll or the end of the test. The
// server completes all other operations.
func (s *Server) HangOn(t testing.TB, operations ...string) {
	t.Helper()
	t.Cleanup(func() { s.AnswerAll(t) }) // the unmount needs the server
	for _, name := range operations {
		if err := os.WriteFile(filepath.Join(s.hangs, name), nil, 0o600); err != nil {
			t.Fatalf("let %s hang: %v", name, err)
		}
	}
}

// AnswerAll ends what HangOn began.
func (s *Server) AnswerAll(t testing.TB) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.hangs, "*"))
	for _, name := range files {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		t.Errorf("let nothing hang any more: %v", err)
	}
}

// fuseEnv, a mirror as JSON, makes a process of the test's binary serve that mirror instead of
// running tests. In the test's own process its work would be measured with the test's, and a raw
// system call that waits for the mirror could keep the processor that the mirror needs.
const fuseEnv = "KVTEST_FUSE"

func init() {
	if text := os.Getenv(fuseEnv); text != "" {
		if err := serveFuse(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// startFuse starts a process that mirrors the memory of base in another directory. The process ends with
// the mount, or when this process ends, also while it is stopped.
func startFuse(base string, disk bool, times Times) (*Server, error) {
	m := &mirror{Memory: memory(base), Dir: served(base), Hangs: hangs(base), Disk: disk,
		Times: times}
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.Stderr = append(os.Environ(), fuseEnv+"="+string(text)), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	held, err := cmd.StdinPipe() // the thread that gets Pdeathsig may end before the process
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, fmt.Errorf("serve %s over FUSE: %w", m.Dir, cmp.Or(cmd.Wait(), err))
	}
	go func() {
		_ = cmd.Wait() // the filesystem is unmounted, however the process ended
		_ = held.Close()
	}()
	var st unix.Stat_t
	err = unix.Stat(m.Dir, &st)
	return &Server{pid: cmd.Process.Pid, connection: fmt.Sprint(unix.Minor(st.Dev)), hangs: m.Hangs},
		err
}

// serveFuse is that process. It prints a line when the mirror is mounted.
func serveFuse(text string) error {
	var m mirror
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return err
	}
	root, err := nodes.NewLoopbackRoot(m.Memory)
	if err != nil {
		return err
	}
	options := nodes.Options{MountOptions: fuse.MountOptions{
		FsName: "kvbench-fuse", DirectMountStrict: true, DisableSplice: true,
		// More concurrent requests than any test has, including asynchronous ones.
		MaxBackground: 1024, MaxWrite: 1 << 20, ExtraCapabilities: fuse.CAP_ASYNC_DIO,
		// With passthrough the kernel itself would read and write the files, and a stopped process would
		// delay nothing.
		DisabledCapabilities: fuse.CAP_PASSTHROUGH,
	}}
	m.RawFileSystem = nodes.NewNodeFS(root, &options)
	server, err := fuse.NewServer(&m, m.Dir, &options.MountOptions)
	if err != nil {
		return err
	}
	go server.Serve()
	if err := server.WaitMount(); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println("mounted")
	server.Wait()
	return nil
}

// mirror shows a directory and delays operations: by its times, and while a file with the name of
// the operation exists in Hangs. A loop device turns discards into holes punched into its file.
type mirror struct {
	fuse.RawFileSystem `json:"-"`
	Memory, Dir, Hangs string
	Disk               bool // its file is behind a loop device
	Times              Times
	hole               sync.RWMutex // held while a hole is punched: all other operations wait
}

func (m *mirror) await(operation string) {
	for {
		if _, err := os.Lstat(filepath.Join(m.Hangs, operation)); err != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// direct disables the page cache for a disk's file, so that all requests reach the mirror.
func (m *mirror) direct(out *fuse.OpenOut) {
	if m.Disk {
		out.OpenFlags |= fuse.FOPEN_DIRECT_IO | fuse.FOPEN_PARALLEL_DIRECT_WRITES
	}
}

func (m *mirror) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	m.await(Open)
	status := m.RawFileSystem.Open(cancel, in, out)
	m.direct(out)
	return status
}

func (m *mirror) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string,
	out *fuse.CreateOut) fuse.Status {
	m.await(Create)
	return m.RawFileSystem.Create(cancel, in, name, out)
}

func (m *mirror) Unlink(cancel <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	m.await(Unlink)
	return m.RawFileSystem.Unlink(cancel, in, name)
}

func (m *mirror) Read(cancel <-chan struct{}, in *fuse.ReadIn, p []byte) (fuse.ReadResult,
	fuse.Status) {
	m.hole.RLock()
	defer m.hole.RUnlock()
	time.Sleep(m.Times.Read)
	return m.RawFileSystem.Read(cancel, in, p)
}

func (m *mirror) Writev(cancel <-chan struct{}, in *fuse.WriteIn, p [][]byte) (uint32,
	fuse.Status) {
	m.hole.RLock()
	defer m.hole.RUnlock()
	time.Sleep(m.Times.Write)
	n, status := m.RawFileSystem.Writev(cancel, in, p)
	if m.Disk && status == fuse.Status(unix.ENOSPC) {
		status = fuse.EIO // a disk has no ENOSPC: the write fails
	}
	return n, status
}

func (m *mirror) Fallocate(cancel <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	m.await(Fallocate)
	if m.Times.Discard > 0 {
		m.hole.Lock()
		defer m.hole.Unlock()
		time.Sleep(m.Times.Discard)
	}
	return m.RawFileSystem.Fallocate(cancel, in)
}
