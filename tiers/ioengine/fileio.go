package ioengine

import (
	"io"

	"golang.org/x/sys/unix"
)

// PreadFull reads at least want bytes at off into p, which may be longer for the padding. It returns how many
// bytes came before a failure.
func (s *SpareCalls) PreadFull(fd int, p []byte, want int, off int64) (got int, err error) {
	for got < want {
		n, err := s.pread(fd, p[got:], off+int64(got))
		switch {
		case err == unix.EINTR:
			continue
		case n == 0 && err == nil, err == unix.EINVAL && got > 0:
			// The file ends here. Direct I/O says EINVAL when it is asked to go on from an odd place.
			return got, io.ErrUnexpectedEOF
		case err != nil:
			return got, err
		}
		got += n
	}
	return got, nil
}

// PwriteFull writes all of p at off.
func (s *SpareCalls) PwriteFull(fd int, p []byte, off int64) (put int, err error) {
	for put < len(p) {
		n, err := s.pwrite(fd, p[put:], off+int64(put))
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
