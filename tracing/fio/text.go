package fio

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kvbench/tracing"
)

// header writes the source and the limits of the job, as comments. A line break inside a text would end
// the comment, and fio would read the rest.
func (j *job) header(b *strings.Builder, t *tracing.Trace, in Input) {
	p := &t.Capture
	line := func(format string, args ...any) { fmt.Fprintf(b, "# "+format+"\n", args...) }
	line("fio job distilled from %s of %s", j.source, cmp.Or(in.Title, "a traced process"))
	if in.Model != "" {
		line("model %s, %d users, %d bytes/token", in.Model, in.Users, in.BytesPerToken)
	}
	switch {
	case in.About != nil:
		for _, l := range in.About {
			line("%s", l)
		}
	case j.fromBlock:
		device := p.Traced()
		if device != tracing.EveryDevice {
			device = "device " + device
		}
		line("window %s, %s", p.Window().Round(time.Millisecond), device)
		line("requests: %d reads (%s), %d writes (%s), %d flushes, %d discards", p.Read.Requests,
			tracing.Size(p.Read.Bytes), p.Write.Requests, tracing.Size(p.Write.Bytes), p.Flushes, p.Discards)
	default:
		line("window %s, no block device: %s", p.Window().Round(time.Millisecond),
			oneLine(cmp.Or(p.Reason, "its requests are no block requests of this host")))
		line("application: %s read, %s written, %.1f operations in flight on average",
			tracing.Size(in.ReadBytes), tracing.Size(in.WriteBytes), in.Concurrency)
	}
	if j.fromBlock {
		blockHeader(line, t, in)
	}
	for _, n := range j.notes {
		line("WARNING: %s", oneLine(n))
	}
	line("")
	line("Usage (there is no size= and no runtime= on purpose; a file is created, a device is " +
		"OVERWRITTEN):")
	line("  fio <this file> --filename=/mnt/other/testfile --size=20G")
	line("  fio <this file> --filename=/mnt/other/testfile --size=20G --time_based --runtime=300")
	if slices.ContainsFunc(j.parts, func(p part) bool { return p.thinkBlocks > 0 }) {
		line("thinktime copies the pauses of the traced host, also those of its busy processors: " +
			"delete the thinktime lines to load a device without them")
	}
	if j.largest > 0 {
		line("The buffers were contiguous memory: of ordinary pages a request of %s is more than "+
			"the %d segments that the device takes, and is split. Huge pages keep it whole, "+
			"without reserving any where the kernel lends them (transparent_hugepage madvise or "+
			"always, glibc 2.35 or later):", sizeText(j.largest), j.segments)
		line("  GLIBC_TUNABLES=glibc.malloc.hugetlb=1 fio <this file> ...")
	}
}

// blockHeader writes the device's times for the requests.
func blockHeader(line func(format string, args ...any), t *tracing.Trace, in Input) {
	for i, h := range [2]tracing.Histogram{t.D2CRead, t.D2CWrite} {
		if h.Count > 0 {
			line("D2C of %s: p50 %s, p99 %s", names[i],
				tracing.Microseconds(h.Percentile(50)), tracing.Microseconds(h.Percentile(99)))
		}
	}
	var zones []string
	for i, h := range [2]tracing.Histogram{t.LBARead, t.LBAWrite} {
		if h.Count > 0 {
			zones = append(zones, hotZone(names[i], h))
		}
	}
	if len(zones) > 0 {
		line("hot zone of the device: %s", strings.Join(zones, ", "))
	}
	if p := &t.Capture; in.About == nil {
		line("mean depth %.2f (reads %.2f, writes %.2f)", p.Read.MeanDepth+p.Write.MeanDepth,
			p.Read.MeanDepth, p.Write.MeanDepth)
		line("one after the other: %.0f%% of the reads, %.0f%% of the writes",
			100*float64(p.Read.Sequential)/float64(max(1, p.Read.Requests)),
			100*float64(p.Write.Sequential)/float64(max(1, p.Write.Requests)))
		if n := p.Write.WrittenBack; n > 0 {
			line("written back by the kernel for them: %d of the writes", n)
		}
	}
}

// hotZone returns the shortest range of the device with nine tenths of a histogram's requests, and their share.
func hotZone(what string, h tracing.Histogram) (zone string) {
	shortest := math.Inf(1)
	for i, first := range h.Buckets {
		n := int64(0)
		for _, last := range h.Buckets[i:] {
			n += last.Count
			if length := last.Range[1] - first.Range[0]; 10*n >= 9*h.Count && length < shortest {
				shortest = length
				zone = fmt.Sprintf("%d%% of the %s in %g-%g GiB", 100*n/h.Count, what, first.Range[0], last.Range[1])
			}
		}
	}
	return zone
}

// body writes the job itself. Missing options have fio's defaults on purpose: fio's command line could not
// override a size and a runtime.
func (j *job) body(b *strings.Builder) {
	p := func(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }
	p("[global]")
	// Huge pages are blocks of 2 MiB, and buffers must be aligned to them.
	// fio prints the first 127 characters of the description with its results. A semicolon begins a
	// comment.
	if j.largest > 0 {
		p("description=requests of %s are split where buffers are ordinary pages and a device "+
			"takes %d segments, see the head of the job", sizeText(j.largest), j.segments)
	}
	p("ioengine=libaio\ndirect=1")
	if j.largest > 0 {
		p("iomem_align=2m")
		p("# Or with reserved pages (sysctl vm.nr_hugepages=%d), or else fio does not start:\n"+
			"#iomem=mmaphuge", j.hugePages)
	}
	p("refill_buffers=1") // equal bytes would help a drive that compresses
	// No map of used blocks: KV entries are read repeatedly, and the map costs memory and time.
	p("norandommap=1\nrandrepeat=0")
	if len(j.parts) > 1 {
		p("exitall") // the mix ends with the first job
	}
	p("group_reporting\npercentile_list=50:95:99:99.9:99.99")
	for i := range j.parts {
		j.parts[i].text(p)
	}
}

// text writes one job of fio. Options with two values have the value of reads first. A job with one direction
// has one value: two are no error, but would confuse the reader.
func (j *part) text(p func(format string, args ...any)) {
	rw, mix, rates := "rw", 0, ""
	sizes := splitText(j.sizes[reads]) + "," + splitText(j.sizes[writes])
	whole := func(rate float64) int64 { return max(1, int64(math.Round(rate))) }
	switch {
	case len(j.sizes[writes]) == 0:
		rw, sizes, rates = "read", splitText(j.sizes[reads]), fmt.Sprint(whole(j.rate))
	case len(j.sizes[reads]) == 0:
		rw, sizes, rates = "write", splitText(j.sizes[writes]), fmt.Sprint(whole(j.rate))
	default:
		mix = percent(j.requests[reads], j.requests[writes])
		read := j.rate * float64(mix) / 100
		rates = fmt.Sprintf("%d,%d", whole(read), whole(j.rate-read))
	}
	// In between, a percentage of the requests continues sequentially: a request of 1 MiB that the device
	// took in two pieces has a random position for the first piece and a sequential one for the second.
	random := 0
	if j.sequential < mostly {
		rw = "rand" + rw
		if j.sequential >= 1-mostly {
			random = 100 - int(math.Round(100*j.sequential))
		}
	}
	p("\n[%s]\nrw=%s", j.name(), rw)
	if mix > 0 {
		p("rwmixread=%d", mix)
	}
	p("bssplit=%s", sizes)
	// Replace each completed request at once, so that the depth is constant. Submit sequential requests
	// one by one, because the kernel would merge a batch.
	batch := j.depth
	if j.sequential >= 1-mostly {
		batch = 1
	}
	if random > 0 {
		p("percentage_random=%d", random)
	}
	p("iodepth=%d\niodepth_batch_submit=%d\niodepth_batch_complete_min=1", j.depth, batch)
	if j.thinkBlocks > 0 {
		p("thinktime=%d\nthinktime_blocks=%d", j.thinkUS, j.thinkBlocks)
	}
	if j.writesToFlush > 0 {
		p("fdatasync=%d", j.writesToFlush)
	}
	if j.rate > 0 {
		p("# As fast as the device allows; what the traced load asked for:\n#rate_iops=%s", rates)
	}
}

// oneLine keeps a warning in one line, and so in its comment.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
