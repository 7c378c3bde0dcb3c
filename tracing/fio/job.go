package fio

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"kvbench/tracing"
)

// Input is the information for the header and the fallbacks of a fio job in addition to the trace. All
// fields are optional.
type Input struct {
	Title         string // what was traced: a benchmark and its trial, or a program
	Model         string
	Users         int
	BytesPerToken int64
	// Application is the program's I/O by its own counters; if the device read much less, a cache
	// completed the rest.
	tracing.Application
	// HugePages: the application's buffers were huge pages, which need fewer segments per request.
	HugePages bool
	// The transfer sizes of a network mount (rsize, wsize). Its requests use no block device of this
	// host, so requests in a block trace belong to other storage.
	ReadSize, WriteSize int64
	// InMemory: at least some of the application's files are in memory, so requests of block devices
	// are not for them.
	InMemory bool
	// SizesOf names the source of these sizes if it is no network mount.
	SizesOf string
	// Concurrency is how many operations were in flight on average, for a run without block
	// requests (NFS, S3, tmpfs).
	Concurrency float64
	// About replaces the Collector's lines in the header for a trace from another tool's text: the
	// name of the text, and the data that it lacks.
	About []string
}

// job is the content of the text.
type job struct {
	parts     []part
	segments  int64 // limit of segments per request, if the largest requests had more
	largest   int64 // bytes of the largest requests
	hugePages int   // huge pages that buffers for all requests need
	notes     []string
	source    string
	fromBlock bool // made from requests of a block device, not from calls
}

// part is one job of fio, which has one queue: reads, writes, or both.
type part struct {
	sizes         [2][]share // by direction, empty if the job does not have it
	requests      [2]float64 // by direction: the mix
	rate          float64    // requests/s of the trace, 0 = unknown
	sequential    float64    // share of requests that begin where another one ended, 0 = unknown
	depth         int        // depth while requests are in flight
	thinkUS       int64      // length of a pause
	thinkBlocks   int64      // requests before each pause, 0 = no pauses
	writesToFlush int64      // writes between two flushes, 0 = no flushes
}

// name is the name of the job, between brackets.
func (p *part) name() string {
	switch {
	case len(p.sizes[writes]) == 0:
		return names[reads]
	case len(p.sizes[reads]) == 0:
		return names[writes]
	}
	return "kv-cache"
}

// setDepth sets the depth from a mean, within fio's limit.
func (p *part) setDepth(mean float64) {
	p.depth = int(math.Round(min(max(mean, 1), maxDepth)))
}

// Job makes a fio job from a trace, which puts the same load on another device: request sizes, mix,
// order, depth, pauses and flushes. It is a pure function. The error says why no job is possible.
func Job(t *tracing.Trace, in Input) (string, error) {
	j, err := distil(t, in)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	j.header(&b, t, in)
	j.body(&b)
	return b.String(), nil
}

// distil uses the best available source. A mount's transfer sizes come first. A block trace is no source
// for files in memory: its requests are for the program's own pages then, not for its storage.
func distil(t *tracing.Trace, in Input) (*job, error) {
	j := &job{}
	requests := t.Capture.Requests() > 0 && t.SizeRead.Count+t.SizeWrite.Count > 0
	switch {
	case in.ReadSize > 0 || in.WriteSize > 0:
		j.fromSizes(in)
	case requests && !in.InMemory:
		j.fromRequests(t)
	case t.VFSReadSize.Count+t.VFSWriteSize.Count > 0:
		j.fromCalls(t, in)
	case requests:
		return nil, errors.New("no fio job: files lie in memory, which no block device has seen, " +
			"and calls on them were not traced (-latency-trace-level file)")
	default:
		return nil, fmt.Errorf("no fio job: %s",
			cmp.Or(t.Capture.Reason, "the trace holds no request"))
	}
	j.chooseBuffers(t, in)
	j.warn(t, in)
	return j, nil
}

// fromRequests makes the job from the requests of a block trace.
func (j *job) fromRequests(t *tracing.Trace) {
	j.source, j.fromBlock = "block requests", true
	l := loadOf(t)
	page := pageBytes(&t.Capture)
	var sizes [2][]share
	var differ [2]string // how far the sizes differ from the traced ones
	for dir, h := range [2]tracing.Histogram{reads: t.SizeRead, writes: t.SizeWrite} {
		sizes[dir], differ[dir] = split(h, page, l.sequential(direction(dir)) >= mostly)
	}
	// A few reads among writes are reads of the program's binary, a few writes among reads metadata: one
	// percent of them would add a load that did not exist.
	none := [2]bool{reads: l.none(reads), writes: l.none(writes)}
	for dir, n := range none {
		if differ[dir] != "" && !n {
			j.notes = append(j.notes, fmt.Sprintf("%s: %s", names[dir], differ[dir]))
		}
		if few := l.dirs[dir].Requests; n && few > 0 {
			j.notes = append(j.notes, fmt.Sprintf("%d %s next to %d %s are left out", few, names[dir],
				l.dirs[1-dir].Requests, names[1-dir]))
		}
	}
	one := l.together() || none[reads] || none[writes]
	if one {
		for dir := range none {
			if none[dir] {
				sizes[dir] = nil
			}
		}
		j.add(l, sizes)
		return
	}
	// Each direction at its own rate: the slower one does not delay the other.
	j.add(l, [2][]share{reads: sizes[reads]})
	j.add(l, [2][]share{writes: sizes[writes]})
}

// add makes a part of the directions that have sizes. They share a queue, and so its depth, its pauses and
// its order.
func (j *job) add(l load, sizes [2][]share) {
	p := part{sizes: sizes}
	depth, sequential, requests, d2c := 0.0, 0.0, 0.0, 0.0
	for dir := range sizes {
		if len(sizes[dir]) == 0 {
			continue
		}
		d, traced := direction(dir), l.dirs[dir]
		p.requests[d] = float64(traced.Requests)
		p.rate += l.rate(d)
		depth += l.depth(d)
		sequential += float64(traced.Sequential)
		requests += float64(traced.Requests)
		d2c += traced.D2C()
	}
	if len(sizes[writes]) > 0 {
		p.writesToFlush = l.writesToFlush()
	}
	p.setDepth(depth)
	p.sequential = sequential / max(requests, 1)
	// A pause after each request gives a depth below one: fio has no other option for it.
	if l.pauses > 0 && l.together() {
		p.thinkUS, p.thinkBlocks = l.pauseUS, l.pauseBlocks
	} else if depth < underOne && requests > 0 { // one at a time, with pauses between them
		p.thinkUS, p.thinkBlocks = int64(math.Round(d2c/requests/1000*(1/depth-1))), 1
	}
	j.parts = append(j.parts, p)
}

// fromSizes replaces a trace by a mount's transfer sizes: a client splits reads and writes into transfers
// of that size. The order of requests is unknown, and whether reads waited for writes.
func (j *job) fromSizes(in Input) {
	j.source = cmp.Or(in.SizesOf, "the mount's transfer sizes") + ", for lack of block requests"
	p := part{}
	for d, size := range [2]int64{in.ReadSize, in.WriteSize} {
		if size > 0 {
			p.sizes[d] = []share{{bytes: size, percent: 100}}
			p.requests[d] = float64([2]int64{in.ReadBytes, in.WriteBytes}[d]) / float64(size)
		}
	}
	p.setDepth(in.Concurrency)
	j.parts = append(j.parts, p)
}

// fromCalls uses calls as requests. They include calls that the page cache completed, so the job puts
// more load on a device than the program did. The order of requests is unknown.
func (j *job) fromCalls(t *tracing.Trace, in Input) {
	j.source = "calls on files, for lack of block requests"
	p := part{}
	for d, h := range [2]tracing.Histogram{t.VFSReadSize, t.VFSWriteSize} {
		p.sizes[d], _ = split(h, pageBytes(&t.Capture), false)
		p.requests[d] = float64(h.Count)
	}
	if n := t.Fsync.Count; n >= flushesMin {
		p.writesToFlush = max(1, (t.VFSWriteSize.Count+n/2)/n)
	}
	depth := in.Concurrency
	if window := float64(t.Capture.WindowNS); window > 0 {
		depth = cmp.Or(depth, (t.VFSRead.Sum+t.VFSWrite.Sum)*1000/window)
		p.rate = (p.requests[reads] + p.requests[writes]) / (window / 1e9)
	}
	p.setDepth(depth)
	j.parts = append(j.parts, p)
}

// pageBytes returns the page size of the traced machine; 4 KiB if the trace does not have it, because it
// comes from a text or from an older version. Servers with arm64 processors often have 64 KiB.
func pageBytes(p *tracing.Capture) int64 { return cmp.Or(p.PageBytes, 4096) }

// hugeBytes is the smallest size of a huge page. With larger ones (512 MiB on arm64 with pages of 64 KiB)
// fewer pages are needed than a job says.
const (
	hugeBytes = 2 << 20
	hugeShare = 20 // percent of requests that chance does not explain
)

// chooseBuffers finds requests that are larger than ordinary pages allow: a device accepts a limited
// number of segments, and default buffers would split every request. Many such requests prove that the
// traced buffers were contiguous memory.
func (j *job) chooseBuffers(t *tracing.Trace, in Input) {
	limit := t.Capture.MaxSegments * pageBytes(&t.Capture)
	if limit == 0 {
		return
	}
	most, pages := 0, int64(0)
	for _, p := range j.parts {
		largest := int64(0)
		for _, side := range p.sizes {
			over := 0
			for _, s := range side {
				largest = max(largest, s.bytes)
				if s.bytes > limit {
					over += s.percent
				}
			}
			most = max(most, over)
		}
		j.largest = max(j.largest, largest)
		pages += int64(p.depth)*((largest+hugeBytes-1)/hugeBytes) + 1 // a buffer for each request
	}
	if j.largest <= limit || !in.HugePages && most < hugeShare {
		j.largest = 0
		return
	}
	j.segments, j.hugePages = t.Capture.MaxSegments, int(pages)+1
}

// warn adds the trace's limits to the header, because they also limit the job, and fio does not print
// them.
func (j *job) warn(t *tracing.Trace, in Input) {
	j.notes = append(j.notes, t.Capture.Warnings...)
	if j.fromBlock && t.Capture.Status == tracing.StatusTraced &&
		t.Capture.CacheServed(in.Application) {
		j.notes = append(j.notes, fmt.Sprintf("the device read %.0f%% of the application's "+
			"bytes: a cache served the rest, and this job has only what was left",
			100*float64(t.Capture.OwnReadBytes())/float64(in.ReadBytes)))
	}
	for i := range j.parts {
		if p := &j.parts[i]; p.depth == maxDepth {
			j.notes = append(j.notes, fmt.Sprintf("the depth of [%s] was cut to %d",
				p.name(), maxDepth))
		}
	}
}
