package privtest

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	m := &mirror{Memory: memory(base), Dir: served(base), Disk: disk, Times: times}
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
	return &Server{pid: cmd.Process.Pid, connection: fmt.Sprint(unix.Minor(st.Dev))}, err
}

// serveFuse is that process. It prints a line when the mirror is mounted.
func serveFuse(text string) error {
	var m mirror
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return err
	}
	if m.Times.Slots > 0 {
		m.slots = make(chan struct{}, m.Times.Slots)
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

// mirror shows a directory, and takes its times for reads, writes and discards. A loop device turns
// discards into holes punched into its file.
type mirror struct {
	fuse.RawFileSystem `json:"-"`
	Memory, Dir        string
	Disk               bool // its file is behind a loop device
	Times              Times
	hole               sync.RWMutex  // held while a hole is punched, which delays every other request
	slots              chan struct{} // holds one value per read or write in service; nil: no limit
}

// work takes the time of a read or write.
func (m *mirror) work(d time.Duration) {
	if m.slots != nil {
		m.slots <- struct{}{}
		defer func() { <-m.slots }()
	}
	time.Sleep(d)
}

// Open keeps the page cache away from a disk's file: the kernel would read and write there.
func (m *mirror) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	status := m.RawFileSystem.Open(cancel, in, out)
	if m.Disk {
		out.OpenFlags |= fuse.FOPEN_DIRECT_IO | fuse.FOPEN_PARALLEL_DIRECT_WRITES
	}
	return status
}

func (m *mirror) Read(cancel <-chan struct{}, in *fuse.ReadIn, p []byte) (fuse.ReadResult,
	fuse.Status) {
	m.hole.RLock()
	defer m.hole.RUnlock()
	m.work(m.Times.Read)
	return m.RawFileSystem.Read(cancel, in, p)
}

func (m *mirror) Writev(cancel <-chan struct{}, in *fuse.WriteIn, p [][]byte) (uint32,
	fuse.Status) {
	m.hole.RLock()
	defer m.hole.RUnlock()
	m.work(m.Times.Write)
	n, status := m.RawFileSystem.Writev(cancel, in, p)
	if m.Disk && status == fuse.Status(unix.ENOSPC) {
		status = fuse.EIO // a disk does not know what is free
	}
	return n, status
}

func (m *mirror) Fallocate(cancel <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	if m.Times.Discard > 0 {
		m.hole.Lock()
		defer m.hole.Unlock()
		time.Sleep(m.Times.Discard)
	}
	return m.RawFileSystem.Fallocate(cancel, in)
}
