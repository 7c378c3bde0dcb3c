//go:build linux && (amd64 || arm64)

package collector

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProcessesAndChildren(t *testing.T) {
	all := []procfs.ProcStat{process(1, 0, "init"), process(5, 1, "vllm"), process(9, 7, "worker"),
		process(7, 5, "sh"), process(8, 1, "other")}
	ids := withChildren(all, func(p procfs.ProcStat) bool { return p.Comm == "vllm" })
	assert.Equal(t, []int{5, 7, 9}, ids)
	here := processes()
	own := withChildren(here, func(p procfs.ProcStat) bool { return p.PID == os.Getpid() })
	assert.Contains(t, own, os.Getpid())
	i := slices.IndexFunc(here, func(p procfs.ProcStat) bool { return p.PID == os.Getpid() })
	comm, err := os.ReadFile("/proc/self/comm")
	require.NoError(t, err)
	assert.Equal(t, strings.TrimSpace(string(comm)), here[i].Comm)
	assert.Equal(t, os.Getppid(), here[i].PPID)
	assert.True(t, alive(os.Getpid()))
}

func process(pid, parent int, comm string) procfs.ProcStat {
	return procfs.ProcStat{PID: pid, PPID: parent, Comm: comm}
}

// TestWhoIsStartedWhileTheFirstAreWatched simulates a watched process that starts a child in each
// possible step. Before the parent is watched only the next list shows the child.
func TestWhoIsStartedWhileTheFirstAreWatched(t *testing.T) {
	for _, c := range []struct {
		name  string
		at    string // the step in which 7 starts 8
		ended int    // a listed process without an id
		want  []int
		lists int // how many lists are read
	}{
		{"nothing happens", "", 0, []int{7}, 2},
		{"before the list", "list 1", 0, []int{7, 8}, 2},
		{"between list and ids", "ids 1", 0, []int{7, 8}, 3},
		{"between ids and watching", "watch 7", 0, []int{7, 8}, 3},
		{"when it is watched", "list 2", 0, []int{7, 8}, 2},
		{"one has ended", "", 9, []int{7}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			running := []procfs.ProcStat{process(1, 0, "init"), process(7, 1, "fio"),
				process(9, 7, "fio")}
			watched, lists, reads := map[int]bool{}, 0, 0
			if c.ended == 0 {
				running = running[:2]
			}
			now := func(step string) {
				if step == c.at {
					running = append(running, process(8, 7, "worker"))
					watched[8] = watched[7] // as the program at fork does
				}
			}
			err := untilNoneIsNew(func() []procfs.ProcStat {
				lists++
				now(fmt.Sprint("list ", lists))
				return slices.Clone(running)
			}, func() (map[uint32]uint32, error) {
				reads++
				now(fmt.Sprint("ids ", reads))
				ids := map[uint32]uint32{}
				for _, p := range running {
					if p.PID != c.ended {
						ids[uint32(p.PID)] = uint32(p.PID) + 1000
					}
				}
				return ids, nil
			}, func(p procfs.ProcStat) bool {
				return p.Comm == "fio"
			}, func(pid int, id uint32) (bool, error) {
				now(fmt.Sprint("watch ", pid))
				assert.EqualValues(t, pid+1000, id)
				isNew := !watched[pid]
				watched[pid] = true
				return isNew, nil
			})
			require.NoError(t, err)
			maps.DeleteFunc(watched, func(_ int, yes bool) bool { return !yes })
			assert.Equal(t, c.want, slices.Sorted(maps.Keys(watched)))
			assert.Equal(t, c.lists, lists)
		})
	}
}
