package tiers

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// ErrNotFound: the tier has no such entry. Match with errors.Is; the error itself names key and
// place.
var ErrNotFound = errors.New("no such entry")

// ErrNotSupported matches every UnsupportedError.
var ErrNotSupported = errors.New("not supported")

// ErrExists: what is being written is there already, see Object.Gen.
var ErrExists = errors.New("the entry exists already in this generation")

// ErrClosed: the tier, pool or directory was closed before.
var ErrClosed = errors.New("already closed")

// UnsupportedError says that something asked for cannot be had here, and what it would need.
type UnsupportedError struct {
	Feature string // what was asked for: "direct I/O on /mnt/x"
	Need    string // what it takes: "a filesystem that honours O_DIRECT"
	Reason  string // what was found: "tmpfs keeps everything in memory"
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s is not supported here: %s; it needs %s", e.Feature, e.Reason, e.Need)
}

// Is makes every UnsupportedError match ErrNotSupported.
func (e *UnsupportedError) Is(target error) bool { return target == ErrNotSupported }

// OpError is a failed operation on one entry. It keeps the errno reachable: errors.Is(err,
// unix.ENOSPC).
type OpError struct {
	Op     string // "create", "write", "flush", "open", "read", "remove", …
	Path   string // the file, or the tier's name where there is none
	Key    string
	Offset int64 // byte offset in the entry; -1 where the operation has none
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

// PanicError is a panic inside a transfer, turned into an error so that goroutines of the transfer
// end in order, buffers return to the pool and the entry is taken back.
type PanicError struct {
	Value any
	Stack []byte // where it happened
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("panic in a transfer: %v\n%s", e.Value, e.Stack)
}

// Unwrap gives the panic's value where it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Advice returns what to do about an errno that has a usual cure, with its own "; ", else nothing.
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

// Canceled is the error of an operation that its context ended, with the reason if there is one.
func Canceled(ctx context.Context, o Object) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return fmt.Errorf("entry %s: %w", o.Key, cause)
	}
	return fmt.Errorf("entry %s: %w: %w", o.Key, err, cause)
}
