package filetier

import "golang.org/x/sys/unix"

// String returns the names of the flags.
func (flags openFlags) String() string {
	text := []string{"O_RDONLY", "O_WRONLY", "O_RDWR"}[flags&unix.O_ACCMODE]
	for _, f := range []struct {
		bit  openFlags
		name string
	}{
		{unix.O_CREAT, "O_CREAT"}, {unix.O_EXCL, "O_EXCL"}, {unix.O_TRUNC, "O_TRUNC"},
		{unix.O_NONBLOCK, "O_NONBLOCK"}, {openDirect, "O_DIRECT"},
		{unix.O_DIRECTORY, "O_DIRECTORY"},
	} {
		if f.bit != 0 && flags&f.bit == f.bit {
			text += "|" + f.name
		}
	}
	return text
}

// CachedWrites exports cachedWrites.
var CachedWrites = cachedWrites
