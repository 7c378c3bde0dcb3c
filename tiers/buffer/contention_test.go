package buffer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/tiertest"
)

// Get and Put of a buffer, by so many at a time, each of whom finds one free.
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
