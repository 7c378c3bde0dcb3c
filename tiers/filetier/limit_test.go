package filetier

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/ioengine"
)

// idleEngine is an engine that records its operations and completes none; the test removes them.
type idleEngine struct {
	ioengine.Engine
	has []string
}

func (d *idleEngine) Submit(op *ioengine.Op) {
	d.has = append(d.has, fmt.Sprintf("%v%d", op.Kind, op.FD))
}

func (d *idleEngine) Close(context.Context) error { return nil }

// Each case has the numbers of loading and storing threads, whether they are shared, the events, and
// the operations that are in flight at the end. An event is a new read or write (r, w), or the
// number of an operation that completes.
func TestThreadsOfAnEngine(t *testing.T) {
	for _, c := range []struct {
		name          string
		loads, stores int
		shared        bool
		does, want    string
	}{
		{"one for each request", 0, 0, false, "r r r w w", "read1 read2 read3 write4 write5"},
		{"one each", 1, 1, false, "r r w w", "read1 write3"},
		{"the next of its own", 1, 1, false, "r r w w 3 1", "write4 read2"},
		{"threads are not shared", 1, 1, false, "r r w 3", "read1"},
		{"one direction without limit", 2, 0, false, "r r r w w", "read1 read2 write4 write5"},
		{"nothing to lend", 2, 0, true, "r r r w w w", "read1 read2 write4 write5 write6"},
		{"all load", 2, 2, true, "r r r r r w", "read1 read2 read3 read4"},
		{"a shared thread returns to its direction", 2, 2, true, "r r r r r w w 1 2",
			"read3 read4 write6 write7"},
		{"its own come first", 2, 2, true, "r r w w r w 1", "read2 write3 write4 read5"},
		{"the other's if its own queue is empty", 2, 2, true, "r r w w w 1",
			"read2 write3 write4 write5"},
		{"idle ones are taken", 1, 2, true, "w w w r 1 2 r", "write3 read4 read5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &idleEngine{}
			l := newLimits(d, Threads{c.loads, c.stores}, c.shared)
			var passed [16]time.Duration
			n := 0
			for what := range strings.FieldsSeq(c.does) {
				n++
				switch what {
				case "r":
					l.loads.submit(&passed[n], &ioengine.Op{Kind: ioengine.Read, FD: n})
				case "w":
					l.stores.submit(&passed[n], &ioengine.Op{Kind: ioengine.Write, FD: n})
				default:
					n--
					i := slices.IndexFunc(d.has, func(op string) bool {
						return strings.TrimLeft(op, "adeirtw") == what
					})
					require.GreaterOrEqual(t, i, 0, "%s is not in flight: %s", what, d.has)
					from := &l.stores
					if strings.HasPrefix(d.has[i], "read") {
						from = &l.loads
					}
					d.has = slices.Delete(d.has, i, i+1)
					from.done(7)
				}
			}
			assert.Equal(t, c.want, strings.Join(d.has, " "))
		})
	}
}
