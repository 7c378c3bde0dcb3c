package fio

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"kvbench/tracing"
)

// header says where the job comes from and what it does not show. Nothing in it may end a comment:
// fio reads the rest.
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
		line("requests: %d reads (%.2f GiB), %d writes (%.2f GiB), %d flushes, %d discards",
			p.Read.Requests, tracing.GiB(p.Read.Bytes), p.Write.Requests,
			tracing.GiB(p.Write.Bytes), p.Flushes, p.Discards)
	default:
		line("window %s, no block device: %s", p.Window().Round(time.Millisecond),
			oneLine(cmp.Or(p.Reason, "its requests are no block requests of this host")))
		line("application: %.2f GiB read, %.2f GiB written, %.1f operations in flight on average",
			tracing.GiB(in.ReadBytes), tracing.GiB(in.WriteBytes), in.Concurrency)
	}
	if j.fromBlock {
		blockHeader(line, t, in)
	}
	for _, n := range j.notes {
		line("WARNING: %s", oneLine(n))
	}
	line("")
	if j.hugePages > 0 {
		line("The buffers were huge pages, and requests exceed what the device takes of ordinary "+
			"ones (%d segments). Before:", p.MaxSegments)
		line("  sysctl vm.nr_hugepages=%d", j.hugePages)
	}
	line("Usage (there is no size= on purpose; a file is created, a device is OVERWRITTEN):")
	line("  fio <this file> --filename=/mnt/other/testfile --size=20G")
}

// blockHeader says what the device did with the requests.
func blockHeader(line func(format string, args ...any), t *tracing.Trace, in Input) {
	names := [2]string{"reads", "writes"}
	for i, h := range [2]tracing.Histogram{t.D2CRead, t.D2CWrite} {
		if h.Count > 0 {
			line("D2C of %s: p50 %s, p99 %s", names[i],
				tracing.Microseconds(h.Percentile(50)), tracing.Microseconds(h.Percentile(99)))
		}
	}
	for i, h := range [2]tracing.Histogram{t.LBARead, t.LBAWrite} {
		if z := h.HotZone(); z != "" {
			line("hot zone of %s: %s", names[i], z)
		}
	}
	if p := &t.Capture; in.About == nil {
		line("mean depth %.2f (reads %.2f, writes %.2f)", p.Read.MeanDepth+p.Write.MeanDepth,
			p.Read.MeanDepth, p.Write.MeanDepth)
	}
}

// body is the job itself. What it does not say is fio's default, and meant.
func (j *job) body(b *strings.Builder) {
	p := func(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }
	p("[kv-cache]")
	p("ioengine=libaio\ndirect=1")
	p("time_based\nruntime=300")
	// Reads and writes in one queue, as they met at the traced device; a pure direction has 0 or
	// 100.
	p("rw=randrw\nrwmixread=%d", j.mixRead)
	p("bssplit=%s,%s", splitText(j.read, j.write), splitText(j.write, j.read))
	// Whatever has completed is replaced at once, so that the queue stays as deep as it was.
	p("iodepth=%d\niodepth_batch_submit=%d\niodepth_batch_complete_min=1", j.depth, j.depth)
	if j.thinkBlocks > 0 {
		p("thinktime=%d\nthinktime_blocks=%d", j.thinkUS, j.thinkBlocks)
	}
	if j.hugePages > 0 {
		p("iomem=mmaphuge\nhugepage-size=2m")
	}
	p("refill_buffers=1") // a drive that compresses must not find the same bytes again
	// No map of what was touched: KV entries are read again, and it costs memory and time.
	p("norandommap=1\nrandrepeat=0")
	p("numjobs=1\ngroup_reporting")
	p("percentile_list=50:95:99:99.9:99.99")
}

// oneLine keeps a warning inside of its comment.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
