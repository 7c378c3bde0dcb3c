package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
	"kvbench/tiers/evict"
	"kvbench/tiers/transfer"
)

// bookTier is a tier without bytes that checks its user. It knows which objects exist and are open,
// and fails the test if the cache exceeds the capacity, reads a deleted object, or deletes an object
// that is being read.
type bookTier struct {
	t        *testing.T
	capacity int64
	mu       sync.Mutex
	bytes    int64 // being written and committed
	objects  map[tiers.Object]int
	breakOp  func() error // called before each operation, which fails with its error
	pause    func()
	// neighbours chooses how many objects share a reader or writer; nil: one.
	// Guarded by mu.
	neighbours rand.Source
}

func newBookTier(t *testing.T, capacity int64) *bookTier {
	return &bookTier{t: t, capacity: capacity, objects: map[tiers.Object]int{},
		breakOp: func() error { return nil }, pause: func() {}}
}

func (b *bookTier) Traits() tiers.Traits {
	if b.neighbours != nil {
		return tiers.Traits{Holds: true, Align: 1, Extent: 4096,
			Description: "stores with neighbours"}
	}
	return tiers.Traits{Align: 1, Description: "stores"}
}

func (b *bookTier) Close() error { return nil }

// pick chooses the objects of a reader or writer. Callers hold mu.
func (b *bookTier) pick(objs []tiers.Object) bookExtent {
	n := 1
	if b.neighbours != nil {
		n += int(b.neighbours.Uint64() % uint64(len(objs)))
	}
	for n > 1 && bytesOf(objs[:n]) > 4096 {
		n--
	}
	return bookExtent{b: b, objects: slices.Clone(objs[:n])}
}

func (b *bookTier) Create(_ context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	if err := b.breakOp(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &bookWriter{b.pick(objs)}
	b.bytes += bytesOf(w.objects)
	if b.bytes > b.capacity {
		b.t.Errorf("capacity exceeded: %d of %d bytes", b.bytes, b.capacity)
	}
	return w, nil
}

func (b *bookTier) Open(_ context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	if err := b.breakOp(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &bookReader{b.pick(objs)}
	for _, o := range r.objects {
		if _, ok := b.objects[o]; !ok {
			b.t.Errorf("%s gen %d is read and does not exist", o.Key, o.Gen)
			return nil, tiers.ErrNotFound
		}
		b.objects[o]++
	}
	return r, nil
}

func (b *bookTier) Remove(_ context.Context, objs ...tiers.Object) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range objs {
		readers, ok := b.objects[o]
		if !ok {
			b.t.Errorf("%s gen %d is removed and does not exist", o.Key, o.Gen)
			return tiers.ErrNotFound
		}
		if readers > 0 {
			b.t.Errorf("%s gen %d is removed under %d readers", o.Key, o.Gen, readers)
		}
		delete(b.objects, o)
		b.bytes -= o.Size
	}
	return nil
}

type bookExtent struct {
	b       *bookTier
	objects []tiers.Object
	over    bool
}

func (x *bookExtent) Len() int            { return len(x.objects) }
func (x *bookExtent) Start(i int) int64   { return bytesOf(x.objects[:i]) }
func (x *bookExtent) Submit(io *tiers.IO) { io.End(nil) }

type bookWriter struct{ bookExtent }

// Commit commits all objects or none.
func (w *bookWriter) Commit(context.Context) error {
	w.b.pause()
	if err := w.b.breakOp(); err != nil {
		return errors.Join(err, w.Abort())
	}
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	w.over = true
	for _, o := range w.objects {
		if _, ok := w.b.objects[o]; ok {
			w.b.t.Errorf("%s gen %d is written twice", o.Key, o.Gen)
		}
		w.b.objects[o] = 0
	}
	return nil
}

func (w *bookWriter) Abort() error {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	if !w.over {
		w.over = true
		w.b.bytes -= bytesOf(w.objects)
	}
	return nil
}

type bookReader struct{ bookExtent }

func (r *bookReader) Close() error {
	r.b.pause()
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	if !r.over {
		r.over = true
		for _, o := range r.objects {
			r.b.objects[o]--
		}
	}
	return nil
}

// check verifies what must hold at any moment for the account of every level.
func (c *Cache) check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := map[*level]int64{}
	leaving := map[*level]int64{}
	count := map[*level]int64{}
	for _, e := range c.index {
		if e.cur == nil {
			continue
		}
		count[e.cur.in]++
		if e.state == moving && e.in != e.cur.in && e.copied != e.cur {
			leaving[e.cur.in] += e.size
		} else {
			sum[e.cur.in] += e.size
		}
		if e.copied != nil && e.copied != e.cur {
			count[e.copied.in]++
			sum[e.copied.in] += e.size
		}
		switch {
		case e.copied != nil && (e.in.last || !e.copied.in.last || e.copying):
			return fmt.Errorf("%s in %s has a copy in %s (copying %v)", e.key, e.in.Kind,
				e.copied.in.Kind, e.copying)
		case e.hasLower() && c.policy.Place == Exclusive:
			return fmt.Errorf("%s has a copy under an exclusive policy", e.key)
		}
	}
	for _, s := range c.levels {
		limit := max(s.limit, s.largest)
		switch {
		case s.used > limit:
			return fmt.Errorf("%s: used %d exceeds the limit %d", s.Kind, s.used, limit)
		case s.used-s.leaving+s.claimed > limit:
			return fmt.Errorf("%s: claims cannot be met: used %d - leaving %d + claimed %d > %d",
				s.Kind, s.used, s.leaving, s.claimed, limit)
		case s.reserved < 0 || s.claimed < 0 || s.leaving < leaving[s]:
			return fmt.Errorf("%s: reserved %d claimed %d leaving %d (demoting %d)", s.Kind,
				s.reserved, s.claimed, s.leaving, leaving[s])
		case s.used != sum[s]+s.reserved+s.leaving:
			return fmt.Errorf("%s: used %d is not entries %d + reserved %d + leaving %d", s.Kind,
				s.used, sum[s], s.reserved, s.leaving)
		case s.entries != count[s]:
			return fmt.Errorf("%s: %d entries counted, %d in the index", s.Kind, s.entries,
				count[s])
		}
		exact := reflect.TypeOf(s.order) == reflect.TypeOf(evict.NewLRU(0))
		var last uint64
		n := 0
		for it := range s.order.Victims {
			e := it.Entry.(*Entry)
			here := e.in == s || s.last && e.hasLower()
			if exact && it.Recency <= last || !here || c.index[e.key] != e {
				return fmt.Errorf("%s: %s (%d after %d, %s) is out of order", s.Kind, e.key,
					it.Recency, last, e.state)
			}
			last = it.Recency
			n++
		}
		for _, e := range c.index {
			if e.in == s || s.last && e.hasLower() {
				n--
			}
		}
		if n != 0 {
			return fmt.Errorf("%s: the order has %d entries too many", s.Kind, n)
		}
	}
	return nil
}

// quiet verifies what must hold without operations in progress: no reservation, no claim, no leaving
// bytes, and the tiers hold exactly the objects of the index.
func (c *Cache) quiet(t *testing.T, stores map[tiers.Kind]*bookTier) {
	t.Helper()
	require.NoError(t, c.check())
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Empty(t, c.planning)
	for _, s := range c.levels {
		require.Zero(t, s.reserved, "%s reserved", s.Kind)
		require.Zero(t, s.claimed, "%s claimed", s.Kind)
		require.Zero(t, s.leaving, "%s leaving", s.Kind)
		require.Empty(t, s.claimers)
		b := stores[s.Kind]
		require.Equal(t, s.used, b.bytes, "%s: bytes in the tier", s.Kind)
		require.Len(t, b.objects, int(s.entries))
	}
	for _, e := range c.index {
		require.Equal(t, resident, e.state, e.key)
		require.Zero(t, e.cur.pins, e.key)
		require.Contains(t, stores[e.cur.in.Kind].objects, e.cur.obj)
		require.False(t, e.copying)
		if e.copied != nil {
			require.Contains(t, stores[e.copied.in.Kind].objects, e.copied.obj)
		}
	}
}

// tally is an Observer that counts evictions and demotions.
type tally struct {
	NoObserver
	evicted, demoted atomic.Int64
}

func (n *tally) Evicted(Tag, tiers.Object, tiers.Kind) { n.evicted.Add(1) }

func (n *tally) Demoted(Tag, tiers.Object, tiers.Kind, tiers.Kind, tiers.Timing, tiers.Timing) {
	n.demoted.Add(1)
}

// left returns how many entries were evicted and demoted.
func (c *Cache) left() [2]int64 {
	n := c.observer.(*tally)
	return [2]int64{n.evicted.Load(), n.demoted.Load()}
}

// clear deletes every entry.
func (c *Cache) clear(t *testing.T) {
	t.Helper()
	for key := range c.index {
		require.NoError(t, c.Forget(t.Context(), Tag{}, key))
	}
}

// still is a clock whose time does not advance: goroutines wait only for each other's events.
type still struct{ clock.Wall }

func (*still) Now() time.Duration { return 0 }

// testCache makes a cache over book tiers of the given capacities (0 = none),
// in the order gpu, cpu, storage.
func testCache(t *testing.T, writers int, capacity ...int64) (*Cache, map[tiers.Kind]*bookTier) {
	t.Helper()
	return policyCache(t, writers, false, Policy{}, capacity...)
}

// policyCache is testCache with a policy, with or without runs in the lowest tier.
func policyCache(t *testing.T, writers int, runs bool, p Policy, capacity ...int64) (*Cache,
	map[tiers.Kind]*bookTier) {
	t.Helper()
	stores := map[tiers.Kind]*bookTier{}
	pool, err := buffer.NewPool(16, 4096)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pool.Close()) })
	settings := &transfer.Settings{Pool: pool, Chunk: 4096, Depth: 1, Clock: &still{}}
	bytes := content.New([16]byte{1}, 0)
	cfg := Config{MaxWriters: writers, Clock: &still{}, Source: bytes.Source,
		Sink: &content.Verifier{Content: bytes}, Observer: &tally{}, Policy: p}
	for i, n := range capacity {
		if n == 0 {
			continue
		}
		l := tiers.Kind(i)
		stores[l] = newBookTier(t, n)
		cfg.Levels = append(cfg.Levels, Level{Kind: l, Tier: transfer.New(stores[l], settings),
			Capacity: n})
	}
	if last := &cfg.Levels[len(cfg.Levels)-1]; runs {
		stores[last.Kind].neighbours = rand.NewPCG(1, 2)
	}
	c := New(cfg)
	return c, stores
}

// use decides, writes its misses and reads its hits, as a request does.
func use(ctx context.Context, c *Cache, l *Lease, in ...Want) (hits, misses int, err error) {
	c.Decide(l, in)
	defer l.Close(ctx, Tag{})
	for i := range in {
		if l.Owned(i) {
			if _, _, err = l.Write(ctx, i, Tag{}); err != nil {
				return hits, misses, err
			}
			misses++
			continue
		}
		if l.Outcome(i) == Miss {
			misses++
			continue
		}
		if _, _, err = l.Read(ctx, i, Tag{Phase: tiers.Decode}); err != nil {
			return hits, misses, err
		}
		hits++
	}
	return hits, misses, nil
}

func gosched(r *rand.Rand) {
	for range r.IntN(4) {
		runtime.Gosched()
	}
}

func (o Outcome) String() string {
	return [...]string{"hit", "pending", "miss", "unreachable"}[o]
}
