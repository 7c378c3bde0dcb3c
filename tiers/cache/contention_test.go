package cache

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
)

// A request for resident entries, its reads and its end, by so many at a time, of tiers without
// bytes or time: what the index alone costs. Its lock is one, for decisions fall in one order; the
// blocks of a request are decided and let go together.
func BenchmarkIndexContention(b *testing.B) {
	for _, blocks := range []int{1, 32} {
		b.Run(fmt.Sprintf("blocks=%d", blocks), func(b *testing.B) {
			tiertest.Crowd(b, func(b *testing.B) func(*testing.PB) {
				const prefixes = 64
				wall := clock.NewWall()
				c, err := New(Config{Clock: wall, Transfer: &transfer.Transfer{Clock: wall},
					Levels: []Level{{Kind: tiers.Storage, Capacity: 1 << 40}}, Observer: nobody{}})
				require.NoError(b, err)
				wants := make([][]Want, prefixes)
				for p := range wants {
					for i := range blocks {
						wants[p] = append(wants[p],
							Want{Key: fmt.Sprint(p, "/", i), Size: 1 << 20, Write: true})
					}
				}
				request := func(l *Lease, w []Want) {
					l.Prefix = blocks > 1
					assert.True(b, c.Decide(l, w))
					for i, n := 0, 0; i < len(w); i += n {
						if l.Owned(i) {
							n, _, err = l.Write(b.Context(), i, Tag{})
						} else {
							n, _, err = l.Read(b.Context(), i, Tag{})
						}
						if err != nil {
							b.Error(err)
							return
						}
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
