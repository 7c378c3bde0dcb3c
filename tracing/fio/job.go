package fio

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"kvbench/tracing"
)

// Input is what the header and the fallbacks of a fio job need besides the trace. Everything
// is optional.
type Input struct {
	Title         string // what was traced: a benchmark and its trial, or a program
	Model         string
	Users         int
	BytesPerToken int64
	// Application is what the program got of its storage; a device that read much less was spared
	// by a cache.
	tracing.Application
	// HugePages says that the application's buffers were huge pages, which take fewer segments of a
	// request.
	HugePages bool
	// The transfer sizes of a network mount (rsize, wsize): its requests pass no block device of
	// this host, and what a block trace shows at the same time was not the application's storage.
	ReadSize, WriteSize int64
	// InMemory says that the application's files lie in memory, some at least: no request of a
	// block device was one of theirs.
	InMemory bool
	// SizesOf says what has these sizes where it is not such a mount.
	SizesOf string
	// Concurrency is how many operations were in flight on average, for a run without block
	// requests (NFS, S3, tmpfs).
	Concurrency float64
	// About is what the header says of a trace that was read from another tool's text: what the
	// text is and what it does not tell, in place of what a Collector knows.
	About []string
}

// job is what the text is made of.
type job struct {
	parts     []part
	segments  int64 // that a request of the traced device may have, where the largest ones had more
	largest   int64 // bytes of these
	hugePages int   // that buffers for all of them need
	notes     []string
	source    string
	fromBlock bool // requests of a block device, not what led to them
}

// part is one job of fio's, which has one queue: reads, writes, or both from one queue.
type part struct {
	name          string // between brackets
	rw            string // read, write, rw, randread, randwrite, randrw
	mixRead       int    // percent of its requests; of both directions only
	read, write   []share
	random        int     // percent of the places that are, of random ones
	depth         int     // held while something is in flight
	thinkUS       int64   // a pause of so long
	thinkBlocks   int64   // after so many requests, 0 = never
	writesToFlush int64   // writes from one flush to the next, 0 = never
	rate          float64 // requests/s that were seen, 0 = unknown
}

// Job distils a trace into a fio job that puts the same load on another device: request sizes, mix,
// order, depth, pauses and flushes. It is a pure function. The error says why there is nothing to
// distil.
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

// distil takes the best source that there is. A mount's sizes come first, and a block trace is none
// of files in memory: what it shows of such runs is the program's own pages, not its storage.
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

// fromRequests has it all.
func (j *job) fromRequests(t *tracing.Trace) {
	j.source, j.fromBlock = "block requests", true
	l := loadOf(t)
	page := pageBytes(&t.Capture)
	sizes := [2]sizeShares{split(t.SizeRead, page, l.sequential(reads) >= mostly),
		split(t.SizeWrite, page, l.sequential(writes) >= mostly)}
	// A few reads among writes are the program's own file, a few writes among reads metadata: one
	// percent of them would be a load that was not there.
	none := [2]bool{reads: l.none(reads), writes: l.none(writes)}
	for dir, n := range none {
		if note := sizes[dir].note; note != "" && !n {
			j.notes = append(j.notes, fmt.Sprintf("%s: %s", names[dir], note))
		}
		if of := l.of[dir].Requests; n && of > 0 {
			j.notes = append(j.notes, fmt.Sprintf("%d %s next to %d %s are left out", of, names[dir],
				l.of[1-dir].Requests, names[1-dir]))
		}
	}
	switch one := l.together(); {
	case none[writes]:
		j.add(l, one, sizes, reads)
	case none[reads]:
		j.add(l, one, sizes, writes)
	case one:
		j.add(l, one, sizes, reads, writes)
	default: // each direction at its own pace: the slower one does not hold back the other
		j.add(l, one, sizes, reads)
		j.add(l, one, sizes, writes)
	}
}

// add makes a part of the named directions.
func (j *job) add(l load, together bool, sizes [2]sizeShares, dirs ...direction) {
	p := part{name: "kv-cache", rw: "rw", read: sizes[reads].shares, write: sizes[writes].shares}
	first := dirs[0]
	if len(dirs) == 1 {
		p.name, p.rw = names[first], strings.TrimSuffix(names[first], "s")
	} else {
		p.mixRead = percent(float64(l.of[reads].Requests), float64(l.of[writes].Requests))
	}
	// Directions that share a queue share its depth, its pauses and its order.
	depth := 0.0
	sequential, requests := 0.0, 0.0
	for _, d := range dirs {
		depth += l.depth(d)
		sequential += float64(l.of[d].Sequential)
		requests += float64(l.of[d].Requests)
		p.rate += l.rate(d)
		if d == writes {
			p.writesToFlush = l.writesToFlush()
		}
	}
	p.setDepth(depth)
	// A pause after each request makes a depth below one, which fio has no other way to hold.
	if together && l.pauses > 0 {
		p.thinkUS, p.thinkBlocks = l.pauseUS, l.pauseBlocks
	} else if depth < underOne && requests > 0 { // one at a time, and time between them
		each := 0.0
		for _, d := range dirs {
			each += l.of[d].D2C() / requests / 1000
		}
		p.thinkUS, p.thinkBlocks = int64(math.Round(each*(1/depth-1))), 1
	}
	// In between, fio goes on where it was for as many of the requests: a request of 1 MiB that the
	// device took in two pieces is at a place of its own and then one after the other.
	if share := sequential / max(requests, 1); share < mostly {
		p.rw = "rand" + p.rw
		if share >= 1-mostly {
			p.random = 100 - int(math.Round(100*share))
		}
	}
	j.parts = append(j.parts, p)
}

// fromSizes makes up for a trace: a client cuts what is read and written into transfers of that
// size.
func (j *job) fromSizes(in Input) {
	j.source = cmp.Or(in.SizesOf, "the mount's transfer sizes") + ", for lack of block requests"
	transfers := func(bytes, size int64) ([]share, float64) {
		if size <= 0 {
			return nil, 0
		}
		return []share{{bytes: size, percent: 100}}, float64(bytes) / float64(size)
	}
	p := part{}
	var reads, writes float64
	p.read, reads = transfers(in.ReadBytes, in.ReadSize)
	p.write, writes = transfers(in.WriteBytes, in.WriteSize)
	j.fromCounts(p, reads, writes, in.Concurrency)
}

// fromCalls takes calls for requests. What the page cache served is among them, so the job asks
// more of a device than the program did.
func (j *job) fromCalls(t *tracing.Trace, in Input) {
	j.source = "calls on files, for lack of block requests"
	page := pageBytes(&t.Capture)
	p := part{read: split(t.VFSReadSize, page, false).shares,
		write: split(t.VFSWriteSize, page, false).shares}
	if n := t.Fsync.Count; n >= flushesMin {
		p.writesToFlush = max(1, (t.VFSWriteSize.Count+n/2)/n)
	}
	depth := in.Concurrency
	if depth == 0 && t.Capture.WindowNS > 0 {
		depth = (t.VFSRead.Sum + t.VFSWrite.Sum) * 1000 / float64(t.Capture.WindowNS)
	}
	if w := t.Capture.Window().Seconds(); w > 0 {
		p.rate = float64(t.VFSReadSize.Count+t.VFSWriteSize.Count) / w
	}
	j.fromCounts(p, float64(t.VFSReadSize.Count), float64(t.VFSWriteSize.Count), depth)
}

// fromCounts makes one part of what is known by its counts only: in which order requests came,
// and whether reads waited for writes, is not.
func (j *job) fromCounts(p part, reads, writes, depth float64) {
	p.name, p.rw = "kv-cache", "randrw"
	switch {
	case writes == 0 && reads > 0:
		p.rw = "randread"
	case reads == 0 && writes > 0:
		p.rw = "randwrite"
	default:
		p.mixRead = percent(reads, writes)
	}
	p.setDepth(depth)
	j.parts = append(j.parts, p)
}

func (p *part) setDepth(mean float64) {
	p.depth = int(math.Round(min(max(mean, 1), maxDepth)))
}

// pageBytes is how large a page of the traced machine was; 4 KiB where a trace does not say,
// because it is of a text or of an older version. Servers with arm64 processors often have 64 KiB.
func pageBytes(p *tracing.Capture) int64 { return cmp.Or(p.PageBytes, 4096) }

// hugeBytes is what a buffer takes of huge pages at least. Where they are larger (512 MiB on arm64
// with pages of 64 KiB) fewer are needed than a job says.
const (
	hugeBytes = 2 << 20
	hugeShare = 20 // percent of requests that chance does not explain
)

// chooseBuffers looks for requests that are larger than ordinary pages can make them: a device
// takes a limited number of segments, and default buffers would split every request. Many such
// requests prove by themselves that the traced buffers were contiguous memory.
func (j *job) chooseBuffers(t *tracing.Trace, in Input) {
	limit := t.Capture.MaxSegments * pageBytes(&t.Capture)
	if limit == 0 {
		return
	}
	most, pages := 0, int64(0)
	for _, p := range j.parts {
		largest := int64(0)
		for _, side := range [][]share{p.read, p.write} {
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

// warn says what the reader of a job has to know about the trace: what made it doubtful makes the
// job so, and fio will not say it.
func (j *job) warn(t *tracing.Trace, in Input) {
	j.notes = append(j.notes, t.Capture.Warnings...)
	if j.fromBlock && t.Capture.Status == tracing.StatusTraced &&
		t.Capture.CacheServed(in.Application) {
		j.notes = append(j.notes, fmt.Sprintf("the device read %.0f%% of the application's "+
			"bytes: a cache served the rest, and this job has only what was left",
			100*float64(t.Capture.OwnReadBytes())/float64(in.ReadBytes)))
	}
	for _, p := range j.parts {
		if p.depth == maxDepth {
			j.notes = append(j.notes, fmt.Sprintf("the depth of [%s] was cut to %d", p.name,
				maxDepth))
		}
	}
}
