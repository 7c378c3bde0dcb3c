package privtest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// openFile is a new file of one page, around the page cache, which would answer by itself.
func openFile(t *testing.T, dir string) (f *os.File, page []byte) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "file"), os.O_CREATE|os.O_RDWR|unix.O_DIRECT, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	page, err = unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	_, err = f.WriteAt(page, 0)
	require.NoError(t, err)
	return f, page
}

// awaitHanging wants the call to ask the server of a directory, and to have its answer not before
// the server is let go.
func awaitHanging(t *testing.T, s *Server, answer func(), call func() error) {
	t.Helper()
	waiting := filepath.Join(s.control(t), "waiting")
	returned := make(chan error, 1)
	go func() { returned <- call() }()
	for readLine(waiting) == "0" {
		select {
		case err := <-returned:
			require.Fail(t, "nobody asked the server", "it returned %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	select {
	case err := <-returned:
		assert.Fail(t, "it was answered", "it returned %v", err)
	case <-time.After(50 * time.Millisecond):
		answer()
		require.NoError(t, <-returned)
	}
}

// TestAStoppedDirectoryAnswersNothing: no read and write of an open file either, which the kernel
// could do by itself.
func TestAStoppedDirectoryAnswersNothing(t *testing.T) {
	dir, server := FuseDir(t)
	f, page := openFile(t, dir)
	for name, call := range map[string]func([]byte, int64) (int, error){"read": f.ReadAt,
		"write": f.WriteAt} {
		t.Run(name, func(t *testing.T) {
			server.Hang(t)
			awaitHanging(t, server, func() { server.Answer(t) }, func() error {
				_, err := call(page, 0)
				return err
			})
		})
	}
}

// TestADirectoryHangsOnSingleOperations and answers all others.
func TestADirectoryHangsOnSingleOperations(t *testing.T) {
	dir, server := FuseDir(t)
	f, page := openFile(t, dir)
	second := filepath.Join(dir, "second")
	for _, c := range []struct {
		operation string
		call      func() error
	}{
		{Create, func() error { return os.WriteFile(second, nil, 0o600) }},
		{Open, func() error {
			again, err := os.Open(second)
			if err == nil {
				err = again.Close()
			}
			return err
		}},
		{Fallocate, func() error { return unix.Fallocate(int(f.Fd()), 0, 0, 1<<20) }},
		{Unlink, func() error { return os.Remove(second) }},
	} {
		server.HangOn(t, c.operation)
		_, err := f.ReadAt(page, 0)
		require.NoError(t, err, c.operation)
		awaitHanging(t, server, func() { server.AnswerAll(t) }, c.call)
	}
}
