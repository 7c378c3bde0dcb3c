package discover

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"kvbench/tracing/host"
)

// machine is where everything is looked up. Tests put files below a root and answer the questions
// that are no files. What is no file is a function, which tests replace.
type machine struct {
	host.Root
	environment func(dir string) host.Environment
	limits      func() host.Limits
	filesystem  func(dir string) (host.Filesystem, error)
	nvml        func() ([]GPU, string)
}

// thisMachine asks the system; tests ask files and functions of their own.
func thisMachine() machine {
	return machine{environment: host.ReadEnvironment, limits: host.ReadLimits,
		filesystem: host.FilesystemOf, nvml: nvmlGPUs}
}

// Describe looks at this machine and at a directory of it.
func Describe(dir string) (Hardware, error) {
	m := thisMachine()
	dir, err := m.absolute(dir)
	if err != nil {
		return Hardware{}, err
	}
	return m.hardware(dir), nil
}

// hardware puts everything together. The recommendations come last: they are made of what was
// found and of nothing else.
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
	// What follows asks for what stands above.
	h.GPUs, h.GPUNote = m.gpus()
	h.Directory = m.directory(dir, e)
	h.Tracing = m.tracing(e.Kernel)
	h.Advice = recommend(h)
	return h
}

// absolute is the directory asked about, which must exist.
func (m machine) absolute(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	_, err = os.Stat(abs)
	return abs, err
}

// numbered lists the entries of a directory whose names are prefix and a number, in the order of
// the numbers.
func (m machine) numbered(dir, prefix string) (names []string, numbers []int) {
	for _, name := range m.Names(dir) {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, prefix)); err == nil &&
			strings.HasPrefix(name, prefix) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		names = append(names, fmt.Sprint(dir, "/", prefix, n))
	}
	return names, numbers
}

// cpu counts sockets and cores by their places in the topology: /proc/cpuinfo has them on some
// architectures only. In a container the counts are the host's, and AllowedCores is what this
// process may use.
func (m machine) cpu(e host.Environment, l host.Limits) CPU {
	c := CPU{Model: e.CPUModel, Threads: e.Cores, Governor: e.CPUGovernor, AllowedCores: l.Cores,
		AllowedBecause: l.CoresSource, NUMA: []Node{}}
	// The processor tells a guest that it is one.
	c.Virtual = slices.Contains(strings.Fields(m.Text("/proc/cpuinfo")), "hypervisor")
	sockets, cores := map[string]bool{}, map[string]bool{}
	cpus, _ := m.numbered("/sys/devices/system/cpu", "cpu")
	for _, at := range cpus {
		// Threads of a core share its number; core numbers repeat in every socket.
		socket, core := m.Text(at, "topology/physical_package_id"), m.Text(at, "topology/core_id")
		if socket != "" && core != "" {
			sockets[socket], cores[socket+"/"+core] = true, true
		}
	}
	if len(sockets) > 0 {
		c.Sockets, c.Cores = new(len(sockets)), new(len(cores))
	}
	// Nodes may have gaps in their numbers: memory that was taken offline.
	nodes, ids := m.numbered("/sys/devices/system/node", "node")
	for i, at := range nodes {
		n := Node{ID: ids[i], CPUs: m.Text(at, "cpulist")}
		// "Node 0 MemTotal:       24617128 kB"
		_, total, found := strings.Cut(m.Text(at, "meminfo"), "MemTotal:")
		if f := strings.Fields(total); found && len(f) > 0 {
			if kib, err := strconv.ParseInt(f[0], 10, 64); err == nil {
				n.MemoryBytes = new(kib << 10)
			}
		}
		c.NUMA = append(c.NUMA, n)
	}
	return c
}

// directory describes the mount and the space of a directory, nil when it cannot be asked.
func (m machine) directory(dir string, e host.Environment) *Directory {
	fs, err := m.filesystem(dir)
	if err != nil {
		return nil
	}
	d := &Directory{Path: dir, Filesystem: e.Filesystem, TotalBytes: fs.Total, FreeBytes: fs.Free,
		Root: fs.Root, Network: fs.Network, InMemory: fs.Memory, DeviceReason: e.DeviceReason}
	// Without a mount table, in some sandboxes, statfs still knows the type.
	if d.Filesystem.Type == "" {
		d.Filesystem.Type = fs.Type
	}
	if e.Device != nil {
		d.Device = e.Device.Name
	}
	return d
}

// linux tells whether /proc and /sys can be expected.
func linux() bool { return runtime.GOOS == "linux" }

// ReadFile reads what discover -json wrote on another machine.
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
