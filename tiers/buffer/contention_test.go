package buffer_test // tiertest imports buffer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/tiertest"
)

// Each goroutine gets one buffer, of which there are enough, and puts it back.
func BenchmarkPoolContention(b *testing.B) {
	tiertest.Crowd(b, func(b *testing.B) func(*testing.PB) {
		p, err := buffer.NewPool(64, buffer.PageSize)
		require.NoError(b, err)
		b.Cleanup(func() { p.Close() })
		return func(pb *testing.PB) {
			var bufs []tiers.Buffer
			for pb.Next() {
				var err error
				if bufs, err = p.Get(b.Context(), 1, bufs[:0]); err != nil {
					b.Error(err)
					return
				}
				p.Put(bufs...)
			}
		}
	})
}
