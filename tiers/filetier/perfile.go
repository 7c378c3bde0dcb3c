package filetier

import (
	"context"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/ioengine"
)

// perFile is an engine's layout of one file per object. The engine writes a temporary file and renames
// it.
type perFile struct {
	base
	name      func(o tiers.Object) string               // path of an object's file
	look      func(path string) (there bool, err error) // the look-up call
	prepare   func(path string) error                   // the calls before a file is created; may be nil
	temporary func(path string) string                  // path of the file while it is written
	flags     int                                       // of the call that creates the temporary file
	mode      uint32
}

// create looks the object up and creates its temporary file.
func (l *perFile) create(_ context.Context, s *span) error {
	path := l.name(s.run[0].o)
	there, err := l.look(path)
	if err == nil && there {
		err = tiers.ErrExists
	}
	if err == nil && l.prepare != nil {
		err = l.prepare(path)
	}
	if err != nil {
		return err
	}
	flags := unix.O_WRONLY | unix.O_CREAT | l.flags | past(l.t.direct)
	return l.begin(s, l.temporary(path), flags, l.mode)
}

// begin opens a file, which is read or written at the file's position.
func (l *perFile) begin(s *span, path string, flags int, mode uint32) (err error) {
	if s.fd, err = l.calls.open(path, flags, mode); err != nil {
		return err
	}
	s.path, s.whole = path, func(op *ioengine.Op) { op.AtPosition = true }
	return nil
}

// commit closes the temporary file and renames it, which makes the object visible. The engines do not
// flush.
func (l *perFile) commit(_ context.Context, s *span) error {
	s.closed = true
	if err := l.calls.close(s.fd, s.path); err != nil {
		return err
	}
	return l.calls.rename(s.path, l.name(s.run[0].o))
}

// open opens a whole file for one read.
func (l *perFile) open(_ context.Context, s *span) error {
	return l.begin(s, l.name(s.run[0].o), unix.O_RDONLY|past(l.t.direct), 0)
}

// remove deletes an object's file. vLLM itself never deletes; LMCache and HiCache do if a capacity is
// configured.
func (l *perFile) remove(e *entry) error { return l.t.unlink(l.name(e.o)) }

// takes returns the size in whole pages.
func (l *perFile) takes(o tiers.Object) int64 { return tiers.AlignUp(o.Size, pageSize) }

// lookUp makes one call per object, only for its cost. The results do not matter: the tier knows which
// objects exist.
func (l *perFile) lookUp(objs []tiers.Object) error {
	for _, o := range objs {
		if _, err := l.look(l.name(o)); err != nil {
			return err
		}
	}
	return nil
}
