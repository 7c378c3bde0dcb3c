package record

import (
	"time"

	"kvbench/tiers"
	"kvbench/tracing"
	"kvbench/workloads"
)

// A timeline is a list of buckets of equal length from the start of the window. If the run needs
// more than maxBuckets buckets, pairs are joined and the interval doubles, so memory is bounded and
// no count is lost. 4096 buckets are more points than a page shows, and take half a megabyte per
// shard. 10 ms is the shortest interval in which a drive moves enough bytes for a rate.
const (
	maxBuckets      = 4096
	minInterval     = 10 * time.Millisecond
	defaultInterval = time.Second
)

// TimelineInterval returns the first interval: a second; for shorter windows a hundredth of it, at
// least 10 ms. A window of unknown length starts with 10 ms, and the interval doubles during the
// run.
func TimelineInterval(window time.Duration) time.Duration {
	if window <= 0 || window > workloads.Never/2 {
		return minInterval
	}
	return min(max(window/100, minInterval), defaultInterval)
}

// bucket has the counters, the last gauge reading and the latencies of one interval.
type bucket struct {
	n     [numBucketCounters]int64
	gauge *Gauge              // nil: none
	times [numTimed]*timeRows // nil: nothing of that kind
}

// timeRows counts times in rows of half an octave, from 1 µs. The last row has half a day and more.
// A histogram of three digits would take a thousand times as much memory per interval.
type timeRows [72]uint32

// timed is a kind of latency in the timeline: of the storage tier's entries, of the storage tier's
// requests, and of requests of the load. An entry may need thousands of requests to the device, so
// the timeline has both.
type timed uint8

const (
	timedRead timed = iota
	timedWrite
	timedReadRequest
	timedWriteRequest
	timedEndToEnd
	timedTTFT
	numTimed
)

var timedHists = func() [numTimed]hist {
	read, write := histLevels[tiers.Storage].op[tiers.Read], histLevels[tiers.Storage].op[tiers.Write]
	return [...]hist{read.io, write.io, read.request, write.request, histEndToEnd, histTTFT}
}()

// took counts a time in the interval of its end.
func (t *timeline) took(what timed, at, d time.Duration) {
	if t.silent {
		return
	}
	b := t.at(at)
	if b.times[what] == nil {
		b.times[what] = new(timeRows)
	}
	row := tracing.Row(float64(d / time.Microsecond))
	b.times[what][min(row, len(timeRows{})-1)]++
}

const (
	bucketRequests = iota // completed
	bucketBlocks          // requested, of block traces, as the three below
	bucketHits            //
	bucketIdeal           //
	bucketUnknown         // blocks of requests whose ideal is unknown
	bucketMoved           // bytes, by level and operation

	bucketEvicted = bucketMoved + int(tiers.NumKinds)*int(tiers.NumOps) // bytes, by level
	// bytes, out of the level
	bucketDemoted     = bucketEvicted + int(tiers.NumKinds)
	numBucketCounters = bucketDemoted + int(tiers.NumKinds)
)

// bucketBytes returns the index in a bucket of the bytes that a level moved.
func bucketBytes(l tiers.Kind, op tiers.Op) int {
	return bucketMoved + int(l)*int(tiers.NumOps) + int(op)
}

// join adds a bucket of another shard for the same interval, or the next bucket of the same shard.
func (b *bucket) join(o bucket) {
	for i, n := range o.n {
		b.n[i] += n
	}
	if o.gauge != nil {
		b.gauge = o.gauge
	}
	for what, rows := range o.times {
		if rows == nil {
			continue
		}
		if b.times[what] == nil {
			b.times[what] = new(timeRows) // do not share o's rows
		}
		for k, n := range rows {
			b.times[what][k] += n
		}
	}
}

// timeline is the timeline of one shard, or the sum over shards. Only the first shard has gauges.
type timeline struct {
	origin   time.Duration
	interval time.Duration
	buckets  []bucket
	last     int  // the bucket of the last call of at
	silent   bool // see shard.leaveOut
}

// at returns the bucket of a time, and adds missing buckets. A time before the start of the window,
// which is possible in virtual time, is in the first bucket.
func (t *timeline) at(at time.Duration) *bucket {
	at = max(at-t.origin, 0)
	if into := at - time.Duration(t.last)*t.interval; 0 <= into && into < t.interval &&
		t.last < len(t.buckets) {
		return &t.buckets[t.last] // most times, and without a division
	}
	n := int(at / t.interval)
	for ; n >= maxBuckets; n = int(at / t.interval) {
		t.double()
	}
	for len(t.buckets) <= n {
		t.buckets = append(t.buckets, bucket{})
	}
	t.last = n
	return &t.buckets[n]
}

// double halves the number of buckets by joining neighbours.
func (t *timeline) double() {
	for i, b := range t.buckets {
		if i%2 == 0 {
			t.buckets[i/2] = b
		} else {
			t.buckets[i/2].join(b)
		}
	}
	t.buckets = t.buckets[:(len(t.buckets)+1)/2]
	t.interval *= 2
}

// merge adds o, which has the same origin and first interval, but may have doubled more or less
// often.
func (t *timeline) merge(o *timeline) {
	if t.interval == 0 {
		t.origin, t.interval = o.origin, o.interval
	}
	for t.interval < o.interval {
		t.double()
	}
	for i, b := range o.buckets {
		t.at(t.origin + time.Duration(i)*o.interval).join(b)
	}
}
