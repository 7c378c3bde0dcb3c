package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// TestMachines queries machines made of files. The scripts in testdata/machines define them:
//
//	machine            a new machine; add: more of the same one. Lines are
//	  /PATH TEXT         a file, and | TEXT: one more line of it
//	  disk DIR NUMBER    a whole device, followed by its counters, or with default counters
//	  partition DIR NUMBER
//	  link FROM TO
//	  at NUMBER [ID]     the device number and mount id of /mnt/kv
//	  node PATH NUMBER   a device node
//	  cpus N             the processors of the affinity mask
//	device             the device behind /mnt/kv, with its counters
//	work NAME…         the work of several devices since the last "work" of this machine, or since they appeared
//	disks NAME…        the devices with requests of a device, or of members=(…)
//	mount PATH…        the mount of each path; transfers PATH…: its transfer sizes
//	named NAME         a device by its name, and the disks below it
//	limits, procs, threads  the limits of the process; nodes: the NUMA nodes of /mnt/kv
//	cgroup NAME        the directory of a cgroup
func TestMachines(t *testing.T) {
	datadriven.Walk(t, "testdata/machines", func(t *testing.T, path string) {
		var f fakeMachine
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			switch d.Cmd {
			case "machine":
				f = newFakeMachine(t)
				f.build(d.Input)
			case "add":
				f.build(d.Input)
			case "device":
				f.printDevice(&b)
			case "work":
				f.printWork(&b, d)
			case "disks":
				f.printDisks(&b, d)
			case "mount", "transfers":
				f.printMounts(&b, d)
			case "limits":
				l := f.limits()
				fmt.Fprintf(&b, "%g cores: %s\n%d bytes: %s\n%d available: %s\n", l.Cores,
					l.CoresSource, l.MemoryLimit, l.MemoryLimitSource, l.MemoryAvailable,
					l.MemoryAvailableSource)
			case "threads":
				n, source := f.threads()
				fmt.Fprintf(&b, "%d %s\n", n, source)
			case "procs":
				n, file := f.procs(12)
				fmt.Fprintf(&b, "%d %s\n", n, file)
			case "nodes":
				fmt.Fprintln(&b, f.storageNodes([]string{t.TempDir()}))
			case "named":
				dev, err := f.namedDevice(d.CmdArgs[0].Key)
				fmt.Fprintf(&b, "%q partition %q, error %v\n", dev.Name, dev.Partition, err)
				for _, below := range dev.Below() {
					fmt.Fprintf(&b, "on %s %s\n", below.Name, below.Partition)
				}
			case "cgroup":
				dir, err := f.findCgroup(d.CmdArgs[0].Key)
				fmt.Fprintf(&b, "%q %v\n", dir, err)
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			return strings.ReplaceAll(b.String(), string(f.Root), "")
		})
	})
}

// fakeMachine is a machine made of files: /proc, /sys and other files of a test.
type fakeMachine struct {
	t *testing.T
	machine
	before Reading // of the last "work"
}

func newFakeMachine(t *testing.T) fakeMachine {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	f := fakeMachine{t: t, machine: machine{Root: Root(root)}}
	f.affinity = func() int { return 0 }
	f.identify = func(string) (identity, error) { return identity{path: "/mnt/kv"}, nil }
	f.blockNode = func(string) (uint32, uint32, error) { return 0, 0, errors.New("no such node") }
	require.NoError(t, os.MkdirAll(f.Path("/sys"), 0o755))
	f.write("/proc/self/mountinfo", "")
	return f
}

func (f *fakeMachine) build(lines string) {
	f.t.Helper()
	number := func(s string) (uint32, uint32) {
		major, minor, err := parseDeviceNumber(s)
		require.NoError(f.t, err)
		return major, minor
	}
	file, text := "", ""
	for line := range strings.Lines(lines) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		part := strings.Fields(rest)
		switch word {
		case "disk":
			f.disk(part[0], part[1], strings.Join(part[2:], " "))
		case "partition":
			f.write(part[0]+"/partition", "1")
			f.write(part[0]+"/dev", part[1])
			f.link("/sys/dev/block/"+part[1], part[0])
		case "link":
			f.link(part[0], part[1])
		case "at":
			at := identity{path: "/mnt/kv"}
			at.major, at.minor = number(part[0])
			if len(part) > 1 {
				at.mountID, _ = strconv.Atoi(part[1])
			}
			f.identify = func(string) (identity, error) { return at, nil }
		case "node":
			major, minor := number(part[1])
			f.blockNode = func(path string) (uint32, uint32, error) {
				require.Equal(f.t, part[0], path)
				return major, minor, nil
			}
		case "cpus":
			n, err := strconv.Atoi(part[0])
			require.NoError(f.t, err)
			f.affinity = func() int { return n }
		case "|":
			text += rest + "\n"
			f.write(file, text)
		default:
			file, text = word, rest+"\n"
			f.write(file, text)
		}
	}
}

func (f fakeMachine) write(path, text string) {
	f.t.Helper()
	path = f.Path(path)
	require.NoError(f.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(f.t, os.WriteFile(path, []byte(text), 0o644))
}

func (f fakeMachine) link(from, to string) {
	f.t.Helper()
	from = f.Path(from)
	require.NoError(f.t, os.MkdirAll(filepath.Dir(from), 0o755))
	require.NoError(f.t, os.Symlink(f.Path(to), from))
}

// disk makes a whole device with its entries in /sys/block, /sys/class/block and /sys/dev/block.
func (f fakeMachine) disk(dir, number, stat string) {
	if stat == "" {
		stat = "100 0 800 5 50 0 1600 7 0 9 12 0 0 0 0 0 0"
	}
	f.write(dir+"/stat", stat+"\n")
	f.write(dir+"/queue/iostats", "1\n")
	f.link("/sys/block/"+filepath.Base(dir), dir)
	if number != "hidden" { // the path of a multipath head
		f.write(dir+"/dev", number+"\n")
		f.link("/sys/dev/block/"+number, dir)
		f.link("/sys/class/block/"+filepath.Base(dir), dir)
	}
}

func (f fakeMachine) printDevice(b *strings.Builder) {
	d, err := f.backingDevice("/mnt/kv")
	require.NoError(f.t, err)
	fmt.Fprintf(b, "%q %d:%d on %q\n", d.Name, d.Major, d.Minor, d.Filesystem)
	for _, line := range []struct{ key, value string }{{"partition", d.Partition},
		{"members", strings.Join(d.Members, " ")}, {"file", d.BackingFile}, {"note", d.Note},
		{"reason", d.Reason}} {
		if line.value != "" {
			fmt.Fprintf(b, "%s: %s\n", line.key, line.value)
		}
	}
	all, err := d.ReadStat()
	switch {
	case d.Reason != "":
		require.EqualError(f.t, err, "no block device statistics: "+d.Reason)
	case err != nil:
		fmt.Fprintln(b, err)
	default:
		printStat(b, all.Sub(nil))
	}
}

func (f *fakeMachine) printWork(b *strings.Builder, d *datadriven.TestData) {
	var all []Device
	for _, arg := range d.CmdArgs {
		dev, err := f.namedDevice(arg.Key)
		require.NoError(f.t, err)
		all = append(all, dev)
	}
	after, err := Together(all...).ReadStat()
	require.NoError(f.t, err)
	printStat(b, after.Sub(f.before))
	f.before = after
}

func printStat(b *strings.Builder, s BlockStat) {
	fmt.Fprintf(b, "read %d %d %v, write %d %d %v, flush %d %v, discard %d %d %v, "+
		"busy %v, queue %v, in flight %d\n", s.ReadIOs, s.ReadBytes, s.ReadTicks, s.WriteIOs,
		s.WriteBytes, s.WriteTicks, s.FlushIOs, s.FlushTicks, s.DiscardIOs, s.DiscardBytes,
		s.DiscardTicks, s.IOTicks, s.TimeInQueue, s.InFlight)
}

func (f fakeMachine) printDisks(b *strings.Builder, d *datadriven.TestData) {
	device := Device{Disk: Disk{root: f.Root}, Reason: "no device"}
	for _, arg := range d.CmdArgs {
		if device.Members = arg.Vals; arg.Key != "members" {
			device.Name = arg.Key
		}
	}
	before := slices.Clone(device.Members)
	found, reason := device.Disks()
	for _, disk := range found {
		fmt.Fprintf(b, "%s hidden=%v\n", disk.Name, disk.Hidden)
	}
	if reason != "" {
		fmt.Fprintln(b, reason)
	}
	require.Equal(f.t, before, device.Members)
}

func (f fakeMachine) printMounts(b *strings.Builder, d *datadriven.TestData) {
	mounts, err := f.mounts()
	if err != nil {
		fmt.Fprintln(b, err)
		return
	}
	for _, arg := range d.CmdArgs {
		at := identity{path: arg.Key}
		if len(arg.Vals) > 0 {
			at.mountID, _ = strconv.Atoi(arg.Vals[0])
		}
		m := findMount(mounts, at)
		if d.Cmd == "transfers" {
			read, write, ok := m.TransferSizes()
			fmt.Fprintln(b, arg.Key, read, write, ok)
			continue
		}
		fmt.Fprintf(b, "%s: %d %q %d:%d %q %q %q %q %q\n", arg.Key, m.ID, m.Point, m.Major,
			m.Minor, m.Root, m.Type, m.Source, m.Options, m.SuperOptions)
	}
}
