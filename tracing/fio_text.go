package tracing

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

func (j *job) header(b *strings.Builder, t *Trace, in FioInput) {
	p := &t.Capture
	line := func(format string, args ...any) { fmt.Fprintf(b, "# "+format+"\n", args...) }
	title := in.Title
	if title == "" {
		title = "a traced process"
	}
	if p.text != nil && p.Watched != "" {
		title += ", of the run of " + p.Watched
	}
	line("fio job distilled from %s of %s", j.source, title)
	if in.Model != "" {
		line("model %s, %d users, %d bytes/token", in.Model, in.Users, in.BytesPerToken)
	}
	switch {
	case p.text != nil:
		p.textHeader(line)
	case j.fromBlock:
		device := p.traced()
		if device != everyDevice {
			device = "device " + device
		}
		line("window %s, %s", p.Window().Round(time.Millisecond), device)
		line("requests: %d reads (%.2f GiB), %d writes (%.2f GiB), %d flushes, %d discards",
			p.Read.Requests, gib(p.Read.Bytes), p.Write.Requests, gib(p.Write.Bytes), p.Flushes, p.Discards)
	default:
		line("window %s, no block device: %s", p.Window().Round(time.Millisecond), oneLine(cmp.Or(p.Reason, "its requests are no block requests of this host")))
		line("application: %.2f GiB read, %.2f GiB written, %.1f operations in flight on average", gib(in.ReadBytes), gib(in.WriteBytes), in.Concurrency)
	}
	if j.fromBlock {
		p.blockHeader(line, t)
	}
	for _, n := range j.notes {
		line("WARNING: %s", oneLine(n))
	}
	line("")
	if j.hugePages > 0 {
		line("The buffers were huge pages, and requests exceed what the device takes of ordinary ones (%d segments). Before:", p.MaxSegments)
		line("  sysctl vm.nr_hugepages=%d", j.hugePages)
	}
	line("Usage (there is no size= on purpose; a file is created, a device is OVERWRITTEN):")
	line("  fio <this file> --filename=/mnt/other/testfile --size=20G")
}

// blockHeader says what the device did with the requests.
func (p *Capture) blockHeader(line func(format string, args ...any), t *Trace) {
	for _, h := range []Named{{"reads", "", t.D2CRead}, {"writes", "", t.D2CWrite}} {
		if h.samples() > 0 {
			line("D2C of %s: p50 %s, p99 %s", h.Name, microseconds(h.Percentile(50)), microseconds(h.Percentile(99)))
		}
	}
	for _, h := range []Named{{"reads", "", t.LBARead}, {"writes", "", t.LBAWrite}} {
		if z := hotZone(h.Histogram); z != "" {
			line("hot zone of %s: %s", h.Name, z)
		}
	}
	if p.text == nil {
		line("mean depth %.2f (reads %.2f, writes %.2f)", p.Read.MeanDepth+p.Write.MeanDepth, p.Read.MeanDepth, p.Write.MeanDepth)
	}
}

// textHeader says what a bpftrace text tells, and what it does not.
func (c *Capture) textHeader(line func(format string, args ...any)) {
	line("not in the text: model, users, bytes per token, exact sizes and bytes, the device, flushes, pauses")
	line("every process is in it, and every block device unless the script was given one")
	line("requests: %d reads, %d writes", c.Read.Requests, c.Write.Requests)
	line("sizes are the lower ends of their buckets, which reach to twice that")
	total := c.Read.MeanDepth + c.Write.MeanDepth
	switch c.text.depth {
	case depthGiven:
		line("mean depth about %.1f: the time at the device ÷ the given window of %s", total, c.Window())
	case depthGauge:
		line("mean depth about %.1f, by the script's counters of requests in flight", total)
	case depthTimes:
		line("mean depth about %.1f", total)
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

func gib(bytes int64) float64 { return float64(bytes) / (1 << 30) }

// everyDevice is what a trace took that was not told one.
const everyDevice = "every device"

// traced names what was traced.
func (c *Capture) traced() string { return cmp.Or(c.Device, strings.Join(c.Members, "+"), everyDevice) }

// oneLine keeps a warning inside of its comment.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
