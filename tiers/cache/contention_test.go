package cache

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/tiertest"
)

// Each goroutine decides requests for resident entries, reads them and closes the lease. The tier has
// no bytes and takes no time, so the figure is what the index costs. The index has one lock, because
// decisions have an order. The decision about all blocks of a request takes it once. Adding blocks that
// evict others is the work of the same lock: kind=write.
func BenchmarkIndexContention(b *testing.B) {
	const prefixes, blockSize = 256, 1 << 20
	for _, load := range []struct {
		name     string
		blocks   int
		capacity int64 // blocks
	}{
		{"kind=read/blocks=1", 1, 1 << 20},
		{"kind=read/blocks=32", 32, 1 << 20},
		{"kind=write/blocks=1", 1, prefixes / 2},
	} {
		b.Run(load.name, func(b *testing.B) {
			tiertest.Crowd(b, func(b *testing.B) func(*testing.PB) {
				c := New(Config{Clock: clock.NewWall(), Observer: NoObserver{},
					Levels: []Level{{Kind: tiers.Storage, Capacity: load.capacity * blockSize}}})
				wants := make([][]Want, prefixes)
				for p := range wants {
					for i := range load.blocks {
						wants[p] = append(wants[p],
							Want{Key: fmt.Sprint(p, "/", i), Size: blockSize, Write: true})
					}
				}
				request := func(l *Lease, w []Want) {
					l.Prefix = load.blocks > 1
					assert.True(b, c.Decide(l, w))
					for i, n := 0, 0; i < len(w); i += n {
						move := l.Read
						if l.Owned(i) {
							move = l.Write
						}
						done, _, err := move(b.Context(), i, Tag{})
						if errors.Is(err, ErrGone) { // another goroutine's write has evicted it
							done = 1
						} else if err != nil {
							b.Error(err)
							return
						}
						n = done
					}
					l.Close(b.Context(), Tag{})
				}
				for _, w := range wants {
					request(new(Lease), w)
				}
				var workers atomic.Int64
				return func(pb *testing.PB) {
					var l Lease
					for n := int(workers.Add(1)); pb.Next(); n++ {
						request(&l, wants[n%prefixes])
					}
				}
			})
		})
	}
}
