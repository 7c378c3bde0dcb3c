package fio

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"kvbench/tracing"
)

// share is one size of a bssplit.
type share struct {
	bytes   int64
	percent int
}

// sectorSize is the smallest request, in bytes.
const sectorSize = 512

// maxSplit is fio's limit of sizes per direction.
const maxSplit = 64

// A size is kept if it has this share of the requests, or of the bytes; metadata among data has neither.
// bytesOff limits the error in bytes per request.
const (
	countShare = 0.01
	bytesShare = 0.01
	bytesOff   = 0.1
)

// streamShare and streamBytes are the thresholds for a sequential load: on each pass fio fills the rest of
// the file with requests of the smallest size. With a file of 192 MiB and sizes of 1k/1:256k/4:1280k/95
// they were 60 % of all requests.
const (
	streamShare = 0.05
	streamBytes = 0.005
)

// split turns a distribution of sizes into whole percentages that sum to 100, by largest remainder: fio
// accepts no fractions, and adds a missing percentage to one size.
//
// Few large requests can be most of the bytes. Sizes that would round to 0 get one percent. If that would
// move more bytes than were traced, they become one size that has as many bytes at one percent as they
// had.
//
// The note for the header says how far the shares differ from the distribution, "" if they hardly do.
func split(h tracing.Histogram, page int64, sequential bool) (shares []share, note string) {
	if h.Count == 0 {
		return nil, ""
	}
	counts := map[int64]int64{}
	bytes := 0.0
	for _, b := range h.Buckets {
		size := realSize(b, page)
		counts[size] += b.Count
		bytes += float64(size * b.Count)
	}
	order := slices.SortedFunc(maps.Keys(counts), func(a, b int64) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var rare []int64
	var common []int64
	total, rareBytes := float64(h.Count), 0.0
	for _, size := range order {
		n := float64(counts[size])
		switch {
		case sequential && n/total < streamShare && n*float64(size)/bytes < streamBytes:
		case n/total >= countShare:
			common = append(common, size)
		case n*float64(size)/bytes >= bytesShare:
			rare = append(rare, size)
			rareBytes += n * float64(size)
		}
	}
	if len(common) == 0 { // many sizes, each with less than half a percent: the most frequent ones
		common, rare = order, nil
	}
	manyRare := len(rare) >= maxSplit // more than the job can list: one size stands for them
	common = common[:min(len(common), max(1, maxSplit-len(rare)))]
	shares = shared(common, counts, 100-len(rare))
	for _, size := range rare {
		shares = append(shares, share{bytes: size, percent: 1})
	}
	seen := bytes / total
	if manyRare || len(rare) > 0 && math.Abs(mean(shares)/seen-1) > bytesOff {
		shares = shared(common, counts, 99)
		one := max(sectorSize, int64(rareBytes/total*100/float64(page))*page)
		i := slices.IndexFunc(shares, func(s share) bool { return s.bytes == one })
		if i < 0 {
			i, shares = len(shares), append(shares, share{bytes: one})
		}
		shares[i].percent++
		note = fmt.Sprintf("%d sizes with few requests and %.0f%% of the bytes are 1%% of %s in "+
			"this job", len(rare), 100*rareBytes/bytes, sizeText(one))
	}
	slices.SortFunc(shares, func(a, b share) int { return cmp.Compare(a.bytes, b.bytes) })
	if kept := mean(shares); note == "" && math.Abs(kept/seen-1) > bytesOff {
		note = fmt.Sprintf("a request of this job moves %.1f KiB on average, one of the trace "+
			"%.1f KiB: shares are whole percents", kept/1024, seen/1024)
	}
	return shares, note
}

// shared divides so many percent among sizes, and drops sizes that get 0.
func shared(sizes []int64, counts map[int64]int64, whole int) (shares []share) {
	total, left := int64(0), whole
	for _, size := range sizes {
		total += counts[size]
	}
	part := func(size int64) int64 { return int64(whole) * counts[size] }
	for _, size := range sizes {
		n := int(part(size) / total)
		shares = append(shares, share{size, n})
		left -= n
	}
	slices.SortStableFunc(shares, func(a, b share) int {
		return cmp.Compare(part(b.bytes)%total, part(a.bytes)%total)
	})
	for i := range left {
		shares[i].percent++
	}
	return slices.DeleteFunc(shares, func(s share) bool { return s.percent == 0 })
}

// mean returns the mean bytes of a request of the shares, which determines the bandwidth of the job.
func mean(shares []share) (bytes float64) {
	for _, s := range shares {
		bytes += float64(s.bytes) * float64(s.percent) / 100
	}
	return bytes
}

// realSize returns the size of a bucket's requests: exact if all have one size, otherwise their mean in
// whole pages. A bucket without a mean (from another tool) has its lower bound, a power of two.
func realSize(b tracing.Bucket, page int64) int64 {
	if b.Value == 0 {
		return max(sectorSize, int64(b.Range[0]*1024))
	}
	bytes := b.Value * 1024
	if n := int64(bytes); float64(n) == bytes && n%sectorSize == 0 {
		return n
	}
	if bytes < float64(page) {
		return max(sectorSize, int64(math.Round(bytes/sectorSize))*sectorSize)
	}
	return int64(math.Round(bytes/float64(page))) * page
}

// splitText formats one direction for bssplit: sizes in ascending order with their percentages. It is
// empty for a direction that the job does not have.
func splitText(s []share) string {
	parts := make([]string, len(s))
	for i, x := range s {
		parts[i] = fmt.Sprintf("%s/%d", sizeText(x.bytes), x.percent)
	}
	return strings.Join(parts, ":")
}

// sizeText formats a size for fio: 4k, 1m, 1536.
func sizeText(bytes int64) string {
	switch {
	case bytes%(1<<20) == 0:
		return fmt.Sprintf("%dm", bytes>>20)
	case bytes%(1<<10) == 0:
		return fmt.Sprintf("%dk", bytes>>10)
	}
	return fmt.Sprint(bytes)
}

// percent returns the whole percentage of reads; a direction with requests keeps at least one.
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
