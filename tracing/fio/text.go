package fio

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"kvbench/tracing"
)

func (j *job) header(b *strings.Builder, t *tracing.Trace, in Input) {
	p := &t.Capture
	line := func(format string, args ...any) { fmt.Fprintf(b, "# "+format+"\n", args...) }
	title := in.Title
	if title == "" {
		title = "a traced process"
	}
	line("fio job distilled from %s of %s", j.source, title)
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
	for _, h := range []tracing.Named{{Name: "reads", Histogram: t.D2CRead},
		{Name: "writes", Histogram: t.D2CWrite}} {
		if h.Samples() > 0 {
			line("D2C of %s: p50 %s, p99 %s", h.Name, tracing.Microseconds(h.Percentile(50)),
				tracing.Microseconds(h.Percentile(99)))
		}
	}
	for _, h := range []tracing.Named{{Name: "reads", Histogram: t.LBARead},
		{Name: "writes", Histogram: t.LBAWrite}} {
		if z := h.HotZone(); z != "" {
			line("hot zone of %s: %s", h.Name, z)
		}
	}
	if p := &t.Capture; in.About == nil {
		line("mean depth %.2f (reads %.2f, writes %.2f)", p.Read.MeanDepth+p.Write.MeanDepth,
			p.Read.MeanDepth, p.Write.MeanDepth)
	}
}

func (j *job) body(b *strings.Builder) {
	p := func(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }
	p("[kv-cache]")
	p("ioengine=libaio")
	p("direct=1")
	p("time_based")
	p("runtime=300")
	p("rw=randrw")
	p("rwmixread=%d", j.mixRead)
	p("bssplit=%s,%s", splitText(j.read, j.write), splitText(j.write, j.read))
	p("iodepth=%d", j.depth)
	p("iodepth_batch_submit=%d", j.depth)
	p("iodepth_batch_complete_min=1")
	if j.thinkBlocks > 0 {
		p("thinktime=%d", j.thinkUS)
		p("thinktime_blocks=%d", j.thinkBlocks)
	}
	if j.hugePages > 0 {
		p("iomem=mmaphuge")
		p("hugepage-size=2m")
	}
	p("refill_buffers=1")
	p("norandommap=1")
	p("randrepeat=0")
	p("numjobs=1")
	p("group_reporting")
	p("percentile_list=50:95:99:99.9:99.99")
}

// oneLine keeps a warning inside of its comment.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
