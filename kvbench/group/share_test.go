package group

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/tracing/host"
)

// TestShare: directories of one kernel have its numbers, those of several kernels are one by type,
// source and id of what others can mount.
func TestShare(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name   string
		boots  string   // of each rank, - is unknown
		ranks  []string // the directories: device[/type/source/id], - is unknown
		shared *bool
		want   string // filesystem:directories of each directory
	}{
		{"one host", "aa", []string{"1", "1"}, nil, "1:2|1:2"},
		{"one host, a disk each", "aa", []string{"1", "2"}, nil, "1:1|2:1"},
		{"two hosts, one server", "abb", []string{"1/nfs4/s:x", "7/nfs4/s:x", "7/nfs4/s:x"}, nil,
			"1:3|1:3|1:3"},
		{"another name, one id", "ab", []string{"1/ceph/m1:/x/f0", "7/ceph/m2:/x/f0"}, nil,
			"1:2|1:2"},
		{"another name", "ab", []string{"1/nfs4/s:x", "7/nfs4/10.0.0.1:x"}, nil, "1:1|2:1"},
		{"another name, said to be one", "ab", []string{"1/nfs4/s:x", "7/nfs4/10.0.0.1:x"}, &yes,
			"1:2|1:2"},
		{"one name, said to be two", "aab", []string{"1/9p/share", "1/9p/share", "7/9p/share"}, &no,
			"1:2|1:2|2:1"},
		{"the boot is unknown", "--", []string{"1", "1"}, nil, "1:1|2:1"},
		{"an object store", "ab", []string{"", ""}, nil, "|"},
		{"one host, two directories", "aa", []string{"1 2", "1 2"}, nil, "1:2 2:2|1:2 2:2"},
		{"two hosts share the second", "abb", []string{"1 2/nfs/s:x", "1 2/nfs/s:x", "1 2/nfs/s:x"},
			nil, "1:1 2:3|3:2 2:3|3:2 2:3"},
		{"both of one host are one of the other's", "ab", []string{"1/nfs/s:x 1/nfs/s:x",
			"8 9/nfs/s:x"}, nil, "1:3 1:3|2:1 1:3"},
		{"one is unknown", "ab", []string{"1 -", "1 2"}, nil, "1:1 0:0|2:1 3:1"},
	} {
		l := newLeader(LeaderConfig{Hello: hello(0, len(c.ranks)), Shared: c.shared})
		for rank, dirs := range c.ranks {
			h := hello(rank, len(c.ranks))
			h.Boot, h.Filesystems = strings.Trim(c.boots[rank:rank+1], "-"), nil
			for dir := range strings.FieldsSeq(dirs) {
				p := append(strings.SplitN(dir, "/", 3), "", "")
				f := host.Identity{Device: strings.Trim(p[0], "-"), Type: p[1], Source: p[2]}
				if at := strings.LastIndex(f.Source, "/f"); at >= 0 {
					f.Source, f.ID = f.Source[:at], f.Source[at+1:]
				}
				h.Filesystems = append(h.Filesystems, f)
			}
			l.clients[rank] = &client{hello: h}
		}
		l.share()
		var got []string
		for _, client := range l.clients {
			var dirs []string
			for _, at := range client.filesystems {
				n := 0
				if at != unknown {
					n = len(l.filesystems[at])
				}
				dirs = append(dirs, fmt.Sprintf("%d:%d", at+1, n))
			}
			got = append(got, strings.Join(dirs, " "))
		}
		assert.Equal(t, c.want, strings.Join(got, "|"), c.name)
	}
}

// capacities are two.
func capacities(a, aFloor, b, bFloor int64) []Capacity {
	return []Capacity{{Bytes: a, Floor: aFloor}, {Bytes: b, Floor: bFloor}}
}

// TestCapacityOfTwoFilesystems: what a directory may take is the least that any rank has found on its
// filesystem, and what a rank may take the least of those with which it shares any.
func TestCapacityOfTwoFilesystems(t *testing.T) {
	c := &client{filesystems: []int{1, 2}}
	o := &client{filesystems: []int{3, 2},
		part: part{Step: Step{Terms: Terms{Capacity: 7, Directories: capacities(3, 1, 4, 1)}}}}
	terms := Terms{Capacity: 9, Directories: capacities(5, 2, 5, 2)}
	c.lower(&terms, o)
	assert.Equal(t, Terms{Capacity: 7, Directories: capacities(5, 2, 4, 1)}, terms)
	o.filesystems[1] = 4
	terms = Terms{Capacity: 9, Directories: capacities(5, 2, 5, 2)}
	c.lower(&terms, o)
	assert.Equal(t, Terms{Capacity: 9, Directories: capacities(5, 2, 5, 2)}, terms)
}
