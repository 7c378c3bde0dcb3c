package fio

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"kvbench/tracing"
)

// share is one size of a bssplit.
type share struct {
	bytes   int64
	percent int
	count   int64 // the requests that it stands for
}

// sectorSize is the least that a request moves, in bytes.
const sectorSize = 512

// maxSplit is how many sizes fio takes per direction.
const maxSplit = 64

// split turns a distribution of sizes into whole percentages that sum to 100, by largest remainder:
// fio takes no fractions and completes what is missing by itself, with a share for one size. The
// sizes with the smallest shares go first when there are too many of them.
func split(h tracing.Histogram) []share {
	if h.Count == 0 {
		return nil
	}
	counts := map[int64]int64{}
	for _, b := range h.Buckets {
		counts[realSize(b)] += b.Count
	}
	var shares []share
	for bytes, n := range counts {
		shares = append(shares, share{bytes: bytes, count: n})
	}
	slices.SortFunc(shares, func(a, b share) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.bytes, b.bytes))
	})
	shares = shares[:min(len(shares), maxSplit)]
	total, left := int64(0), 100
	for _, s := range shares {
		total += s.count
	}
	for i := range shares {
		shares[i].percent = int(100 * shares[i].count / total)
		left -= shares[i].percent
	}
	slices.SortStableFunc(shares, func(a, b share) int {
		return cmp.Compare(100*b.count%total, 100*a.count%total)
	})
	for i := range left {
		shares[i].percent++
	}
	shares = slices.DeleteFunc(shares, func(s share) bool { return s.percent == 0 })
	slices.SortFunc(shares, func(a, b share) int { return cmp.Compare(a.bytes, b.bytes) })
	return shares
}

// realSize is the size of a bucket's requests: exact if they had one, else their mean in whole
// pages. A bucket without a mean (from another tool) stands for its lower end, which is where
// powers of two lie.
func realSize(b tracing.Bucket) int64 {
	if b.Value == 0 {
		return max(sectorSize, int64(b.Range[0]*1024))
	}
	bytes := b.Value * 1024
	if n := int64(bytes); float64(n) == bytes && n%sectorSize == 0 {
		return n
	}
	if bytes < pageBytes {
		return max(sectorSize, int64(math.Round(bytes/sectorSize))*sectorSize)
	}
	return int64(math.Round(bytes/pageBytes)) * pageBytes
}

// splitText writes one direction; a direction without requests takes the sizes of the other, which
// fio then never uses.
func splitText(s, other []share) string {
	if len(s) == 0 {
		s = other
	}
	parts := make([]string, len(s))
	for i, x := range s {
		parts[i] = fmt.Sprintf("%s/%d", sizeText(x.bytes), x.percent)
	}
	return strings.Join(parts, ":")
}

// sizeText is a size as fio reads it: 4k, 1m, 1536.
func sizeText(bytes int64) string {
	switch {
	case bytes%(1<<20) == 0:
		return fmt.Sprintf("%dm", bytes>>20)
	case bytes%(1<<10) == 0:
		return fmt.Sprintf("%dk", bytes>>10)
	}
	return fmt.Sprint(bytes)
}

// percent is the whole percentage of reads; a direction that exists keeps at least one.
func percent(reads, writes float64) int {
	if reads+writes <= 0 {
		return 50
	}
	p := int(math.Round(100 * reads / (reads + writes)))
	if reads > 0 {
		p = max(p, 1)
	}
	if writes > 0 {
		p = min(p, 99)
	}
	return p
}
