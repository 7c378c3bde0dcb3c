package dedup

import (
	"errors"
	"math"
)

// MaxBlock is the largest block size of deduplication, in bytes. The smallest one is a sector, 512.
const MaxBlock = 1 << 20

// CheckBlock returns an error for a block size that deduplication cannot have. The text completes a
// sentence that ends in "must be".
func CheckBlock(bytes int64) error {
	if bytes < 512 || bytes > MaxBlock || bytes&(bytes-1) != 0 {
		return errors.New("a power of two in 512B…1MiB")
	}
	return nil
}

// DefaultKept is the default number of distinct blocks that are kept in memory, about 150 MB. Up to 16
// GiB of distinct data in blocks of 4 KiB the result is exact.
const DefaultKept = 4 << 20

// counter counts blocks and distinct blocks. It is exact up to kept distinct blocks. Above that it
// samples.
type counter struct {
	seen  map[uint64]uint32 // hash → number of occurrences, of sampled hashes
	kept  int
	shift uint  // a hash is sampled if its lowest shift bits are 0: one in 2^shift
	total int64 // number of blocks without blocks of zeros
	zero  int64
}

// newCounter returns a counter that keeps at most kept distinct blocks.
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

// duplicates returns the number of blocks that equal an earlier block, and half the width of the 95 %
// confidence interval, 0 if the number is exact.
func (c *counter) duplicates() (n, plusMinus float64) {
	zeros := float64(max(0, c.zero-1))
	if c.shift == 0 {
		return zeros + float64(c.total-int64(len(c.seen))), 0
	}
	// Ratio estimate of a cluster sample: a distinct block is a cluster of its occurrences.
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
