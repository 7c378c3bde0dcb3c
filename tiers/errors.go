package tiers

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// ErrNotFound: the tier has no such entry. Match it with errors.Is; the error that wraps it names
// key and path.
var ErrNotFound = errors.New("no such entry")

// ErrNotSupported matches every UnsupportedError.
var ErrNotSupported = errors.New("not supported")

// ErrExists: an object with this key and generation exists already, see Object.Gen.
var ErrExists = errors.New("the entry exists already in this generation")

// ErrClosed: the tier, pool or directory was closed before.
var ErrClosed = errors.New("already closed")

// UnsupportedError names a requested feature that this system does not have, and what it needs.
type UnsupportedError struct {
	Feature string // "direct I/O on /mnt/x"
	Need    string // "a filesystem that honours O_DIRECT"
	Reason  string // "tmpfs keeps everything in memory"
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s is not supported here: %s; it needs %s", e.Feature, e.Reason, e.Need)
}

// Is makes every UnsupportedError match ErrNotSupported.
func (e *UnsupportedError) Is(target error) bool { return target == ErrNotSupported }

// OpError is a failed operation on one entry. It wraps the errno: errors.Is(err, unix.ENOSPC).
type OpError struct {
	Op     string // "create", "write", "flush", "open", "read", "remove", …
	Path   string // the file, or the tier's name where there is none
	Key    string
	Offset int64 // byte offset in the entry; -1 if the operation has none
	Err    error
}

func (e *OpError) Error() string {
	at := ""
	if e.Offset >= 0 {
		at = fmt.Sprintf(" at offset %d", e.Offset)
	}
	return fmt.Sprintf("%s %s (entry %s%s): %v%s", e.Op, e.Path, e.Key, at, e.Err, Advice(e.Err))
}

func (e *OpError) Unwrap() error { return e.Err }

// PanicError is a panic inside a transfer. As an error it lets the goroutines of the transfer end in
// order: buffers return to the pool and the entry is removed.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("panic in a transfer: %v\n%s", e.Value, e.Stack)
}

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Advice returns the usual remedy for an errno, beginning with "; ", or "" where there is none.
func Advice(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return ""
	}
	switch errno {
	case syscall.EDQUOT:
		return "; raise the quota or have less there (-storage-capacity-gb; of checkpoints " +
			"-checkpoint-keep)"
	case syscall.ENOSPC:
		return "; free space there or have less there (-storage-capacity-gb; of checkpoints " +
			"-checkpoint-keep)"
	case syscall.EROFS:
		return "; the filesystem is mounted read-only, remount it or choose another -cache-dir"
	case syscall.EACCES, syscall.EPERM:
		return "; this user may not do that there, choose a -cache-dir that it owns"
	case syscall.EMFILE, syscall.ENFILE:
		return "; raise the limit of open files (ulimit -n) or use fewer workers"
	case syscall.ENAMETOOLONG:
		return "; a model's path is part of an engine's file names: give a -model with a shorter " +
			"one"
	case syscall.EFBIG:
		return "; raise the limit of a file's size (ulimit -f), or where it is the filesystem's " +
			"use a -layout with smaller files"
	case syscall.EIO:
		return "; the device reports a failure, see the kernel log (dmesg)"
	}
	return ""
}

// Canceled returns the error of an operation whose context ended, with the cause if there is one.
func Canceled(ctx context.Context, o Object) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return fmt.Errorf("entry %s: %w", o.Key, cause)
	}
	return fmt.Errorf("entry %s: %w: %w", o.Key, err, cause)
}
