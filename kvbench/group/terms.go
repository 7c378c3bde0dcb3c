package group

import "slices"

// Gathering is what the leader sends to a rank when all ranks are connected.
type Gathering struct {
	Stamp   string    `json:"stamp"`   // name of the run; see Hello.Stamp
	Sharing []Sharing `json:"sharing"` // by cache directory of this rank
	Local   int       `json:"local"`   // ranks on this rank's host, including this rank
}

// Sharing describes how many directories share the filesystem of a rank's directory. It is zero if
// the filesystem is unknown.
type Sharing struct {
	Filesystem  int `json:"filesystem"`  // its number from 1, ordered by lowest rank
	Filesystems int `json:"filesystems"` // number of filesystems in the run
	Directories int `json:"directories"` // of all ranks on this filesystem
}

// Terms are the values that all ranks of a trial agree on before it starts.
type Terms struct {
	Name string `json:"name"` // of the trial; all ranks must have the same
	// Nonce is the nonce of the written content. All ranks use the lowest rank's.
	Nonce []byte `json:"nonce,omitempty"`
	// Capacity is the capacity of the storage tier in bytes. Directories has the capacity of each
	// directory. Ranks read the free space of a shared filesystem at different times, so the
	// smallest of their values holds.
	Capacity    int64      `json:"capacity,omitempty"`
	Directories []Capacity `json:"directories,omitempty"`
}

// Capacity is how many bytes a directory may take, and how many must stay free on its filesystem.
type Capacity struct {
	Bytes int64 `json:"bytes"`
	Floor int64 `json:"floor"`
}

// Directory is one cache directory of a rank. Dir is its index in the rank's list, from 0.
type Directory struct{ Rank, Dir int }

// share groups the cache directories of all ranks by filesystem. It compares the filesystems in the hellos.
// It is called with mu.
func (l *Leader) share() {
	one := func(a, b Directory) bool {
		first, second := &l.clients[a.Rank].hello, &l.clients[b.Rank].hello
		if l.Shared != nil && *l.Shared && a.Dir == b.Dir {
			return true
		}
		f, g := &first.Filesystems[a.Dir], &second.Filesystems[b.Dir]
		if first.oneKernel(second) {
			return f.Device == g.Device
		}
		return l.Shared == nil && f.same(g)
	}
	for rank, c := range l.clients {
		c.sharing = make([]Sharing, len(c.hello.Filesystems))
		for dir, f := range c.hello.Filesystems {
			if f.Device == "" {
				continue // the filesystem is unknown; objects have none
			}
			d := Directory{rank, dir}
			at := slices.IndexFunc(l.filesystems, func(f []Directory) bool {
				return slices.ContainsFunc(f, func(o Directory) bool { return one(o, d) })
			})
			if at < 0 {
				at, l.filesystems = len(l.filesystems), append(l.filesystems, nil)
			}
			l.filesystems[at] = append(l.filesystems[at], d)
		}
	}
	for i, f := range l.filesystems {
		for _, d := range f {
			l.clients[d.Rank].sharing[d.Dir] = Sharing{Filesystem: i + 1,
				Filesystems: len(l.filesystems), Directories: len(f)}
		}
	}
}

// Filesystems returns the filesystems of all ranks, each as the list of the cache directories on it.
// Filesystems are ordered by the lowest rank on each. Objects have no filesystem. The list is empty until
// all ranks are connected.
func (l *Leader) Filesystems() [][]Directory {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.filesystems
}

// smallest lowers the terms of rank c to the proposals of rank o for the filesystems that both use.
func smallest(terms *Terms, c, o *client) {
	// Without filesystems both ranks use one bucket of an object store.
	shared := len(c.sharing)+len(o.sharing) == 0
	for i, s := range c.sharing {
		for j, other := range o.sharing {
			if s.Filesystem != other.Filesystem {
				continue
			}
			shared = true
			if i < len(terms.Directories) && j < len(o.part.Terms.Directories) {
				own, found := &terms.Directories[i], o.part.Terms.Directories[j]
				own.Bytes = min(own.Bytes, found.Bytes)
				own.Floor = min(own.Floor, found.Floor)
			}
		}
	}
	if shared {
		terms.Capacity = min(terms.Capacity, o.part.Terms.Capacity)
	}
}
