package host

import (
	"errors"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CachedBytes returns how many bytes of a file are in the page cache, in whole pages, from cachestat(2)
// (since Linux 6.5), else from mincore(2).
func CachedBytes(path string) (bytes int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	// A range of length 0 reaches to the end of the file.
	var whole unix.CachestatRange
	var stat unix.Cachestat_t
	err = unix.Cachestat(uint(f.Fd()), &whole, &stat, 0)
	switch {
	case err == nil:
		return int64(stat.Cache) * int64(os.Getpagesize()), nil
	case !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM): // EPERM: of a sandbox
		return 0, &fs.PathError{Op: "cachestat", Path: path, Err: err}
	}
	return resident(f)
}

// resident uses mincore, for one part of the file after the other: it returns one byte per page.
func resident(f *os.File) (bytes int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	const part = 1 << 30
	page := os.Getpagesize()
	for at := int64(0); at < info.Size(); at += part {
		n := int(min(part, info.Size()-at))
		mem, err := unix.Mmap(int(f.Fd()), at, n, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return 0, &fs.PathError{Op: "mmap", Path: f.Name(), Err: err}
		}
		pages := make([]byte, (n+page-1)/page)
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mem[0])), uintptr(n),
			uintptr(unsafe.Pointer(&pages[0])))
		err = unix.Munmap(mem)
		if errno != 0 {
			err = errno
		}
		if err != nil {
			return 0, &fs.PathError{Op: "mincore", Path: f.Name(), Err: err}
		}
		for _, p := range pages {
			bytes += int64(p&1) * int64(page)
		}
	}
	return bytes, nil
}

// DropFromCache drops a file from the page cache. Pages that were not flushed stay.
func DropFromCache(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = uninterrupted(func() error {
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
	if err != nil {
		return &fs.PathError{Op: "fadvise", Path: path, Err: err}
	}
	return nil
}

// DropCaches drops the page cache of the machine. Only root may do that.
func DropCaches() error {
	return os.WriteFile("/proc/sys/vm/drop_caches", []byte("3\n"), 0)
}
