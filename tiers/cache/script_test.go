package cache

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/evict"
)

// TestDecisions runs the scripts of testdata/decisions: the outcomes of a request, the victims of its
// writes, and the bytes and order of each level afterwards, first victim first. -rewrite updates
// them.
//
//	cache gpu=100 cpu=100 storage=200   levels and their capacities; fifo, lfu, s3-fifo,
//	                                    buckets=n: another order; gpu-only=x: only these keys may
//	                                    be in the gpu level; write-through, write-back, selective,
//	                                    promote, after=n, behind=n, keep=x, largest=x: other policies
//	counts                              the cache's Moves
//	write a=60 b=60                     keys that are written if they are absent
//	read a b                            keys that are not written
//	blocks a=60 b=60                    blocks of one prefix
func TestDecisions(t *testing.T) {
	datadriven.Walk(t, "testdata/decisions", func(t *testing.T, path string) {
		var c *Cache
		log := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			log.Reset()
			switch d.Cmd {
			case "cache":
				c = scriptCache(t, d, log)
				return log.levels(c)
			case "write", "read", "blocks":
				log.request(t, c, d)
				require.NoError(t, c.check())
				return log.String() + log.levels(c)
			case "counts":
				return log.counts(c)
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

// script is an Observer that records evictions, demotions and copies.
type script struct {
	NoObserver
	strings.Builder
}

func (s *script) Copied(_ Tag, o tiers.Object, from, to tiers.Kind, _ tiers.Timing) {
	fmt.Fprintf(s, "copy %s from %s to %s\n", o.Key, from, to)
}

// counts returns the counts that are not zero.
func (s *script) counts(c *Cache) string {
	m := c.Moves()
	var b strings.Builder
	for _, n := range []struct {
		name string
		Count
	}{{"copied", m.Copied}, {"promoted", m.Promoted}, {"dropped", m.Dropped},
		{"refused", m.Refused}, {"unwritten", m.Unwritten}} {
		if n.Entries > 0 {
			fmt.Fprintf(&b, "%s %d, %d bytes\n", n.name, n.Entries, n.Bytes)
		}
	}
	return b.String()
}

func (s *script) Evicted(_ Tag, o tiers.Object, l tiers.Kind) {
	fmt.Fprintf(s, "evict %s from %s\n", o.Key, l)
}

func (s *script) Demoted(_ Tag, o tiers.Object, from, to tiers.Kind, _, _ tiers.Timing) {
	fmt.Fprintf(s, "demote %s from %s to %s\n", o.Key, from, to)
}

func scriptCache(t *testing.T, d *datadriven.TestData, log *script) *Cache {
	cfg := Config{Clock: &still{}, Observer: log}
	for k := range tiers.NumKinds {
		var capacity int64
		if d.MaybeScanArgs(t, k.String(), &capacity); capacity > 0 {
			cfg.Levels = append(cfg.Levels, Level{Kind: k, Capacity: capacity})
		}
	}
	for _, name := range evict.Names() {
		if d.HasArg(name) {
			cfg.Policy.Evict = evict.Named(name)
		}
	}
	if n := int64(0); d.HasArg("buckets") {
		d.ScanArgs(t, "buckets", &n)
		cfg.Policy.Evict = func(int64) evict.Order { return evict.NewBuckets(n, 100) }
	}
	for i, name := range []string{"write-through", "write-back", "selective"} {
		if d.HasArg(name) {
			cfg.Policy.Place = Placement(i + 1)
		}
	}
	if d.HasArg("promote") {
		cfg.Policy.Promote = OnHit
	}
	d.MaybeScanArgs(t, "after", &cfg.Policy.After)
	d.MaybeScanArgs(t, "behind", &cfg.Policy.Behind)
	for name, share := range map[string]*float64{"keep": &cfg.Policy.Keep, "largest": &cfg.Policy.Largest} {
		if percent := 0; d.MaybeScanArgs(t, name, &percent) {
			*share = float64(percent) / 100
		}
	}
	c := New(cfg)
	return c
}

// request decides, reads and writes.
func (s *script) request(t *testing.T, c *Cache, d *datadriven.TestData) {
	l := Lease{Prefix: d.Cmd == "blocks"}
	var wants []Want
	for _, arg := range d.CmdArgs {
		w := Want{Key: arg.Key, Write: d.Cmd == "write"}
		if len(arg.Vals) > 0 {
			size, err := strconv.ParseInt(arg.Vals[0], 10, 64)
			require.NoError(t, err)
			w.Size = size
		}
		wants = append(wants, w)
	}
	require.True(t, c.Decide(&l, wants))
	defer l.Close(t.Context(), Tag{})
	for i, w := range wants {
		out := l.Outcome(i)
		var res Result
		var err error
		switch {
		case l.Owned(i):
			_, res, err = l.Write(t.Context(), i, Tag{})
		case out == Hit:
			_, res, err = l.Read(t.Context(), i, Tag{})
		default:
			fmt.Fprintf(s, "%s: %s\n", w.Key, out)
			continue
		}
		if err != nil {
			fmt.Fprintf(s, "%s: %s, %v\n", w.Key, out, err)
			continue
		}
		fmt.Fprintf(s, "%s: %s, %s\n", w.Key, out, res.Level)
	}
}

// levels prints the bytes and the order of each level.
func (s *script) levels(c *Cache) string {
	var b strings.Builder
	order := cacheState(c)
	for i, g := range c.Gauges(nil) {
		line := fmt.Sprintf("  %-8s %4d of %4d: %s", g.Level, g.Used, g.Capacity,
			strings.Join(order[i], " "))
		b.WriteString(strings.TrimRight(line, ": ") + "\n")
	}
	return b.String()
}
