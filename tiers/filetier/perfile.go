package filetier

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/ioengine"
)

// perFile is the common part of the layouts with one file per object: the engine writes a temporary
// file and renames it.
type perFile struct {
	base
	model string                                    // in file names; each engine replaces its slashes differently
	path  func(o tiers.Object) string               // the path of an object's file
	look  func(path string) (there bool, err error) // the engine's look-up call
}

// missing returns the path of an object's file, and ErrExists if the file exists.
func (l *perFile) missing(o tiers.Object) (path string, err error) {
	path = l.path(o)
	there, err := l.look(path)
	if err == nil && there {
		err = tiers.ErrExists
	}
	return path, err
}

// begin opens a file: for writing the temporary file, which commit renames.
func (l *perFile) begin(s *span, path string, flags int, mode uint32) (err error) {
	if s.fd, err = l.calls.open(path, flags, mode); err != nil {
		return err
	}
	s.path, s.whole = path, atPosition
	return nil
}

// atPosition makes an operation a read or write at the file's position.
func atPosition(op *ioengine.Op) { op.AtPosition = true }

// commit closes the temporary file and renames it, which makes the object visible. The engines do not
// flush.
func (l *perFile) commit(_ context.Context, s *span) error {
	s.closed = true
	if err := l.calls.close(s.fd, s.path); err != nil {
		return err
	}
	return l.calls.rename(s.path, l.path(s.run[0].o))
}

// abandon removes the temporary file, as vLLM and LMCache do after a short write.
func (l *perFile) abandon(s *span) (err error) {
	if s.path == "" {
		return nil
	}
	if !s.closed {
		err = l.calls.close(s.fd, s.path)
	}
	return errors.Join(err, l.t.unlink(s.path))
}

// open opens a whole file for one read.
func (l *perFile) open(_ context.Context, s *span) error {
	return l.begin(s, l.path(s.run[0].o), unix.O_RDONLY|past(l.t.direct), 0)
}

// done closes the file: the engines keep no file open between loads.
func (l *perFile) done(s *span) error { return l.calls.close(s.fd, s.path) }

// remove deletes an object's file. vLLM itself never deletes; LMCache and HiCache do if a capacity is
// configured.
func (l *perFile) remove(e *entry) error { return l.t.unlink(l.path(e.o)) }

// takes returns the size in whole pages.
func (l *perFile) takes(o tiers.Object) int64 { return tiers.AlignUp(o.Size, pageSize) }

// lookUp makes one call per object, only for its cost. The results do not matter: the tier knows which
// objects exist.
func (l *perFile) lookUp(objs []tiers.Object) error {
	for _, o := range objs {
		if _, err := l.look(l.path(o)); err != nil {
			return err
		}
	}
	return nil
}
