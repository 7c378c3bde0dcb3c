package dedup

import "math"

// block is the unit of deduplication of arrays.
const block = 4096

// DefaultKept is how many distinct blocks are kept: exact up to 16 GiB of unequal data, in about
// 150 MB.
const DefaultKept = 4 << 20

// counter counts blocks and how many of them are distinct, exactly while there are at most kept
// distinct ones.
type counter struct {
	seen  map[uint64]uint32 // hash -> times, of the sampled ones
	kept  int
	shift uint  // hashes whose lowest bits are all 0 are sampled: one in 2^shift
	total int64 // blocks, zeros not among them
	zero  int64
}

// newCounter keeps at most so many distinct blocks.
func newCounter(kept int) *counter {
	return &counter{seen: make(map[uint64]uint32), kept: max(kept, 2)}
}

// add counts one block by its hash.
func (c *counter) add(hash uint64) {
	c.total++
	if !c.sampled(hash) {
		return
	}
	if n := c.seen[hash]; n < math.MaxUint32 {
		c.seen[hash] = n + 1
	}
	for len(c.seen) > c.kept {
		c.shift++
		for h := range c.seen {
			if !c.sampled(h) {
				delete(c.seen, h)
			}
		}
	}
}

// sampled reports whether a hash belongs to the sample.
func (c *counter) sampled(hash uint64) bool { return hash&(1<<c.shift-1) == 0 }

// duplicates is the number of blocks that equal an earlier one, and half the width of its 95 %
// interval: 0 when exact.
func (c *counter) duplicates() (n, plusMinus float64) {
	zeros := float64(max(0, c.zero-1))
	if c.shift == 0 {
		return zeros + float64(c.total-int64(len(c.seen))), 0
	}
	// A ratio estimate over clusters: each distinct block is a cluster of as many as its
	// occurrences.
	distinct := float64(len(c.seen))
	var occurrences float64
	for _, m := range c.seen {
		occurrences += float64(m)
	}
	if distinct < 2 {
		return zeros, float64(c.total)
	}
	ratio := distinct / occurrences
	var squares float64
	for _, m := range c.seen {
		d := 1 - ratio*float64(m)
		squares += d * d
	}
	unseen := 1 - math.Pow(2, -float64(c.shift))
	deviation := math.Sqrt(unseen*distinct/(distinct-1)*squares) / occurrences
	return zeros + (1-ratio)*float64(c.total), 1.96 * deviation * float64(c.total)
}
