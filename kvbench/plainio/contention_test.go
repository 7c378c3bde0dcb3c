package plainio

import (
	"sync/atomic"
	"testing"

	"kvbench/tiers"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
)

// storing is a null tier that claims to store bytes, so that writes stamp their blocks.
type storing struct{ *tiertest.Null }

func (storing) Traits() tiers.Traits { return tiers.Traits{Align: pageSize, Holds: true} }

// Each goroutine chooses the places of a worker's requests, and stamps the block if it writes. Each
// keeps its state as Step does.
func BenchmarkPlaceContention(b *testing.B) {
	for _, op := range []tiers.Op{tiers.Read, tiers.Write} {
		b.Run("op="+op.String(), func(b *testing.B) {
			tiertest.Crowd(b, func(b *testing.B) func(*testing.PB) {
				null := storing{tiertest.NewNull()}
				r := &Blocks{Op: op, Size: pageSize, fileSize: 64 << 20, files: make([]region, 16),
					mover: &mover{bench: &Bench{}, tier: transfer.New(null, nil)}}
				for i := range r.files {
					w, err := null.Create(b.Context(), tiers.Object{Size: r.fileSize})
					if err != nil {
						b.Fatal(err)
					}
					r.files[i].lanes = []tiers.Submitter{w}
				}
				var workers atomic.Int64
				return func(pb *testing.PB) {
					state := seedWorkers(1, int(workers.Add(1)), 1)[0]
					next := r.anywhere(0, state.draws, &state.n, r.Size, r.bench.over.Load)
					io := &tiers.IO{Buf: tiers.Buffer{B: make([]byte, pageSize)}}
					for pb.Next() {
						if next(io) == nil {
							b.Error("no request")
							return
						}
					}
				}
			})
		})
	}
}
