//go:build linux && (amd64 || arm64)

package collector

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"kvbench/tracing"
	"kvbench/tracing/bpf"
	"kvbench/tracing/host"
)

// fileFunctions are those of bpf/functions.h: what their programs are named by, and the kernel's function.
var fileFunctions = func() [][2]string {
	syscall := "__x64_sys_"
	if runtime.GOARCH == "arm64" {
		syscall = "__arm64_sys_"
	}
	return [][2]string{
		{"vfs_read", "vfs_read"}, {"vfs_write", "vfs_write"}, {"vfs_readv", "vfs_readv"}, {"vfs_writev", "vfs_writev"},
		{"fsync", syscall + "fsync"}, {"fdatasync", syscall + "fdatasync"}, {"generic_fadvise", "generic_fadvise"},
	}
}()

// fileWays are the ways of attaching to calls on files, the best first. Kprobes come last: with 300 threads blocked in reads
// of a pipe they lost all of 1000 other reads, because there are some ten kretprobes for calls in progress, and each call
// takes longer in them (see the package's documentation for the numbers).
var fileWays = []tracing.Attach{tracing.AttachFexit, tracing.AttachBTF, tracing.AttachKprobe}

// attachFiles tries the ways of attaching to calls on files in turn. None of them is no reason to do without requests.
func (k *kernelPrograms) attachFiles(opt Options, spec *ebpf.CollectionSpec) {
	k.file = tracing.AttachNone
	if opt.Level != tracing.LevelFile {
		return
	}
	ways := fileWays
	if opt.FileAttach != tracing.AttachAuto {
		ways = []tracing.Attach{opt.FileAttach}
	}
	for _, way := range ways {
		if err := k.loadFiles(way, spec); err != nil {
			k.notBetter = append(k.notBetter, fmt.Sprintf("calls by %s: %s", way, brief(err)))
			continue
		}
		k.file = way
		return
	}
}

// loadFiles loads and attaches one variant of the file layer's programs of an unused specification. They share the maps
// and variables that are there.
func (k *kernelPrograms) loadFiles(way tracing.Attach, spec *ebpf.CollectionSpec) (err error) {
	spec = spec.Copy()
	for name := range spec.Maps {
		if k.coll.Maps[name] == nil {
			delete(spec.Maps, name)
		}
	}
	hooks := fileHooks(way)
	for name := range spec.Programs {
		if !slices.ContainsFunc(hooks, func(h fileHook) bool { return h.program == name }) {
			delete(spec.Programs, name)
		}
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: k.coll.Maps})
	if err != nil {
		return err
	}
	var links []link.Link
	defer func() {
		if err != nil {
			for _, l := range slices.Backward(links) {
				err = errors.Join(err, l.Close())
			}
			coll.Close()
		}
	}()
	for _, h := range hooks {
		l, err := h.attach(coll.Programs[h.program])
		if err != nil {
			return fmt.Errorf("%s: %w", h.event, err)
		}
		links = append(links, l)
	}
	k.files, k.links = coll, append(k.links, links...)
	return nil
}

// fileHook is one program of the file layer and where it goes.
type fileHook struct {
	program, event string
	attach         func(*ebpf.Program) (link.Link, error)
}

// fileHooks lists ends before beginnings, so that no call is followed whose end is not seen.
func fileHooks(way tracing.Attach) (hooks []fileHook) {
	add := func(program, event string, attach func(*ebpf.Program) (link.Link, error)) {
		hooks = append(hooks, fileHook{program, event, attach})
	}
	switch way {
	case tracing.AttachFexit:
		for _, f := range fileFunctions {
			add("fexit_out_"+f[0], f[1], attachTracing)
			add("fexit_in_"+f[0], f[1], attachTracing)
		}
	case tracing.AttachKprobe:
		for _, f := range fileFunctions {
			add("kprobe_out_"+f[0], f[1], func(p *ebpf.Program) (link.Link, error) { return link.Kretprobe(f[1], p, nil) })
			add("kprobe_in_"+f[0], f[1], func(p *ebpf.Program) (link.Link, error) { return link.Kprobe(f[1], p, nil) })
		}
	default:
		add(bpf.TraceProgKvSysExit, "sys_exit", attachTracing)
		add(bpf.TraceProgKvSysEnter, "sys_enter", attachTracing)
	}
	return hooks
}

// systemCalls are the followed ones by number, which the two architectures give differently.
var systemCalls = map[int]uint8{
	unix.SYS_READ: callRead, unix.SYS_PREAD64: callRead, unix.SYS_READV: callRead, unix.SYS_PREADV: callRead, unix.SYS_PREADV2: callRead,
	unix.SYS_WRITE: callWrite, unix.SYS_PWRITE64: callWrite, unix.SYS_WRITEV: callWrite, unix.SYS_PWRITEV: callWrite, unix.SYS_PWRITEV2: callWrite,
	unix.SYS_FSYNC: callFsync, unix.SYS_FDATASYNC: callFsync, unix.SYS_FADVISE64: callKinds,
}

// callTable is call_kind of bpf/syscalls.h: the kind + 1.
func callTable() (table [512]uint8) {
	for number, kind := range systemCalls {
		table[number] = kind + 1
	}
	return table
}

// fileDevice is the number of the filesystem as its superblock has it, which for btrfs is not that of its files.
func fileDevice(d host.Device) uint32 {
	if d.Mount.Point == "" {
		return 0
	}
	return d.Mount.Major<<20 | d.Mount.Minor
}

func (k *kernelPrograms) clearCalls() error {
	if k.files == nil {
		return nil
	}
	zero := make([]bpf.TraceCalls, ebpf.MustPossibleCPU())
	for kind := range uint32(callKinds) {
		if err := k.coll.Maps[bpf.TraceMapCallCounts].Put(inside*callKinds+kind, zero); err != nil {
			return fmt.Errorf("clear the counters of calls: %w", err)
		}
	}
	return nil
}

func (k *kernelPrograms) readCalls(n *counts) error {
	if k.files == nil {
		return nil
	}
	for kind := range n.calls {
		sum, err := sumOf[callCounts](k.coll.Maps[bpf.TraceMapCallCounts], inside*callKinds+kind)
		if err != nil {
			return err
		}
		n.calls[kind] = sum
	}
	return nil
}
