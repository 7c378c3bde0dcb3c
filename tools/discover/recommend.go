package discover

import (
	"fmt"
	"os"
	"slices"

	"kvbench/kvbench/params"
	"kvbench/kvbench/units"
	"kvbench/tracing/host"
)

// chunk is the default request size of the suite in bytes.
const chunk = 1 << 20

// page is the page size: 64 KiB in many arm64 kernels. Tests set 4 KiB.
var page = int64(os.Getpagesize())

// advice collects recommendations.
type advice []Recommendation

// add adds a recommendation if it applies. args are the numbers of the reason.
func (a *advice) add(applies bool, what, reason string, args ...any) {
	if applies {
		*a = append(*a, Recommendation{what, fmt.Sprintf(reason, args...)})
	}
}

// recommend returns the recommendations for a description.
func recommend(h Hardware) []Recommendation {
	a := &advice{}
	if h.Directory != nil {
		h.storage(a)
	}
	h.tiers(a)
	h.system(a)
	a.add(h.Tracing.Possible, "-enable-latency-tracing",
		"the kernel reports device latencies, sizes and depths")
	return *a
}

// storage advises on the directory: whether it is on a disk at all, the I/O mode, and the capacity. On the
// root filesystem, on network filesystems and on a nearly full one it recommends half of the free space:
// filling them to 95 % harms other users.
func (h Hardware) storage(a *advice) {
	d, kind := h.Directory, h.Directory.Filesystem.Type
	switch {
	case d.InMemory:
		a.add(true, "-cache-dir <a directory on a disk>", "%s is %s, which keeps its files in "+
			"memory: a run there measures memory", d.Path, kind)
		return
	case kind == "overlay":
		a.add(true, "-cache-dir <a mounted volume>", "%s is a container's own layer: copy-up and "+
			"missing device counters make its numbers worth little", d.Path)
	case d.Network:
		a.add(true, "-io direct", "%s is a shared filesystem (%s): buffered I/O would measure "+
			"the client's cache", d.Path, kind)
	default:
		a.add(true, "-io direct", "the default, except in division closed, which requires "+
			"buffered: reads that the page cache serves measure memory")
	}
	// A run chooses its default capacity by the same rule.
	capacity, _, err := params.ChooseCapacity(host.Filesystem{Type: kind, Free: d.FreeBytes,
		Total: d.TotalBytes, Root: d.Root, Shared: d.Network}, d.Path, 0, 1, false)
	a.add(err == nil, "-storage-capacity-gb 0", "the default takes %s: 95 %% of the %s that are free, and at "+
		"least 5 %% and 10 GiB stay free", units.Bytes.Text(capacity), units.Bytes.Text(d.FreeBytes))
	why := "nearly full"
	if d.Network {
		why = "a shared filesystem, whose free space may be others' too"
	} else if d.Root {
		why = "the root filesystem, whose last bytes the system needs"
	}
	half := params.AutoCapacity(d.FreeBytes)
	a.add(err != nil && half > 0, "-storage-capacity-gb "+units.FormatGiB(half), "half of the "+
		"%s that are free; it must be given because %s is on %s", units.Bytes.Text(d.FreeBytes),
		d.Path, why)
	for _, dev := range h.Devices {
		if dev.Name == d.Device {
			h.device(dev, a)
		}
	}
}

// device advises on the directory's disk.
func (h Hardware) device(dev Device, a *advice) {
	// The queue splits a chunk into several requests. The device sees smaller requests, and the chunk's
	// latency is the latency of the last one.
	q, limit := dev.Queue, ""
	kib := units.OrZero(q.MaxSectorsKB)
	cure := fmt.Sprintf("echo 1024 > /sys/block/%s/queue/max_sectors_kb", dev.Name)
	if hw := q.MaxHWSectorsKB; hw != nil && *hw<<10 < chunk {
		// Writing a larger number to max_sectors_kb fails.
		cure = fmt.Sprintf("-chunk-size %dKiB", kib)
		limit = fmt.Sprintf(", and the drive takes no more than %d", *hw)
	}
	a.add(q.MaxSectorsKB != nil && kib<<10 < chunk, cure,
		"%s splits each 1 MiB chunk into requests of %d KiB%s", dev.Name, kib, limit)
	a.add(dev.splits() && h.Memory.HugePages == "never",
		"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
		"%s takes %d segments per request: 1 MiB of ordinary pages is %d, so every chunk is "+
			"split without huge pages", dev.Name, units.OrZero(q.MaxSegments), chunk/page)
	// A virtual disk reports what the hypervisor chooses: give advice about flash only for physical
	// drives.
	real, rotating := dev.Rotational != nil && !h.CPU.Virtual, units.OrZero(dev.Rotational)
	a.add(real && !rotating && dev.NVMe != nil, "-precondition", "%s is a flash drive: a fresh or "+
		"trimmed one writes faster than it will in its steady state", dev.Name)
	a.add(real && rotating, "-max-concurrent-allocs 1",
		"%s is a rotating disk: every writer more costs seeks", dev.Name)
	a.add(dev.NVMe != nil && q.Scheduler != "" && q.Scheduler != "none",
		fmt.Sprintf("echo none > /sys/block/%s/queue/scheduler", dev.Name),
		"%s is NVMe and sorts its queue itself; the scheduler is %s", dev.Name, q.Scheduler)
	l := units.OrZero(dev.Link)
	a.add(l.Degraded(), "check the slot of "+dev.Name,
		"its PCIe link runs at generation %d × %d (%.1f GiB/s), it could at %d × %d",
		l.Generation, l.Width, l.GiBPerSecond(), l.MaxGeneration, l.MaxWidth)
	// Only with several NUMA nodes.
	node := units.OrZero(l.NUMANode)
	a.add(l.NUMANode != nil && len(h.CPU.NUMA) > 1,
		fmt.Sprintf("numactl -N %d -m %d go test …", node, node),
		"%s is attached to NUMA node %d; from another node every byte crosses the socket link",
		dev.Name, node)
}

// splits reports whether a chunk in ordinary pages has more segments than a request may have.
func (d Device) splits() bool {
	return d.Queue.MaxSegments != nil && *d.Queue.MaxSegments*page < chunk
}

// tiers advises on the users and on the cpu and gpu tiers. The default is no such tier, because the benchmark
// measures storage. All GPUs are assumed to equal the first.
func (h Hardware) tiers(a *advice) {
	users := params.AutoUsers(h.CPU.AllowedCores)
	a.add(true, fmt.Sprintf("-num-users %d", users), "8 for each core, 16 to 300: with fewer a drive waits "+
		"for users, and more of them only wait in the queue")
	spare := params.AutoCPU(h.Memory.AvailableBytes)
	a.add(spare > 0, "-cpu-mem-gb "+units.FormatGiB(spare), "for a production mix: half of the "+
		"%s available (%s); 0, the default, sends everything to the storage",
		units.Bytes.Text(h.Memory.AvailableBytes), h.Memory.AvailableBecause)
	if len(h.GPUs) == 0 {
		return
	}
	g := h.GPUs[0]
	bytes := units.OrZero(g.MemoryBytes)
	a.add(g.MemoryBytes != nil,
		fmt.Sprintf("-gpu-mem-gb %s -num-gpus %d", units.FormatGiB(params.AutoGPU(bytes)), len(h.GPUs)),
		"for a production mix: about 30 %% of the %s of each %s are left for KV when the "+
			"model is loaded; change it to your model", units.Bytes.Text(bytes), g.Name)
	// The gpu tier is simulated with a given link bandwidth: recommend the bandwidth of the slot.
	l := units.OrZero(g.Link)
	a.add(l.GiBPerSecond() > 0, fmt.Sprintf("-gpu-bandwidth-gbps %.0f", l.GiBPerSecond()),
		"the simulated link of the gpu tier: PCIe generation %d × %d; with -gpu-backend cuda instead, the "+
			"tier is in the memory of the card", l.Generation, l.Width)
}

// system advises on settings that make runs differ, or that let the harness limit a run.
func (h Hardware) system(a *advice) {
	c := h.CPU
	// Virtual machines have no governor.
	a.add(c.Governor != "" && c.Governor != "performance", "cpupower frequency-set -g performance",
		"the CPU governor is %s: clocks that follow the load make runs differ", c.Governor)
	a.add(c.Limited(), "raise the CPU limit", "this process may use %.3g of %d logical CPUs (%s): "+
		"the harness may become the limit", c.AllowedCores, c.Threads, c.AllowedBecause)
	advised := func(dev Device) bool { return dev.Name == h.Directory.Device && dev.splits() } // by device
	a.add(h.Memory.HugePages == "never" && !slices.ContainsFunc(h.Devices, advised),
		"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
		"the I/O buffers ask for huge pages, which save CPU time per byte")
}
