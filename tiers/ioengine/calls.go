package ioengine

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// perform carries out a request with system calls.
func perform(op *Op) (moved int, err error) {
	switch op.Kind {
	case Read:
		return readFull(unix.Pread, op)
	case Write:
		return writeFull(unix.Pwrite, op)
	case DataSync:
		return 0, syncData(op.FD)
	}
	return 0, uninterrupted(func() error { return unix.Fsync(op.FD) })
}

// transfer is pread or pwrite.
type transfer func(fd int, p []byte, off int64) (int, error)

// readFull reads all bytes of a request.
func readFull(read transfer, op *Op) (got int, err error) {
	p := op.Buf.B[:op.N]
	for got < len(p) {
		n, err := read(op.FD, p[got:], op.Off+int64(got))
		switch {
		case err == unix.EINTR:
			continue
		case n == 0 && err == nil, err == unix.EINVAL && got > 0:
			// The file ends here. Direct I/O says EINVAL when it is asked to go on from an odd
			// place.
			return got, io.ErrUnexpectedEOF
		case err != nil:
			return got, err
		}
		got += n
	}
	return got, nil
}

// writeFull writes all bytes of a request.
func writeFull(write transfer, op *Op) (put int, err error) {
	p := op.Buf.B[:op.N]
	for put < len(p) {
		n, err := write(op.FD, p[put:], op.Off+int64(put))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return put, err
		case n == 0:
			return put, io.ErrShortWrite
		}
		put += n
	}
	return put, nil
}

// uninterrupted repeats a call that a signal interrupted.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
