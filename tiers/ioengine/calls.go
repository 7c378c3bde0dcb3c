package ioengine

import (
	"io"

	"golang.org/x/sys/unix"
)

// perform carries out a request with system calls.
func perform(op *Op) (moved int, err error) {
	sync := unix.Fsync
	switch op.Kind {
	case Read, Write:
		return transfer(op, unix.Pread, unix.Pwrite)
	case DataSync:
		sync = syncData
	}
	for {
		if err := sync(op.FD); err != unix.EINTR {
			return 0, err
		}
	}
}

// transfer moves all bytes of a request, with calls that may move a part of them.
func transfer(op *Op, read, write func(fd int, p []byte, off int64) (int, error)) (n int,
	err error) {
	call, end := read, io.ErrUnexpectedEOF
	if op.Kind == Write {
		call, end = write, io.ErrShortWrite
	}
	p := op.Buf.B[:op.N]
	for n < len(p) {
		more, err := call(op.FD, p[n:], op.Off+int64(n))
		switch {
		case err == unix.EINTR:
			continue
		case more == 0 && err == nil, op.Kind == Read && n > 0 && err == unix.EINVAL:
			// The file ends here. A direct read says EINVAL when it is to go on from an odd place.
			return n, end
		case err != nil:
			return n, err
		}
		n += more
	}
	return n, nil
}
