package discover

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"kvbench/tracing/host"
)

// machine is where everything is looked up. Tests put files below root and answer the questions that are no files.
type machine struct {
	root        string
	environment func(dir string) host.Environment
	limits      func() host.Limits
	filesystem  func(dir string) (host.Filesystem, error)
	nvml        func() ([]GPU, string)
}

func thisMachine() machine {
	return machine{environment: host.ReadEnvironment, limits: host.ReadLimits, filesystem: host.FilesystemOf, nvml: nvmlGPUs}
}

// Read describes this machine and a directory on it, which should exist.
func Read(dir string) Hardware { return thisMachine().hardware(dir) }

func (m machine) hardware(dir string) Hardware {
	e, l := m.environment(dir), m.limits()
	h := Hardware{
		SchemaVersion: SchemaVersion, Hostname: e.Hostname, OS: e.OS, Kernel: e.Kernel, Arch: e.Arch,
		CPU: m.cpu(e, l),
		Memory: Memory{TotalBytes: e.MemoryBytes, AvailableBytes: l.MemoryAvailable, AvailableBecause: l.MemoryAvailableSource,
			HugePages: e.HugePages, HugePagePool: e.HugePagePool},
		Devices: m.devices(),
	}
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

func (m machine) path(name string) string { return filepath.Join(m.root, name) }

// text reads a small file, "" when there is none.
func (m machine) text(name string) string {
	data, err := os.ReadFile(m.path(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// names lists a directory below root, in the order of the numbers in the names.
func (m machine) names(dir, prefix string) []string {
	entries, err := os.ReadDir(m.path(dir))
	if err != nil {
		return nil
	}
	var list []string
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), prefix); ok && (prefix == "" || rest != "" && strings.Trim(rest, "0123456789") == "") {
			list = append(list, e.Name())
		}
	}
	slices.SortStableFunc(list, func(a, b string) int {
		x, _ := strconv.Atoi(strings.TrimPrefix(a, prefix))
		y, _ := strconv.Atoi(strings.TrimPrefix(b, prefix))
		return cmp.Compare(x, y)
	})
	return list
}

func (m machine) cpu(e host.Environment, l host.Limits) CPU {
	c := CPU{Model: e.CPUModel, Threads: e.Cores, Governor: e.CPUGovernor, AllowedCores: l.Cores, AllowedBecause: l.CoresSource, NUMA: []Node{}}
	c.Virtual = slices.Contains(strings.Fields(m.text("/proc/cpuinfo")), "hypervisor")
	sockets, cores := map[string]bool{}, map[string]bool{}
	for _, name := range m.names("/sys/devices/system/cpu", "cpu") {
		at := "/sys/devices/system/cpu/" + name + "/topology/"
		socket, core := m.text(at+"physical_package_id"), m.text(at+"core_id")
		if socket != "" && core != "" {
			sockets[socket], cores[socket+"/"+core] = true, true
		}
	}
	if len(sockets) > 0 {
		c.Sockets, c.Cores = new(len(sockets)), new(len(cores))
	}
	for _, name := range m.names("/sys/devices/system/node", "node") {
		at := "/sys/devices/system/node/" + name + "/"
		id, _ := strconv.Atoi(strings.TrimPrefix(name, "node"))
		n := Node{ID: id, CPUs: m.text(at + "cpulist")}
		for line := range strings.Lines(m.text(at + "meminfo")) {
			// "Node 0 MemTotal:       24617128 kB"
			if f := strings.Fields(line); len(f) >= 4 && f[2] == "MemTotal:" {
				if kib, err := strconv.ParseInt(f[3], 10, 64); err == nil {
					n.MemoryBytes = new(kib << 10)
				}
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
	d := &Directory{Path: dir, Filesystem: e.Filesystem, TotalBytes: fs.Total, FreeBytes: fs.Free, Root: fs.Root, Network: fs.Network,
		InMemory: fs.Memory, DeviceReason: e.DeviceReason}
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
