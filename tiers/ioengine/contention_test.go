package ioengine_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/tiertest"
)

// What an engine adds to a system call: to another one than a request, and to a request of psync that
// reads no byte. Each goroutine has a file of its own.
func BenchmarkCallContention(b *testing.B) {
	start := time.Now()
	now := func() time.Duration { return time.Since(start) }
	b.Run("call", func(b *testing.B) {
		tiertest.Crowd(b, func(*testing.B) func(*testing.PB) {
			e := ioengine.NewPsync(now)
			return func(pb *testing.PB) {
				for pb.Next() {
					_ = e.Call("none", "/nowhere", func() error { return nil })
				}
			}
		})
	})
	b.Run("psync", func(b *testing.B) {
		tiertest.Crowd(b, func(b *testing.B) func(*testing.PB) {
			e := ioengine.NewPsync(now)
			return func(pb *testing.PB) {
				f, err := os.Create(filepath.Join(b.TempDir(), "f"))
				if err != nil {
					b.Error(err)
					return
				}
				defer f.Close()
				done := make(chan struct{})
				op := ioengine.Op{Kind: ioengine.Read, FD: int(f.Fd()), Buf: tiers.Buffer{B: nil}}
				op.Done = func(op *ioengine.Op) {
					if pb.Next() {
						e.Submit(op) // again, on the same worker
						return
					}
					close(done)
				}
				e.Submit(&op)
				<-done
			}
		})
	})
}
