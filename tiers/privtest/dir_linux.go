package privtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	nodes "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// FuseDir is a directory of a FUSE filesystem, for the duration of the test.
func FuseDir(t testing.TB) (dir string, server *Server) {
	t.Helper()
	Root(t)
	reclaim()
	base, err := os.MkdirTemp("", ownPrefix())
	Need(t, err)
	t.Cleanup(func() {
		if err := dismantle(base); err != nil {
			t.Errorf("clean up the test filesystem: %v", err)
		}
	})
	d := slowDisk{Backing: memory(base), Dir: slow(base), Hangs: filepath.Join(base, "hangs")}
	for _, dir := range []string{d.Backing, d.Dir, d.Hangs} {
		Need(t, os.Mkdir(dir, 0o755))
	}
	Need(t, unix.Mount("tmpfs", d.Backing, "tmpfs", 0, "size=2g"))
	pid, err := startSlow(d)
	Need(t, err)
	return d.Dir, &Server{pid: pid, dir: d.Dir, hangs: d.Hangs}
}

// What a FuseDir can leave unanswered.
const (
	Open      = "open"
	Create    = "create"
	Fallocate = "fallocate"
	Unlink    = "unlink"
)

// HangOn makes it leave those operations unanswered that begin from now on, until AnswerAll or the
// end of the test, and answer all others.
func (s *Server) HangOn(t testing.TB, operations ...string) {
	t.Helper()
	t.Cleanup(func() { s.AnswerAll(t) }) // it is asked again when the directory is unmounted
	for _, name := range operations {
		if err := os.WriteFile(filepath.Join(s.hangs, name), nil, 0o600); err != nil {
			t.Fatalf("let %s hang: %v", name, err)
		}
	}
}

// AnswerAll ends what HangOn began.
func (s *Server) AnswerAll(t testing.TB) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(s.hangs, "*"))
	for _, name := range all {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		t.Errorf("let nothing hang any more: %v", err)
	}
}

// serveDir mounts the directory.
func serveDir(d slowDisk) (*fuse.Server, error) {
	root, err := nodes.NewLoopbackRoot(d.Backing)
	if err != nil {
		return nil, err
	}
	options := nodes.Options{MountOptions: fuse.MountOptions{
		FsName: "kvbench-directory", DirectMountStrict: true,
		// Else the kernel itself reads and writes the files, and no stopped process holds that up.
		DisabledCapabilities: fuse.CAP_PASSTHROUGH,
	}}
	server, err := fuse.NewServer(hangingDir{nodes.NewNodeFS(root, &options), d.Hangs}, d.Dir,
		&options.MountOptions)
	if err != nil {
		return nil, err
	}
	go server.Serve()
	return server, server.WaitMount()
}

// hangingDir answers an operation when there is no file of its name in the directory hangs.
type hangingDir struct {
	fuse.RawFileSystem
	hangs string
}

func (d hangingDir) await(operation string) {
	for {
		_, err := os.Lstat(filepath.Join(d.hangs, operation))
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (d hangingDir) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	d.await(Open)
	return d.RawFileSystem.Open(cancel, in, out)
}

func (d hangingDir) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string,
	out *fuse.CreateOut) fuse.Status {
	d.await(Create)
	return d.RawFileSystem.Create(cancel, in, name, out)
}

func (d hangingDir) Fallocate(cancel <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	d.await(Fallocate)
	return d.RawFileSystem.Fallocate(cancel, in)
}

func (d hangingDir) Unlink(cancel <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	d.await(Unlink)
	return d.RawFileSystem.Unlink(cancel, in, name)
}
