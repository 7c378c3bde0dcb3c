package enginetier_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/tiertest"
)

// side is how many objects of a request are under way beside each other in
// TestTheKernelSeesTheCallsBesideEachOther.
const side = 8

// TestTheKernelSeesTheCallsBesideEachOther does what TestTheKernelSeesTheCalls does with eight
// objects at a time. Their calls mix; those of each object, told by its path, are the same in the
// same order. Objects in slots of one file have a call or a few, which are counted.
func TestTheKernelSeesTheCallsBesideEachOther(t *testing.T) {
	if dir := os.Getenv(stracedDir); dir != "" {
		beWatchedBeside(t, dir)
		return
	}
	strace := straceFor(t)
	for _, l := range tiers.EngineLayouts {
		t.Run(l.Name, func(t *testing.T) {
			dir := t.TempDir()
			log := watch(t, strace, dir, l.Name)
			want, differences, objects := expected[l.Name], 0, 0
			for _, g := range groupsOf(t, log, dir) {
				calls := want.load
				if g.store {
					calls = want.store
				}
				if calls == "" { // Mooncake's buckets are written when they are full
					continue
				}
				for _, got := range g.objects() {
					objects++
					if !matches(calls, got) {
						differences++
						assert.Less(t, differences, 3, "%s", got)
					}
				}
			}
			assert.Zero(t, differences)
			wanted := 2 * straced
			if want.store == "" {
				wanted = straced
			}
			assert.Equal(t, wanted, objects)
			t.Logf("%d objects, %d at a time, %d differences", objects, side, differences)
		})
	}
}

// beWatchedBeside is the process under strace.
func beWatchedBeside(t *testing.T, where string) {
	at, tier := watchedTier(t, where, side)
	move := tiertest.Transfer(t, tier.Traits().Chunk, side)
	for _, what := range []string{"store", "load"} {
		for first := 0; first < straced; first += side {
			_, _ = os.Open(filepath.Join(at, "mark-"+what))
			objs := slices.Collect(func(yield func(tiers.Object) bool) {
				for i := range side {
					if !yield(object(first + i)) {
						return
					}
				}
			})
			carry := move.Write
			if what == "load" {
				carry = move.Read
			}
			n, _, err := carry(t.Context(), tier, nil, objs...)
			require.NoError(t, err)
			require.Equal(t, side, n)
		}
	}
	_, _ = os.Open(filepath.Join(at, "mark-end"))
}

// group is the calls between two marks.
type group struct {
	store bool
	calls []call
}

type call struct {
	text   string // as the table of expectations has it
	object string // the hash in the name of its file, "" where there is none
}

var (
	hash = regexp.MustCompile(`[0-9a-f]{64}`)
	// temporary is a name without the hash, which the file has until it is renamed.
	temporary = regexp.MustCompile(`\.[0-9a-f]{32}\.tmp`)
)

// groupsOf reads what strace has written.
func groupsOf(t *testing.T, log, dir string) (list []group) {
	t.Helper()
	f, err := os.Open(log)
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	pending := map[string]string{}
	within := false
	for lines.Scan() {
		name, args, is := oneCall(lines.Text(), pending)
		switch {
		case !is:
		case strings.Contains(args, "mark-end"):
			within = false
		case strings.Contains(args, "mark-"):
			within = true
			list = append(list, group{store: strings.Contains(args, "mark-store")})
		case within && (strings.Contains(args, dir+"/rank_0/engine") ||
			strings.Contains(args, "dynamo-kvbm")):
			g := &list[len(list)-1]
			c := call{described(name, args), hash.FindString(args)}
			switch before := temporary.FindString(args); {
			case before != "" && c.object == "":
				c.object = before
			case before != "":
				for i := range g.calls {
					if g.calls[i].object == before {
						g.calls[i].object = c.object
					}
				}
			}
			// Directories are made one object after the other, before its file.
			if n := len(g.calls); c.object == "" && n > 0 {
				c.object = g.calls[n-1].object
			}
			g.calls = append(g.calls, c)
		}
	}
	require.NoError(t, lines.Err())
	return list
}

// objects are the calls of each object of a group. In a file of slots each gets the next call of
// each kind: nothing names them.
func (g group) objects() (list []string) {
	at, seen := map[string]int{}, map[call]int{}
	for _, c := range g.calls {
		name := c.object
		if name == "" || strings.Contains(c.text, "pread") || strings.Contains(c.text, "pwrite") {
			name = fmt.Sprint("slot ", seen[c])
			seen[c]++
		}
		i, known := at[name]
		if !known {
			i = len(list)
			at[name], list = i, append(list, "")
		}
		list[i] = strings.TrimPrefix(list[i]+", "+c.text, ", ")
	}
	return list
}
