package coordinate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/group/wire"
)

// disks are directories that ranks work in: those with one number see each other's marks.
type disks struct {
	mu    sync.Mutex
	of    []int
	marks map[int]string
	fails map[int]error // to make a mark
}

// desk is a rank's.
type desk struct {
	*disks
	rank int
}

func (d desk) Make() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fails[d.rank]; err != nil {
		return "", err
	}
	d.marks[d.rank] = string(rune('a' + d.rank))
	return d.marks[d.rank], nil
}

func (d desk) Look(ranks []int) (seen []wire.Mark, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, rank := range ranks {
		if content, is := d.marks[rank]; is && d.of[rank] == d.of[d.rank] {
			seen = append(seen, wire.Mark{Rank: rank, Content: content})
		}
	}
	return seen, nil
}

func (d desk) Remove() {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.marks, d.rank)
}

// begun lets ranks with hellos find out who shares what.
func begun(t *testing.T, d *disks, hellos []wire.Hello) ([]wire.Sharing, error) {
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
	var list []wire.Sharing
	for _, m := range members {
		if err == nil {
			who, why := m.Gathered(t.Context())
			require.NoError(t, why)
			require.Equal(t, hellos[0].Ranks, who.Ranks)
			list = append(list, m.Sharing())
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
		name    string
		boots   []string
		devices []string
		of      []int // disks
		want    []int // filesystem of each rank
		ranks   []int // that share each rank's
	}{
		{"one host", []string{"a", "a"}, []string{"1", "1"}, []int{0, 1}, []int{1, 1}, []int{2, 2}},
		{"one host, a disk each", []string{"a", "a"}, []string{"1", "2"}, []int{0, 1},
			[]int{1, 2}, []int{1, 1}},
		{"two hosts", []string{"a", "a", "b", "b"}, []string{"1", "1", "1", "1"},
			[]int{0, 0, 1, 1}, []int{1, 1, 2, 2}, []int{2, 2, 2, 2}},
		{"two hosts, one filesystem", []string{"a", "b", "b"}, []string{"1", "7", "7"},
			[]int{0, 0, 0}, []int{1, 1, 1}, []int{3, 3, 3}},
		{"three hosts, two share", []string{"a", "b", "c"}, []string{"1", "1", "1"},
			[]int{0, 1, 0}, []int{1, 2, 1}, []int{2, 1, 2}},
		{"nobody knows the boot", []string{"", "", ""}, []string{"1", "1", "1"},
			[]int{0, 1, 0}, []int{1, 2, 1}, []int{2, 1, 2}},
		{"an object store", []string{"a", "b"}, []string{"", ""}, []int{0, 0}, []int{0, 0},
			[]int{0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &disks{of: c.of, marks: map[int]string{}}
				var hellos []wire.Hello
				for rank := range c.of {
					h := hello(rank, len(c.of))
					h.Boot, h.Host, h.Device = c.boots[rank], c.boots[rank], c.devices[rank]
					hellos = append(hellos, h)
				}
				list, err := begun(t, d, hellos)
				require.NoError(t, err)
				for rank, s := range list {
					assert.Equal(t, []int{c.want[rank], c.ranks[rank], slices.Max(c.want)},
						[]int{s.Filesystem, s.Ranks, s.Filesystems}, rank)
				}
				assert.Empty(t, slices.Collect(maps.Keys(d.marks)))
			})
		})
	}
}

// TestAProbeThatFails: it says who, and nothing stays.
func TestAProbeThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disks{of: []int{0, 0}, marks: map[int]string{},
			fails: map[int]error{1: errors.New("read-only file system")}}
		a, b := hello(0, 2), hello(1, 2)
		a.Device, b.Device, b.Boot = "1", "1", "other"
		_, err := begun(t, d, []wire.Hello{a, b})
		require.EqualError(t, err, "rank 1 on h0 (pid 101) cannot find out which ranks share its "+
			"filesystem: read-only file system")
		assert.Empty(t, d.marks)
	})
}
