package privtest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// slowEnv, a slowDisk as JSON, makes a process of the test's binary serve that disk instead of
// running tests. In the test's own process the disk's work would be measured with the test's, and a
// raw system call that waits for the disk could keep the processor that the disk needs.
const slowEnv = "KVTEST_SLOW_DISK"

func init() {
	text := os.Getenv(slowEnv)
	if text == "" {
		return
	}
	if err := serveSlow(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// slowDisk is a file that takes Times to be read, written and punched, in a FUSE filesystem of its
// own; or, where Backing is a directory, that directory, which takes no time. A loop device turns
// the discards of its filesystem into holes punched into its file.
type slowDisk struct {
	Backing string // the file that holds the bytes
	Dir     string // where the filesystem is mounted
	Times   Times
	Hangs   string // of a directory: where it is said which operations hang
}

const slowName = "disk"

// startSlow starts the process that serves a slow disk, and returns its number. The process ends
// when the filesystem is unmounted, or when this process has ended in whatever way; the kernel sees
// to that also where it is stopped.
func startSlow(d slowDisk) (pid int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("serve a slow disk over FUSE in %s: %w", d.Dir, err)
		}
	}()
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return 0, err
	}
	var complaint bytes.Buffer
	cmd := exec.Command(self)
	cmd.Env, cmd.Stderr = append(os.Environ(), slowEnv+"="+string(text)), &complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	held, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		err = cmp.Or(cmd.Wait(), err)
		return 0, fmt.Errorf("%w: %s", err, strings.TrimSpace(complaint.String()))
	}
	go func() {
		_ = cmd.Wait() // however it ended: the filesystem is gone with it
		_ = held.Close()
	}()
	return cmd.Process.Pid, nil
}

// serveSlow is the process. It says a line when the disk is there, and reads until its parent is
// gone.
func serveSlow(text string) error {
	f := new(slowFile)
	err := json.Unmarshal([]byte(text), &f.slowDisk)
	if err != nil {
		return err
	}
	if s, err := os.Stat(f.Backing); err == nil && s.IsDir() {
		return serve(serveDir(f.slowDisk))
	}
	if f.file, err = os.OpenFile(f.Backing, os.O_RDWR, 0); err != nil {
		return err
	}
	defer f.file.Close()
	root := new(fs.Inode)
	server, err := fs.Mount(f.Dir, root, &fs.Options{
		MountOptions: fuse.MountOptions{
			FsName: "kvbench-slow-disk", DirectMountStrict: true, DisableXAttrs: true,
			// Many requests at a time, also of one who does not wait for them.
			MaxBackground: 1024, MaxWrite: 1 << 20, ExtraCapabilities: fuse.CAP_ASYNC_DIO,
		},
		OnAdd: func(ctx context.Context) {
			inode := root.NewPersistentInode(ctx, f, fs.StableAttr{Mode: fuse.S_IFREG})
			root.AddChild(slowName, inode, true)
		},
	})
	return serve(server, err)
}

// serve is the life of the process once it has mounted something.
func serve(server *fuse.Server, err error) error {
	if err != nil {
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

// slowFile answers the kernel's requests, each on a goroutine of its own.
type slowFile struct {
	fs.Inode
	slowDisk
	file *os.File
	// work is held for writing while a hole is punched: nothing else goes on meanwhile.
	work sync.RWMutex
}

var _ interface {
	fs.NodeStatfser
	fs.NodeGetattrer
	fs.NodeOpener
	fs.NodeFsyncer
	fs.NodeReader
	fs.NodeWriter
	fs.NodeAllocater
} = (*slowFile)(nil)

const slowBlock = 4096

// Statfs tells the loop device in which units it may discard.
func (f *slowFile) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	out.Bsize, out.Frsize, out.NameLen = slowBlock, slowBlock, 255
	return fs.OK
}

func (f *slowFile) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	st, err := f.file.Stat()
	if err != nil {
		return fs.ToErrno(err)
	}
	out.Mode, out.Size, out.Blksize = fuse.S_IFREG|0o600, uint64(st.Size()), slowBlock
	return fs.OK
}

func (f *slowFile) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO | fuse.FOPEN_PARALLEL_DIRECT_WRITES, fs.OK
}

// Fsync has nothing to do: the bytes are in memory, and stay there.
func (f *slowFile) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno { return fs.OK }

func (f *slowFile) Read(_ context.Context, _ fs.FileHandle, p []byte, off int64) (fuse.ReadResult,
	syscall.Errno) {
	f.work.RLock()
	defer f.work.RUnlock()
	time.Sleep(f.Times.Read)
	n, err := f.file.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return fuse.ReadResultData(p[:n]), fs.ToErrno(err)
}

func (f *slowFile) Write(_ context.Context, _ fs.FileHandle, p []byte, off int64) (uint32,
	syscall.Errno) {
	f.work.RLock()
	defer f.work.RUnlock()
	time.Sleep(f.Times.Write)
	n, err := f.file.WriteAt(p, off)
	if errors.Is(err, unix.ENOSPC) { // a disk knows nothing of room: it has failed
		err = unix.EIO
	}
	return uint32(n), fs.ToErrno(err)
}

func (f *slowFile) Allocate(_ context.Context, _ fs.FileHandle, off, size uint64,
	mode uint32) syscall.Errno {
	f.work.Lock()
	defer f.work.Unlock()
	time.Sleep(f.Times.Discard)
	return fs.ToErrno(unix.Fallocate(int(f.file.Fd()), mode, int64(off), int64(size)))
}
