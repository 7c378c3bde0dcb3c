package discover

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tracing/collector"
	"kvbench/tracing/host"
	"kvbench/tracing/nvml"
)

// machine is the source of all facts. Tests set a root with files, and replace the functions for facts
// that are not files.
type machine struct {
	host.Root
	environment func(dir string) result.Environment
	limits      func() host.Limits
	filesystem  func(dir string) (host.Filesystem, error)
	cards       func() ([]nvml.Card, error)
	untraced    func() (why string) // starts and stops a trace; "" if that worked
}

// thisMachine returns the source of this system's facts.
func thisMachine() machine {
	return machine{environment: result.ReadEnvironment, limits: host.ReadLimits,
		filesystem: host.FilesystemOf, cards: nvml.Cards, untraced: tryTracing}
}

// tryTracing starts and stops a trace, in about 50 ms, and returns why it failed. Whether tracing works
// also depends on invisible facts: a security module, a seccomp filter, the verifier.
func tryTracing() (why string) {
	c, err := collector.Start(context.Background(), collector.Options{})
	if err != nil {
		return err.Error()
	}
	if u := c.Unavailable(); u != nil {
		why = u.Reason + "; needed: " + u.Need
	}
	if err := c.Close(); why == "" && err != nil {
		why = err.Error()
	}
	return why
}

// Describe describes this machine and one of its directories, which must exist.
func Describe(dir string) (Hardware, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Hardware{}, err
	}
	switch info, err := os.Stat(dir); {
	case err != nil:
		return Hardware{}, err
	case !info.IsDir():
		return Hardware{}, fmt.Errorf("%s is not a directory: of a block device, give a directory of its "+
			"filesystem", dir)
	}
	return thisMachine().hardware(dir), nil
}

// hardware collects all facts, and then the recommendations, which depend only on the facts.
func (m machine) hardware(dir string) Hardware {
	e, l := m.environment(dir), m.limits()
	h := Hardware{
		SchemaVersion: SchemaVersion, Hostname: e.Hostname, OS: e.OS, Kernel: e.Kernel,
		Arch: e.Arch,
		CPU:  m.cpu(e, l),
		Memory: Memory{TotalBytes: e.MemoryBytes, AvailableBytes: l.MemoryAvailable,
			AvailableBecause: l.MemoryAvailableSource,
			HugePages:        e.HugePages, HugePagePool: e.HugePagePool},
		Devices: m.devices(),
	}
	// These depend on the facts above.
	h.GPUs, h.GPUNote = m.gpus()
	h.Directory = m.directory(dir, e)
	h.Tracing = m.tracing()
	h.Advice = recommend(h)
	return h
}

// cpu describes the processors. It counts sockets and cores in the sysfs topology, because
// /proc/cpuinfo has them only on some architectures. In a container the counts are of the host.
func (m machine) cpu(e result.Environment, l host.Limits) CPU {
	const cpus, nodes = "/sys/devices/system/cpu", "/sys/devices/system/node"
	c := CPU{Model: e.CPUModel, Threads: e.Cores, Governor: e.CPUGovernor, AllowedCores: l.Cores,
		AllowedBecause: l.CoresSource, NUMA: []Node{}}
	// The flag "hypervisor" marks a guest.
	c.Virtual = slices.Contains(strings.Fields(m.Text("/proc/cpuinfo")), "hypervisor")
	sockets, cores := map[string]bool{}, map[string]bool{}
	for _, name := range m.Names(cpus) {
		// Threads of a core have the same core_id. The core_id is unique only within a socket.
		at := host.Root(m.Path(cpus, name, "topology"))
		socket, core := at.Text("physical_package_id"), at.Text("core_id")
		if socket != "" && core != "" {
			sockets[socket], cores[socket+"/"+core] = true, true
		}
	}
	if len(sockets) > 0 {
		c.Sockets, c.Cores = new(len(sockets)), new(len(cores))
	}
	for _, name := range m.Names(nodes) {
		id, err := strconv.Atoi(strings.TrimPrefix(name, "node"))
		if err != nil {
			continue // not a node
		}
		n := Node{ID: id, CPUs: m.Text(nodes, name, "cpulist")}
		total := m.KiB(fmt.Sprintf("Node %d MemTotal", id), nodes, name, "meminfo")
		if total > 0 {
			n.MemoryBytes = &total
		}
		c.NUMA = append(c.NUMA, n)
	}
	slices.SortFunc(c.NUMA, func(a, b Node) int { return a.ID - b.ID })
	return c
}

// directory describes a directory's filesystem, nil if it cannot be read.
func (m machine) directory(dir string, e result.Environment) *Directory {
	fs, err := m.filesystem(dir)
	if err != nil {
		return nil
	}
	d := &Directory{Path: dir, Filesystem: e.Filesystem, TotalBytes: fs.Total, FreeBytes: fs.Free,
		Root: fs.Root, Network: fs.Shared, InMemory: fs.Memory,
		Device: units.OrZero(e.Device).Name, DeviceReason: e.DeviceReason}
	// Some sandboxes have no mount table; statfs still has the type.
	d.Filesystem.Type = cmp.Or(d.Filesystem.Type, fs.Type)
	return d
}

// tracing tries tracing. The error of a failed trial names what is missing.
func (m machine) tracing() Tracing {
	if why := m.untraced(); why != "" {
		return Tracing{Verdict: "no: " + why}
	}
	return Tracing{Possible: true, Verdict: "yes: a trace was begun, and ended"}
}

// linux reports whether this system has /proc and /sys.
func linux() bool { return runtime.GOOS == "linux" }

// ReadFile reads the output of kvreport discover -json.
func ReadFile(path string) (Hardware, error) {
	var h Hardware
	data, err := os.ReadFile(path)
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return h, fmt.Errorf("%s: %w", path, err)
	}
	// A later minor version only adds keys.
	if h.SchemaVersion == "" || h.SchemaVersion[0] != SchemaVersion[0] {
		return h, fmt.Errorf("%s: schema_version %q, this version reads 1.x as kvreport discover "+
			"-json writes it", path, h.SchemaVersion)
	}
	return h, nil
}
