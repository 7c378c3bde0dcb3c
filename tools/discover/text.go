package discover

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteJSON writes it for machines.
func (h Hardware) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(h)
}

// WriteText writes it for people. One thing a line, so that two machines can be compared with
// diff.
func (h Hardware) WriteText(w io.Writer) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(tab, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	line("host", "%s, %s, kernel %s, %s", h.Hostname, h.OS, h.Kernel, h.Arch)
	line("cpu", "%s", h.CPU.describe())
	for _, n := range h.CPU.NUMA {
		line(fmt.Sprintf("  node %d", n.ID), "CPUs %s, %s", n.CPUs, size(n.MemoryBytes))
	}
	line("memory", "%s, %s available (%s), transparent huge pages %s", size(&h.Memory.TotalBytes),
		size(&h.Memory.AvailableBytes),
		h.Memory.AvailableBecause, cmp.Or(h.Memory.HugePages, "unknown"))
	// What is not there is not told, but for GPUs: their absence is usually a question.
	for _, g := range h.GPUs {
		line(fmt.Sprintf("gpu %d", g.Index), "%s, %s%s (%s)", g.Name, size(g.MemoryBytes),
			describeLink(g.Link), g.Source)
	}
	if h.GPUNote != "" {
		line("gpu", "%s", h.GPUNote)
	}
	for _, d := range h.Devices {
		line(d.Name, "%s", d.describe())
		if l := d.limits(); l != "" {
			line("", "%s", l)
		}
	}
	if d := h.Directory; d != nil {
		line("directory", "%s: %s on %s (%s), %s of %s free", d.Path,
			cmp.Or(d.Filesystem.Type, "unknown"), cmp.Or(d.Filesystem.MountPoint, "unknown"),
			strings.Join(d.Filesystem.Options, ","), size(&d.FreeBytes), size(&d.TotalBytes))
		if d.Device != "" {
			line("", "on %s", d.Device)
		} else {
			line("", "no block device: %s", d.DeviceReason)
		}
	}
	line("tracing", "%s", h.Tracing.Verdict)
	for _, f := range h.Tracing.Features {
		mark := "no "
		if f.There {
			mark = "yes"
		}
		line("  "+f.Name, "%s  %s", mark, f.Detail)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	if len(h.Advice) > 0 {
		fmt.Fprintln(w, "\nrecommended")
	}
	for _, r := range h.Advice {
		fmt.Fprintf(w, "  %s\n      %s\n", r.What, r.Reason)
	}
	return nil
}

// describe is the processors in a line.
func (c CPU) describe() string {
	text := cmp.Or(c.Model, "unknown")
	if c.Sockets != nil {
		text += fmt.Sprintf(", %d socket(s), %d cores", *c.Sockets, *c.Cores)
	}
	text += fmt.Sprintf(", %d threads", c.Threads)
	if c.AllowedCores < float64(c.Threads) {
		text += fmt.Sprintf(", %.3g of them allowed (%s)", c.AllowedCores, c.AllowedBecause)
	}
	if c.Governor != "" {
		text += ", governor " + c.Governor
	}
	if c.Virtual {
		text += ", virtual machine"
	}
	return text
}

// describe is a drive in a line, without the limits of its queue.
func (d Device) describe() string {
	var parts []string
	if d.Model != "" {
		parts = append(parts, d.Model)
	}
	parts = append(parts, size(d.SizeBytes))
	if d.Rotational != nil {
		parts = append(parts, map[bool]string{true: "rotating",
			false: "not rotating"}[*d.Rotational])
	}
	if d.Firmware != "" {
		parts = append(parts, "firmware "+d.Firmware)
	}
	if d.NVMe != nil {
		text := "NVMe over " + cmp.Or(d.NVMe.Transport, "unknown")
		if d.NVMe.Queues != nil {
			text += fmt.Sprintf(", %d queues", *d.NVMe.Queues)
		}
		parts = append(parts, text)
	}
	for _, m := range d.Members {
		parts = append(parts, "over "+m.Name)
	}
	return strings.Join(parts, ", ") + describeLink(d.Link)
}

// limits are those of the request queue.
func (d Device) limits() string {
	var parts []string
	add := func(name string, v *int64, unit string) {
		if v != nil {
			parts = append(parts, fmt.Sprintf("%s %d%s", name, *v, unit))
		}
	}
	if d.Queue.Scheduler != "" {
		parts = append(parts, "scheduler "+d.Queue.Scheduler)
	}
	add("at most", d.Queue.MaxSectorsKB, " KiB per request")
	add("segments", d.Queue.MaxSegments, "")
	add("requests", d.Queue.Requests, "")
	add("logical block", d.Queue.LogicalBlockSize, " B")
	if d.Queue.WriteCache != "" {
		parts = append(parts, "write cache "+d.Queue.WriteCache)
	}
	return strings.Join(parts, ", ")
}

// describeLink says what a PCIe link carries and, when it runs below what both its ends could,
// what it might: a drive in the wrong slot is the commonest reason for half the bandwidth.
func describeLink(l *Link) string {
	if l == nil || l.Generation == 0 {
		return ""
	}
	text := fmt.Sprintf(", PCIe %d × %d (%.1f GiB/s) at %s", l.Generation, l.Width,
		l.gibPerSecond(), l.Address)
	if l.degraded() {
		text += fmt.Sprintf(", could be %d × %d", l.MaxGeneration, l.MaxWidth)
	}
	return text
}

// size has the digits of a data sheet: drives are sold by them.
func size(n *int64) string {
	switch {
	case n == nil:
		return "unknown size"
	case *n >= 1<<40:
		return fmt.Sprintf("%.2f TiB", float64(*n)/(1<<40))
	case *n >= gib:
		return fmt.Sprintf("%.1f GiB", float64(*n)/gib)
	}
	return fmt.Sprintf("%.0f MiB", float64(*n)/(1<<20))
}
