package evict

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// thing is a held object in a test.
type thing struct {
	key  string
	size int64
}

func (t thing) Key() string { return t.key }
func (t thing) Size() int64 { return t.size }

// victims returns the keys in the order of eviction.
func victims(o Order) (keys []string) {
	for it := range o.Victims {
		keys = append(keys, it.Entry.Key())
	}
	return keys
}

// allOrders returns all orders.
func allOrders() map[string]func(int64) Order {
	all := map[string]func(int64) Order{"buckets": func(int64) Order { return NewBuckets(64, 5) }}
	for _, name := range Names() {
		all[name] = Named(name)
	}
	return all
}

// After any calls an order yields each item once, Victims changes nothing, and the same calls give the
// same order again.
func TestOrdersKeepWhatTheyHold(t *testing.T) {
	for name, open := range allOrders() {
		t.Run(name, func(t *testing.T) {
			run := func(look bool) (trail []string) {
				rng := rand.New(rand.NewPCG(5, 6))
				o := open(400)
				held := map[string]*Item{}
				recency := uint64(0)
				next := func() uint64 { recency++; return recency }
				for i := range 4000 {
					key := fmt.Sprint("k", rng.IntN(120))
					switch it := held[key]; {
					case it == nil:
						it = &Item{Entry: thing{key, 1 + rng.Int64N(20)}, Recency: next()}
						held[key] = it
						o.Add(it)
					case rng.IntN(5) == 0:
						o.Remove(it)
						delete(held, key)
					default:
						it.Recency = next()
						o.Touch(it)
					}
					for total(held) > 400 { // as a cache does
						var first *Item
						for it := range o.Victims {
							first = it
							break
						}
						o.Remove(first)
						delete(held, first.Entry.Key())
						trail = append(trail, first.Entry.Key())
					}
					if look && i%7 == 0 {
						got := victims(o)
						require.Equal(t, got, victims(o))
						require.Len(t, got, len(held))
						slices.Sort(got)
						require.Len(t, slices.Compact(got), len(held), "each once")
					}
				}
				return trail
			}
			trail := run(true)
			assert.NotEmpty(t, trail)
			assert.Equal(t, trail, run(false), "looking changes nothing")
		})
	}
}

func total(held map[string]*Item) (n int64) {
	for _, it := range held {
		n += it.Entry.Size()
	}
	return n
}

// s3 is S3-FIFO as in its paper, on slices: an eviction changes the items that it passes.
type s3 struct {
	small, main []*Item
	ghost       []string
	hits        map[string]int
	capacity    int64
}

func bytes(q []*Item) (n int64) {
	for _, it := range q {
		n += it.Entry.Size()
	}
	return n
}

func (s *s3) use(key string, size int64) (evicted []string) {
	for _, q := range [][]*Item{s.small, s.main} {
		if slices.ContainsFunc(q, func(it *Item) bool { return it.Entry.Key() == key }) {
			s.hits[key] = min(3, s.hits[key]+1)
			return nil
		}
	}
	for bytes(s.small)+bytes(s.main)+size > s.capacity {
		evicted = append(evicted, s.evict())
	}
	s.hits[key] = 0
	it := &Item{Entry: thing{key, size}}
	if i := slices.Index(s.ghost, key); i >= 0 {
		s.ghost = slices.Delete(s.ghost, i, i+1)
		s.main = append(s.main, it)
	} else {
		s.small = append(s.small, it)
	}
	return evicted
}

func (s *s3) evict() string {
	for {
		if bytes(s.small) >= max(1, s.capacity/10) || len(s.main) == 0 {
			it := s.small[0]
			key := it.Entry.Key()
			s.small = s.small[1:]
			if s.hits[key] >= 2 {
				s.hits[key] = 0
				s.main = append(s.main, it)
				continue
			}
			s.ghost = append(s.ghost, key)
			for len(s.ghost) > len(s.small)+len(s.main)+1 {
				s.ghost = s.ghost[1:]
			}
			return key
		}
		it := s.main[0]
		key := it.Entry.Key()
		s.main = s.main[1:]
		if s.hits[key] == 0 {
			return key
		}
		s.hits[key]--
		s.main = append(s.main, it)
	}
}

// The order evicts the same items as the paper's S3-FIFO, one or several at a time: a cache first chooses
// all victims for an entry, and then removes them in that order.
func TestS3FIFOIsThatOfThePaper(t *testing.T) {
	for _, largest := range []int64{1, 9} {
		rng := rand.New(rand.NewPCG(1, 9))
		paper := &s3{hits: map[string]int{}, capacity: 60}
		o, held := NewS3FIFO(60), map[string]*Item{}
		evictions := 0
		for range 5000 {
			n := min(rng.IntN(200), rng.IntN(200))
			key, size := fmt.Sprint("k", n), 1+int64(n)%largest
			want := paper.use(key, size)
			var got []string
			if it := held[key]; it != nil {
				o.Touch(it)
			} else {
				var leave []*Item
				free := 60 - total(held)
				for it := range o.Victims {
					if free >= size {
						break
					}
					leave = append(leave, it)
					free += it.Entry.Size()
				}
				for _, it := range leave {
					got = append(got, it.Entry.Key())
					o.Remove(it)
					delete(held, it.Entry.Key())
				}
				held[key] = &Item{Entry: thing{key, size}}
				o.Add(held[key])
			}
			require.Equal(t, want, got)
			evictions += len(got)
		}
		assert.Greater(t, evictions, 1000)
	}
}
