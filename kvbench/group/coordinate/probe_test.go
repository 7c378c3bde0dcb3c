package coordinate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/group/wire"
)

// disks are those on which the directories of ranks lie: who works on one sees each other's marks.
type disks struct {
	mu    sync.Mutex
	of    [][]string // by rank and directory
	marks map[place]string
	fails map[int]error // to make a mark
}

// desk is a rank's.
type desk struct {
	*disks
	rank int
}

func (d desk) Make(dirs []int) (list []wire.Mark, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fails[d.rank]; err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		content := fmt.Sprint(d.rank, "/", dir)
		d.marks[place{d.rank, dir}] = content
		list = append(list, wire.Mark{Rank: d.rank, Dir: dir, Content: content})
	}
	return list, nil
}

func (d desk) Look(ranks []int) (seen []wire.Mark, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at, content := range d.marks {
		for own := range d.marks {
			if own.rank == d.rank && slices.Contains(ranks, at.rank) &&
				d.of[at.rank][at.dir] == d.of[d.rank][own.dir] {
				seen = append(seen, wire.Mark{Rank: at.rank, Dir: own.dir, Content: content})
			}
		}
	}
	return seen, nil
}

func (d desk) Remove() {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.marks, func(p place, _ string) bool { return p.rank == d.rank })
}

// begun lets ranks with hellos find out who shares what.
func begun(t *testing.T, d *disks, hellos []wire.Hello) ([][]wire.Sharing, error) {
	l := NewLeader(LeaderConfig{Hello: hellos[0], Clock: ahead(0)})
	var members []*Member
	for rank, h := range hellos {
		ours, theirs := pipe(rank)
		go l.Accept(ours, nil)
		m, err := Join(t.Context(), theirs, h, MemberConfig{Clock: ahead(0), Prober: desk{d, rank}})
		require.NoError(t, err)
		members = append(members, m)
	}
	require.NoError(t, l.Gather(t.Context()))
	err := l.Begin(t.Context())
	var list [][]wire.Sharing
	for _, m := range members {
		if err == nil {
			who, why := m.Gathered(t.Context())
			require.NoError(t, why)
			require.Equal(t, hellos[0].Ranks, who.Ranks)
			list = append(list, m.Sharing())
			local := 0
			for _, h := range hellos {
				if h.OneHost(&hellos[m.Rank()]) {
					local++
				}
			}
			assert.Equal(t, local, m.Local())
		}
		m.Leave("")
	}
	l.Close(context.Background())
	return list, err
}

// TestWhoSharesAFilesystem: the groups follow from who sees whose mark, and nothing is made where
// the kernel knows.
func TestWhoSharesAFilesystem(t *testing.T) {
	for _, c := range []struct {
		name  string
		boots string
		// Of each rank: what its kernel calls the filesystems of its directories, on which disks
		// they really are, and which filesystem is found, with how many directories.
		devices, disks, want, directories []string
	}{
		{"one host", "aa", []string{"1", "1"}, []string{"x", "y"}, []string{"1", "1"},
			[]string{"2", "2"}},
		{"one host, a disk each", "aa", []string{"1", "2"}, []string{"x", "y"},
			[]string{"1", "2"}, []string{"1", "1"}},
		{"two hosts", "aabb", []string{"1", "1", "1", "1"}, []string{"x", "x", "y", "y"},
			[]string{"1", "1", "2", "2"}, []string{"2", "2", "2", "2"}},
		{"two hosts, one filesystem", "abb", []string{"1", "7", "7"}, []string{"x", "x", "x"},
			[]string{"1", "1", "1"}, []string{"3", "3", "3"}},
		{"three hosts, two share", "abc", []string{"1", "1", "1"}, []string{"x", "y", "x"},
			[]string{"1", "2", "1"}, []string{"2", "1", "2"}},
		{"nobody knows the boot", "---", []string{"1", "1", "1"}, []string{"x", "y", "x"},
			[]string{"1", "2", "1"}, []string{"2", "1", "2"}},
		{"an object store", "ab", []string{"", ""}, []string{"", ""}, []string{"", ""},
			[]string{"", ""}},
		{"one host, two directories", "aa", []string{"1 2", "1 2"}, []string{"x y", "x y"},
			[]string{"1 2", "1 2"}, []string{"2 2", "2 2"}},
		{"one host, two directories on one disk", "a", []string{"1 1"}, []string{"x x"},
			[]string{"1 1"}, []string{"2 2"}},
		{"two hosts share the second", "abb", []string{"1 2", "1 2", "1 2"},
			[]string{"x z", "y z", "y z"}, []string{"1 2", "3 2", "3 2"},
			[]string{"1 3", "2 3", "2 3"}},
		{"two hosts share the first", "ab", []string{"1 2", "8 9"}, []string{"x y", "x z"},
			[]string{"1 2", "1 3"}, []string{"2 1", "2 1"}},
		{"both of one host are one of the other's", "ab", []string{"1 1", "8 9"},
			[]string{"x x", "y x"}, []string{"1 1", "2 1"}, []string{"3 3", "1 3"}},
		{"of one nobody knows", "ab", []string{"1 -", "1 2"}, []string{"x y", "z y"},
			[]string{"1 0", "2 3"}, []string{"1 0", "1 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &disks{marks: map[place]string{}}
				var hellos []wire.Hello
				for rank, devices := range c.devices {
					h := hello(rank, len(c.devices))
					boot := strings.Trim(c.boots[rank:rank+1], "-")
					h.Boot, h.Host, h.Devices = boot, boot, strings.Fields(devices)
					for i, device := range h.Devices {
						h.Devices[i] = strings.Trim(device, "-")
					}
					hellos = append(hellos, h)
					d.of = append(d.of, strings.Fields(c.disks[rank]))
				}
				list, err := begun(t, d, hellos)
				require.NoError(t, err)
				for rank, dirs := range list {
					var want, directories []string
					for _, s := range dirs {
						want = append(want, strconv.Itoa(s.Filesystem))
						directories = append(directories, strconv.Itoa(s.Directories))
					}
					assert.Equal(t, []string{c.want[rank], c.directories[rank]},
						[]string{strings.Join(want, " "), strings.Join(directories, " ")}, rank)
				}
				assert.Empty(t, d.marks)
			})
		})
	}
}

// TestAProbeThatFails: it says who, and nothing stays.
func TestAProbeThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disks{of: [][]string{{"x"}, {"x"}}, marks: map[place]string{},
			fails: map[int]error{1: errors.New("read-only file system")}}
		a, b := hello(0, 2), hello(1, 2)
		b.Boot = "other"
		_, err := begun(t, d, []wire.Hello{a, b})
		require.EqualError(t, err, "rank 1 on h0 (pid 101) cannot find out which ranks share its "+
			"filesystem: read-only file system")
		assert.Empty(t, d.marks)
	})
}

// rooms are two.
func rooms(a, aFloor, b, bFloor int64) []wire.Room {
	return []wire.Room{{Bytes: a, Floor: aFloor}, {Bytes: b, Floor: bFloor}}
}

// TestRoomOfTwoFilesystems: what a directory may take is the least that any rank has found on its
// filesystem, and what a rank may take the least of those with which it shares any.
func TestRoomOfTwoFilesystems(t *testing.T) {
	c := &client{sharing: []wire.Sharing{{Filesystem: 1}, {Filesystem: 2}}}
	o := &client{sharing: []wire.Sharing{{Filesystem: 3}, {Filesystem: 2}},
		part: part{terms: &wire.Terms{Capacity: 7, Rooms: rooms(3, 1, 4, 1)}}}
	terms := wire.Terms{Capacity: 9, Rooms: rooms(5, 2, 5, 2)}
	smallest(&terms, c, o)
	assert.Equal(t, wire.Terms{Capacity: 7, Rooms: rooms(5, 2, 4, 1)}, terms)
	o.sharing[1].Filesystem = 4
	terms = wire.Terms{Capacity: 9, Rooms: rooms(5, 2, 5, 2)}
	smallest(&terms, c, o)
	assert.Equal(t, wire.Terms{Capacity: 9, Rooms: rooms(5, 2, 5, 2)}, terms)
}
