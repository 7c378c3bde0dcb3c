package result

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"kvbench/tracing/host"
)

// ReadEnvironment returns the description of this machine and of the directory dir, which should exist. With
// "" it describes only the machine.
func ReadEnvironment(dir string) Environment {
	e := machine(host.Root(""))
	e.Hostname, _ = os.Hostname()
	_, east := time.Now().Zone()
	e.UTCOffsetS = new(int64(east))
	if dir == "" {
		return e
	}
	d, err := host.BackingDevice(dir)
	if err != nil {
		e.DeviceReason = err.Error()
		return e
	}
	directory(&e, d)
	return e
}

// machine describes the machine from /proc and /sys below root, or on other systems from
// host.SystemFacts.
func machine(root host.Root) Environment {
	kernel, cpu, memory := host.SystemFacts()
	return Environment{
		OS:     cmp.Or(root.Field("PRETTY_NAME", "/etc/os-release"), runtime.GOOS),
		Kernel: cmp.Or(root.Text("/proc/sys/kernel/osrelease"), kernel), Arch: runtime.GOARCH,
		CPUModel: cmp.Or(cpuModel(root), cpu), Cores: cmp.Or(root.OnlineCPUs(), runtime.NumCPU()),
		CPUGovernor: root.Text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
		MemoryBytes: cmp.Or(root.KiB("MemTotal", "/proc/meminfo"), memory),
		BootID:      root.Text("/proc/sys/kernel/random/boot_id"),
		GoVersion:   runtime.Version(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		HugePages:    host.Chosen(root.Text("/sys/kernel/mm/transparent_hugepage/enabled")),
		HugePagePool: root.Integer("/proc/sys/vm/nr_hugepages"),
	}
}

// cpuModel returns the processor's name. arm64 kernels have only numbers (implementer and part). It
// returns these numbers, because a list of names would go out of date.
func cpuModel(root host.Root) string {
	field := func(name string) string { return root.Field(name, "/proc/cpuinfo") }
	name, part := field("model name"), field("CPU part")
	if name == "" && part != "" {
		name = "ARM implementer " + field("CPU implementer") + " part " + part
	}
	return name
}

// directory sets the filesystem and the device of e.
func directory(e *Environment, d host.Device) {
	e.Filesystem, e.Device, e.DeviceReason = FilesystemOf(d), DeviceOf(d), d.Reason
}

// FilesystemOf returns the description of the mount of d.
func FilesystemOf(d host.Device) Filesystem {
	m := d.Mount
	fs := Filesystem{
		Type: d.Filesystem, MountPoint: m.Point, Source: m.Source, Options: m.Options,
		SuperOptions: m.SuperOptions, InMemory: host.InMemory(d.Filesystem),
	}
	if read, write, ok := m.TransferSizes(); ok {
		fs.ReadSizeBytes, fs.WriteSizeBytes = &read, &write
	}
	return fs
}

// DeviceOf returns the description of the block device of d, nil if there is none.
func DeviceOf(d host.Device) *Device {
	if d.Name == "" {
		return nil
	}
	dev := BlockDevice(d.SysPath)
	dev.Partition, dev.BackingFile, dev.Note = d.Partition, d.BackingFile, d.Note
	for _, m := range d.Below() {
		member := BlockDevice(m.SysPath)
		member.Partition = m.Partition
		dev.Members = append(dev.Members, member)
	}
	return &dev
}

// BlockDevice returns the description of the whole device whose directory in sysfs is dir
// (/sys/block/nvme0n1, with links resolved).
func BlockDevice(dir string) Device {
	at := host.Root(dir)
	d := Device{
		Name:      filepath.Base(dir),
		Transport: transport(dir),
		Firmware:  cmp.Or(at.Text("device/firmware_rev"), at.Text("device/rev")), // NVMe, SCSI
		Queue: Queue{
			Scheduler:         host.Chosen(at.Text("queue/scheduler")),
			WriteCache:        at.Text("queue/write_cache"),
			LogicalBlockSize:  at.Integer("queue/logical_block_size"),
			PhysicalBlockSize: at.Integer("queue/physical_block_size"),
			MaxSegments:       at.Integer("queue/max_segments"),
			MaxSegmentSize:    at.Integer("queue/max_segment_size"),
			MaxSectorsKB:      at.Integer("queue/max_sectors_kb"),
			MaxHWSectorsKB:    at.Integer("queue/max_hw_sectors_kb"),
			Requests:          at.Integer("queue/nr_requests"),
			ReadAheadKB:       at.Integer("queue/read_ahead_kb"),
		},
	}
	if model := at.Text("device/model"); model != "" {
		// virtio has no model, only a PCI vendor number, so the vendor is not used alone.
		d.Model = strings.TrimSpace(at.Text("device/vendor") + " " + model)
	}
	if sectors := at.Integer("size"); sectors != nil {
		d.SizeBytes = new(*sectors * host.SectorSize)
	}
	if r := at.Integer("queue/rotational"); r != nil {
		d.Rotational = new(*r != 0)
	}
	return d
}

// buses are the transports by an element of the device's path in sysfs. If several match, the last
// counts, which is the innermost: an iSCSI session may be below a virtual adapter, and the virtual
// adapter below a PCI device.
var buses = []struct {
	transport string
	element   *regexp.Regexp
}{
	{"virtio", regexp.MustCompile(`/virtio\d+/`)},
	{"usb", regexp.MustCompile(`/usb\d+/`)},
	{"sata", regexp.MustCompile(`/ata\d+/`)},
	{"sas", regexp.MustCompile(`/end_device-`)},
	{"fc", regexp.MustCompile(`/rport-`)},
	{"iscsi", regexp.MustCompile(`/session\d+/`)},
}

// transport returns how the device at dir is attached, from sysfs (kernel documentation:
// Documentation/ABI/testing/sysfs-class-nvme and -transport_*). It returns "" if the transport is unknown,
// or if the paths of a multipath device have different transports.
func transport(dir string) string {
	at := host.Root(dir)
	if t := at.Text("device/transport"); t != "" {
		return t // the controller of an NVMe namespace
	}
	// The device of a multipath head is its NVMe subsystem, with the controllers below. If the
	// controllers have different transports, there is no common one.
	found := ""
	for _, name := range at.Names("device") {
		t := at.Text("device", name, "transport")
		if t != "" && found != "" && t != found {
			return ""
		}
		found = cmp.Or(t, found)
	}
	for _, b := range buses {
		if b.element.MatchString(dir) {
			found = b.transport
		}
	}
	// A SATA drive behind a SAS adapter is a SCSI device with the vendor ATA (SAT, T10/2241-D).
	if found == "sas" && at.Text("device/vendor") == "ATA" {
		return "sata"
	}
	return found
}
