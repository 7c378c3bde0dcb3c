package discover

import (
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/params"
	"kvbench/tracing/host"
)

// Units of the recommendations.
const (
	gib = 1 << 30
	// chunk is the suite's I/O size.
	chunk = 1 << 20
	page  = 4096
)

// recommend derives parameters and settings from what was found.
func recommend(h Hardware) []Recommendation {
	list := []Recommendation{}
	add := func(what, reason string, args ...any) {
		list = append(list, Recommendation{what, fmt.Sprintf(reason, args...)})
	}
	if h.Directory != nil {
		h.storage(add)
	}
	h.memory(add)
	h.gpu(add)
	h.system(add)
	if h.Tracing.Possible {
		add("-enable-latency-tracing", "the kernel can tell device latencies, sizes and depths: %s",
			h.Tracing.Verdict)
	}
	return list
}

// adder takes a recommendation: what to do, and the reason with its numbers.
type adder func(what, reason string, args ...any)

// storage advises on the directory: whether it measures a disk at all, how to read past the page
// cache, and how much of it a run may fill. A filesystem that others share gets a number instead
// of the default: filling the root or a network volume to 95 % hurts people who have nothing to do
// with the run.
func (h Hardware) storage(add adder) {
	d := h.Directory
	// What the directory is decides everything else: a memory filesystem ends the advice.
	switch {
	case d.InMemory:
		add("-cache-dir <a directory on a disk>", "%s is %s, which keeps its files in memory: a "+
			"run there measures memory", d.Path, d.Filesystem.Type)
		return
	case d.Filesystem.Type == "overlay":
		add("-cache-dir <a mounted volume>", "%s is a container's own layer: copy-up and the "+
			"missing device witness make numbers of it worth little", d.Path)
	case d.Network:
		add("-io direct", "%s is a network filesystem (%s): buffered I/O would measure the "+
			"client's cache", d.Path, d.Filesystem.Type)
	default:
		add("-io direct", "the default: reads that the page cache serves measure memory; -io "+
			"buffered is what the closed division requires")
	}
	// The run itself would choose by the same rule, and refuse what that refuses.
	fs := host.Filesystem{Type: d.Filesystem.Type, Free: d.FreeBytes, Total: d.TotalBytes,
		Root: d.Root, Network: d.Network}
	c, err := params.ChooseCapacityOn(fs, d.Path)
	if err == nil {
		add(fmt.Sprintf("-storage-capacity-gb %.0f", float64(c.Bytes)/gib),
			"what the default of 0 takes: 95 %% of the %.1f GiB that are free, and at least 5 %% "+
				"and 10 GiB stay with others", float64(d.FreeBytes)/gib)
	} else if half := d.FreeBytes / 2 / gib; half > 0 {
		why := "the root filesystem, whose last bytes the system needs"
		if d.Network {
			why = "a network filesystem, whose free space is shared"
		} else if !d.Root {
			why = "nearly full"
		}
		add(fmt.Sprintf("-storage-capacity-gb %d", half), "half of the %.1f GiB that are free; "+
			"it must be given because %s is on %s", float64(d.FreeBytes)/gib, d.Path, why)
	}
	// Without a block device behind it there is nothing more to say.
	i := slices.IndexFunc(h.Devices, func(dev Device) bool { return dev.Name == d.Device })
	if i < 0 {
		return
	}
	h.device(h.Devices[i], add)
}

// device advises on the disk behind the directory.
func (h Hardware) device(dev Device, add adder) {
	// A chunk that the queue splits is several requests: the device sees smaller ones than were
	// asked for, and latencies are those of the last.
	if q := dev.Queue.MaxSectorsKB; q != nil && *q<<10 < chunk {
		add(fmt.Sprintf("echo 1024 > /sys/block/%s/queue/max_sectors_kb", dev.Name),
			"%s splits each 1 MiB chunk into requests of %d KiB%s", dev.Name, *q, hwLimit(dev))
	}
	if s := dev.Queue.MaxSegments; s != nil && *s*page < chunk && h.Memory.HugePages == "never" {
		add("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
			"%s takes %d segments per request: 1 MiB of ordinary pages is 256, so every chunk is "+
				"split without huge pages", dev.Name, *s)
	}
	// A virtual disk says what its host pleases; advice about flash is for drives that are there.
	if dev.Rotational != nil && !*dev.Rotational && !h.CPU.Virtual && dev.NVMe != nil {
		add("-precondition", "%s is a flash drive: a fresh or trimmed one writes faster than it "+
			"will in its steady state", dev.Name)
	}
	if dev.Rotational != nil && *dev.Rotational && !h.CPU.Virtual {
		add("-max-concurrent-allocs 1", "%s is a rotating disk: every writer more costs seeks",
			dev.Name)
	}
	if dev.NVMe != nil && dev.Queue.Scheduler != "" && dev.Queue.Scheduler != "none" {
		add(fmt.Sprintf("echo none > /sys/block/%s/queue/scheduler", dev.Name),
			"%s is NVMe and sorts its queue itself; the scheduler is %s", dev.Name,
			dev.Queue.Scheduler)
	}
	if l := dev.Link; l != nil && l.Degraded() {
		add("check the slot of "+dev.Name,
			"its PCIe link runs at generation %d × %d (%.1f GiB/s), it could at %d × %d",
			l.Generation, l.Width, l.GiBPerSecond(), l.MaxGeneration, l.MaxWidth)
	}
	// Only where there is a choice.
	if l := dev.Link; l != nil && l.NUMANode != nil && len(h.CPU.NUMA) > 1 {
		add(fmt.Sprintf("numactl -N %d -m %d go test …", *l.NUMANode, *l.NUMANode),
			"%s is attached to NUMA node %d; from another node every byte crosses the socket link",
			dev.Name, *l.NUMANode)
	}
}

// hwLimit adds what the drive itself cannot exceed: writing a larger number to the queue would
// fail.
func hwLimit(dev Device) string {
	if hw := dev.Queue.MaxHWSectorsKB; hw != nil && *hw<<10 < chunk {
		return fmt.Sprintf(" and takes no more than %d: use -chunk-size %dKiB instead", *hw, *hw)
	}
	return ""
}

// memory advises on a cpu tier. The default is none, since a benchmark of storage is asked for;
// half of the free memory leaves room for the buffers, which are not counted here.
func (h Hardware) memory(add adder) {
	// Below a GiB there is nothing to spare.
	if spare := h.Memory.AvailableBytes / 2 / gib; spare >= 1 {
		add(fmt.Sprintf("-cpu-mem-gb %d", spare), "for a production mix: half of the %.1f GiB "+
			"available (%s); 0, the default, sends everything to the storage",
			float64(h.Memory.AvailableBytes)/gib, h.Memory.AvailableBecause)
	}
}

// gpu advises on the simulated gpu tier by the first card. The others are taken to be like it:
// mixed machines are rare, and their owners know.
func (h Hardware) gpu(add adder) {
	if len(h.GPUs) == 0 {
		return
	}
	g := h.GPUs[0]
	if g.MemoryBytes != nil {
		// Weights and activations have the rest.
		add(fmt.Sprintf("-gpu-mem-gb %d -num-gpus %d", *g.MemoryBytes*3/10/gib, len(h.GPUs)),
			"for a production mix: about 30 %% of the %.0f GiB of each %s are left for KV when "+
				"the model is loaded; change it to your model", float64(*g.MemoryBytes)/gib, g.Name)
	}
	// The gpu tier is simulated: its link is a number that the user gives, and this is the one of
	// the slot.
	if g.Link != nil && g.Link.GiBPerSecond() > 0 {
		add(fmt.Sprintf("-gpu-bandwidth-gbps %.0f", g.Link.GiBPerSecond()),
			"the simulated link of the gpu tier: PCIe generation %d × %d", g.Link.Generation,
			g.Link.Width)
	}
}

// system advises on what makes runs differ from each other, or makes the harness the limit.
func (h Hardware) system(add adder) {
	// Virtual machines have no governor.
	if h.CPU.Governor != "" && h.CPU.Governor != "performance" {
		add("cpupower frequency-set -g performance",
			"the CPU governor is %s: clocks that follow the load make runs differ", h.CPU.Governor)
	}
	if h.CPU.Limited() {
		add("raise the CPU limit", "this process may use %.3g of %d logical CPUs (%s): the "+
			"harness may become the limit", h.CPU.AllowedCores, h.CPU.Threads, h.CPU.AllowedBecause)
	}
	if strings.HasPrefix(h.Memory.HugePages, "never") &&
		!slices.ContainsFunc(h.Devices,
			func(d Device) bool {
				return d.Queue.MaxSegments != nil && *d.Queue.MaxSegments*page < chunk
			}) {
		add("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
			"the I/O buffers ask for huge pages, which save CPU time per byte")
	}
}
