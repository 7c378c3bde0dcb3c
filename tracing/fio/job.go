package fio

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"kvbench/tracing"
)

// Input is what the header and the fallbacks of a fio job need to know beside the trace. Everything
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
	// this host, and what a block trace shows beside them was not the application's storage.
	ReadSize, WriteSize int64
	// SizesOf says what has these sizes where it is not such a mount.
	SizesOf string
	// Concurrency is how many operations were in flight on average, for a run without block
	// requests (NFS, S3, tmpfs).
	Concurrency float64
	// About is what the header says of a trace that was read from another tool's text: what the
	// text is and what it does not tell, in place of what a Collector knows.
	About []string
}

// fio's limits, and what counts as a pause that a job should have.
const (
	maxDepth    = 256
	idleShare   = 0.1 // of the window
	gapMinUS    = 20  // shorter ones fio has of itself
	pausesMin   = 3   // fewer are no rhythm
	pausesShare = 0.9 // of the idle time: what the pauses of the job are counted from
	singleDepth = 1.5 // below, requests come one by one
	pageBytes   = 4096
	hugeBytes   = 2 << 20
	hugeShare   = 20 // percent of requests that chance does not explain
)

// job is what the text is made of.
type job struct {
	read, write []share // of each direction's requests, by size
	mixRead     int     // percent of all requests
	depth       int     // held while something is in flight
	thinkUS     int64   // a pause of so long
	thinkBlocks int64   // after so many requests, 0 = never
	hugePages   int     // to reserve, 0 = ordinary buffers
	notes       []string
	source      string
	fromBlock   bool // requests of a block device, not what led to them
}

// Job distils a trace into a fio job that puts the same load on another device: request sizes, mix,
// depth and pauses. It is a pure function. The error says why there is nothing to distil.
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

// distil takes the best source that there is. A mount's sizes come first: what a block trace shows
// of such a run is the program's own pages, not its storage.
func distil(t *tracing.Trace, in Input) (*job, error) {
	j := &job{}
	switch {
	case in.ReadSize > 0 || in.WriteSize > 0:
		j.fromSizes(in)
	case t.Capture.Requests() > 0 && t.SizeRead.Count+t.SizeWrite.Count > 0:
		j.fromRequests(t)
	case t.VFSReadSize.Count+t.VFSWriteSize.Count > 0:
		j.fromCalls(t, in)
	default:
		return nil, fmt.Errorf("no fio job: %s",
			cmp.Or(t.Capture.Reason, "the trace holds no request"))
	}
	j.chooseBuffers(t, in)
	j.warn(t, in)
	return j, nil
}

// fromRequests has it all. The depth is that of the time in which something was in flight: pauses
// are the job's own (thinktime), and the time before the first request and after the last says
// nothing.
func (j *job) fromRequests(t *tracing.Trace) {
	p := &t.Capture
	j.source, j.fromBlock = "block requests", true
	j.read, j.write = split(t.SizeRead), split(t.SizeWrite)
	j.mixRead = percent(float64(p.Read.Requests), float64(p.Write.Requests))
	window := float64(p.WindowNS - p.LeadNS - p.TailNS)
	busy := 1.0      // share of the window with something in flight
	if window <= 0 { // of a text that does not tell
		j.setDepth(p.Read.MeanDepth + p.Write.MeanDepth)
		return
	}
	d2c := p.Read.D2C() + p.Write.D2C()
	n, us := pauses(t.Idle, gapMin(p, d2c, window))
	idle := us * 1000 / p.Seen()
	if n >= pausesMin && idle >= idleShare*window {
		j.thinkUS = int64(math.Round(us / float64(n)))
		j.thinkBlocks = max(1, int64(math.Round(float64(p.Requests())*p.Seen()/float64(n))))
		busy = max(1-idle/window, d2c/window/maxDepth)
	}
	j.setDepth(d2c / (window * busy))
}

// gapMin is the shortest gap in microseconds that a job must make by itself. At a depth of about
// one every gap that fio would not have anyway is the application's. Deeper, the device runs dry
// between two handfuls of completions, for less than one of its own latencies, and so it does under
// fio.
func gapMin(p *tracing.Capture, d2c, window float64) float64 {
	busy := max(window-float64(p.IdleNS-p.LeadNS-p.TailNS), 1)
	if d2c/busy < singleDepth {
		return gapMinUS
	}
	return max(gapMinUS, float64(p.Read.D2CNS+p.Write.D2CNS)/float64(max(1, p.Requests()))/1000)
}

// pauses sums the gaps of at least that length, in microseconds, and counts the longest of them,
// which make nearly all of that time: many short ones beside them would make every pause too short.
func pauses(idle tracing.Histogram, least float64) (n int64, us float64) {
	time := func(b tracing.Bucket) float64 { return float64(b.Count) * b.Middle() }
	for _, b := range idle.Buckets {
		if b.Range[0] >= least {
			us += time(b)
		}
	}
	covered := 0.0
	for _, b := range slices.Backward(idle.Buckets) {
		if b.Range[0] < least || covered >= pausesShare*us {
			break
		}
		covered += time(b)
		n += b.Count
	}
	return n, us
}

func (j *job) setDepth(mean float64) {
	j.depth = int(math.Round(min(max(mean, 1), maxDepth)))
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
	var reads, writes float64
	j.read, reads = transfers(in.ReadBytes, in.ReadSize)
	j.write, writes = transfers(in.WriteBytes, in.WriteSize)
	j.mixRead = percent(reads, writes)
	j.setDepth(in.Concurrency)
}

// fromCalls takes calls for requests. What the page cache served is among them, so the job asks
// more of a device than the program did.
func (j *job) fromCalls(t *tracing.Trace, in Input) {
	j.source = "system calls, for lack of block requests"
	j.read, j.write = split(t.VFSReadSize), split(t.VFSWriteSize)
	j.mixRead = percent(float64(t.VFSReadSize.Count), float64(t.VFSWriteSize.Count))
	depth := in.Concurrency
	if depth == 0 && t.Capture.WindowNS > 0 {
		depth = (t.VFSRead.Sum + t.VFSWrite.Sum) * 1000 / float64(t.Capture.WindowNS)
	}
	j.setDepth(depth)
}

// chooseBuffers asks for huge pages when requests were larger than ordinary pages can make them: a
// device takes a limited number of segments, and default buffers would split every request. Many
// such requests prove by themselves that the traced buffers were contiguous memory.
func (j *job) chooseBuffers(t *tracing.Trace, in Input) {
	limit := t.Capture.MaxSegments * pageBytes
	largest, most := int64(0), 0
	for _, side := range [][]share{j.read, j.write} {
		over := 0
		for _, s := range side {
			largest = max(largest, s.bytes)
			if s.bytes > limit {
				over += s.percent
			}
		}
		most = max(most, over)
	}
	if limit == 0 || largest <= limit || !in.HugePages && most < hugeShare {
		return
	}
	perDepth := (largest + hugeBytes - 1) / hugeBytes // each request has a buffer of its own
	j.hugePages = int(int64(j.depth)*perDepth) + 2
}

// warn says what the reader of a job has to know about the trace.
func (j *job) warn(t *tracing.Trace, in Input) {
	j.notes = append(j.notes, t.Capture.Warnings...)
	if j.fromBlock && t.Capture.Status == tracing.StatusTraced &&
		t.Capture.CacheServed(in.Application) {
		j.notes = append(j.notes, fmt.Sprintf("the device read %.0f%% of the application's "+
			"bytes: a cache served the rest, and this job has only what was left",
			100*float64(t.Capture.OwnReadBytes())/float64(in.ReadBytes)))
	}
	if j.depth == maxDepth {
		j.notes = append(j.notes, fmt.Sprintf("the depth was cut to %d", maxDepth))
	}
}
