package policy

import (
	"context"
	"math"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/workloads/reuse"
)

// counter counts what one cache finds, and as its observer what moves in it.
type counter struct {
	point *reuse.Point
	// reads says that what is found must be read, too: the cache may copy it then.
	reads bool

	counts        bool // after warm-up
	first         time.Duration
	begun         bool
	interval      int64
	read, written int64 // bytes of the storage in the interval
}

var _ cache.Observer = (*counter)(nil)

// begin begins a request that comes so long after the first one.
func (n *counter) begin(at time.Duration, cfg *reuse.Config) {
	if n.counts = at >= cfg.Warmup; !n.counts {
		return
	}
	if !n.begun {
		n.begun, n.first = true, at
	}
	length := cfg.Interval
	if length <= 0 {
		length = reuse.DefaultInterval
	}
	if i := int64((at - n.first) / length); i != n.interval {
		n.endInterval()
		n.interval = i
	}
}

// endInterval looks whether it was the busiest.
func (n *counter) endInterval() {
	p := n.point
	p.PeakRead, p.PeakWrite = max(p.PeakRead, n.read), max(p.PeakWrite, n.written)
	n.read, n.written = 0, 0
}

// serve carries out what was decided about a request.
func (n *counter) serve(ctx context.Context, l *cache.Lease, wants []cache.Want, pieces []piece,
	r *request) {
	p, left := n.point, r.context
	for i := range wants {
		blocks, tokens := int64(pieces[i].blocks), min(left, int(pieces[i].blocks)*r.size)
		left -= tokens
		switch l.Outcome(i) {
		case cache.Hit:
			_, in, _ := l.Found(i)
			if in == tiers.Storage {
				n.reading(wants[i].Size)
			}
			if n.reads {
				_, _, _ = l.Read(ctx, i, cache.Tag{}) // nothing that takes no time fails
			}
			if n.counts {
				p.Hits += blocks
				p.HitTokens += int64(tokens)
				if i == 0 {
					p.PrefixHits++
				}
			}
		case cache.Unreachable:
			if n.counts {
				p.Unreachable += blocks
			}
		default:
			// What is too large is not there.
			_, res, err := l.Write(ctx, i, cache.Tag{})
			if err == nil && res.Level == tiers.Storage {
				n.writing(wants[i].Size)
			}
			if n.counts {
				p.Written += blocks
			}
		}
	}
}

// reading counts bytes that the storage reads for a request, but not the reads of its own moves.
func (n *counter) reading(bytes int64) {
	if n.counts {
		n.point.ReadBytes += bytes
		n.read += bytes
	}
}

// writing counts bytes that it writes, for a request or because they have to leave the cpu tier.
func (n *counter) writing(bytes int64) {
	if n.counts {
		n.point.WriteBytes += bytes
		n.written += bytes
	}
}

// Demoted implements cache.Observer: what leaves the cpu tier.
func (n *counter) Demoted(_ cache.Tag, o tiers.Object, _, to tiers.Kind, _, _ tiers.Timing) {
	if to == tiers.Storage {
		n.writing(o.Size)
	}
}

// Copied implements cache.Observer: what is written through, or when it is asked for again. A
// promotion writes to the cpu tier.
func (n *counter) Copied(_ cache.Tag, o tiers.Object, _, to tiers.Kind, _ tiers.Timing) {
	if to == tiers.Storage {
		n.writing(o.Size)
	}
}

// The rest is of times, of which there are none, and of what leaves for good.

func (*counter) Began(cache.Tag, tiers.Object, tiers.Kind, tiers.Op, tiers.Phase) {}
func (*counter) Chunk(cache.Tag, tiers.Kind, tiers.Phase, tiers.Chunk)            {}
func (*counter) Evicted(cache.Tag, tiers.Object, tiers.Kind)                      {}
func (*counter) Deleted(cache.Tag, tiers.Object, tiers.Kind, time.Duration)       {}
func (*counter) Failed(cache.Tag, tiers.Object, tiers.Kind, string, error)        {}
func (*counter) Retried(cache.Tag, tiers.Object, tiers.Kind, tiers.Op, error)     {}

// correct makes of what a policy does in a sample what it does in the whole trace: the difference
// from least recent use, as many times as the trace has more blocks, beside what is exact.
func correct(p, exact, sampled *reuse.Point, times float64, all *reuse.Summary) {
	for _, n := range []struct {
		of, exact, sampled *int64
		most               int64
	}{
		{&p.Hits, &exact.Hits, &sampled.Hits, all.Blocks},
		{&p.Written, &exact.Written, &sampled.Written, all.Blocks},
		{&p.HitTokens, &exact.HitTokens, &sampled.HitTokens, all.Tokens},
		{&p.PrefixHits, &exact.PrefixHits, &sampled.PrefixHits, all.Requests},
		{&p.ReadBytes, &exact.ReadBytes, &sampled.ReadBytes, all.Bytes},
		{&p.WriteBytes, &exact.WriteBytes, &sampled.WriteBytes, math.MaxInt64},
		{&p.PeakRead, &exact.PeakRead, &sampled.PeakRead, math.MaxInt64},
		{&p.PeakWrite, &exact.PeakWrite, &sampled.PeakWrite, math.MaxInt64},
	} {
		more := math.Round(times * float64(*n.of-*n.sampled))
		*n.of = min(max(0, *n.exact+int64(more)), n.most)
	}
	p.Written = min(p.Written, all.Blocks-p.Hits)
	p.Unreachable = all.Blocks - p.Hits - p.Written
}
