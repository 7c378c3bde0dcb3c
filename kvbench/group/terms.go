package group

import "slices"

// Gathering is what each rank gets when all ranks are connected.
type Gathering struct {
	Stamp       string // name of the run; see Hello.Stamp
	Local       int    // ranks on this rank's host, including this rank
	Filesystems int    // number of filesystems in the run
	// Shares has for each cache directory of this rank how many directories of all ranks are on its
	// filesystem, 0 if the filesystem is unknown.
	Shares []int
}

// Terms are the values that all ranks of a trial agree on before it starts.
type Terms struct {
	Name string // the name of the trial, which must be equal on all ranks
	// Simulated: no phase of the trial begins at a common time.
	Simulated bool
	// Nonce is the nonce of the written content. All ranks use the nonce of the lowest rank.
	Nonce []byte
	// Capacity is the capacity of the storage tier in bytes. Directories has the capacity of each
	// directory. Ranks read the free space of a shared filesystem at different times, so all ranks use the
	// smallest value.
	Capacity    int64
	Directories []Capacity
}

// Capacity is how many bytes a directory may take, and how many must stay free on its filesystem.
type Capacity struct{ Bytes, Floor int64 }

// Directory is one cache directory of a rank. Dir is its index in the rank's list, from 0.
type Directory struct{ Rank, Dir int }

// sameFilesystem reports whether two directories are on one filesystem. Device numbers identify the
// filesystems of one kernel. On two kernels the filesystem is the same if the type is equal, and the source
// or the f_fsid is equal. This test may miss a shared filesystem, because hosts may use different names for
// a server, and many types have no f_fsid.
func (l *Leader) sameFilesystem(a, b Directory) bool {
	first, second := &l.clients[a.Rank].hello, &l.clients[b.Rank].hello
	f, g := first.Filesystems[a.Dir], second.Filesystems[b.Dir]
	switch {
	case l.Shared != nil && *l.Shared && a.Dir == b.Dir:
		return true
	case first.Boot != "" && first.Boot == second.Boot:
		return f.Device == g.Device
	}
	return l.Shared == nil && f.Type != "" && f.Type == g.Type &&
		(f.Source != "" && f.Source == g.Source || f.ID != "" && f.ID == g.ID)
}

// unknown is the index of a filesystem without a device number, and of a bucket.
const unknown = -1

// share groups the cache directories of all ranks by filesystem. It is called with mu.
func (l *Leader) share() {
	for rank, c := range l.clients {
		c.filesystems = nil
		for dir, f := range c.hello.Filesystems {
			d, at := Directory{rank, dir}, unknown
			if f.Device != "" {
				at = slices.IndexFunc(l.filesystems, func(f []Directory) bool {
					return slices.ContainsFunc(f, func(o Directory) bool { return l.sameFilesystem(o, d) })
				})
				if at < 0 {
					at, l.filesystems = len(l.filesystems), append(l.filesystems, nil)
				}
				l.filesystems[at] = append(l.filesystems[at], d)
			}
			c.filesystems = append(c.filesystems, at)
		}
	}
}

// Filesystems returns the filesystems of all ranks. Each element lists the cache directories on one
// filesystem. The elements are ordered by their lowest rank. Buckets of an object store have no filesystem.
// The list is empty until all ranks are connected.
func (l *Leader) Filesystems() [][]Directory {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.filesystems
}

// filesystem returns the index of the filesystem of a directory. All ranks on object stores use one bucket.
func (c *client) filesystem(dir int) int {
	if dir < len(c.filesystems) {
		return c.filesystems[dir]
	}
	return unknown
}

// lower lowers the terms of rank c to the proposals of rank o for the filesystems that both use.
func (c *client) lower(terms *Terms, o *client) {
	for j, found := range o.part.Terms.Directories {
		for i := range terms.Directories {
			if own := &terms.Directories[i]; c.filesystem(i) == o.filesystem(j) {
				own.Bytes, own.Floor = min(own.Bytes, found.Bytes), min(own.Floor, found.Floor)
				terms.Capacity = min(terms.Capacity, o.part.Terms.Capacity)
			}
		}
	}
}
