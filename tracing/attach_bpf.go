//go:build linux && (amd64 || arm64)

package tracing

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"

	"kvbench/tracing/bpf"
)

// events are the tracepoints in the order of attaching: completions first, so that no request is ever followed without
// its end being seen.
var events = []struct{ program, event string }{
	{"fork", "sched_process_fork"},
	{"exec", "sched_process_exec"},
	{"complete", "block_rq_complete"},
	{"merge", "block_rq_merge"},
	{"requeue", "block_rq_requeue"},
	{"issue", "block_rq_issue"},
	{"insert", "block_rq_insert"},
	{"io_start", "block_io_start"},
	{"sys_exit", "sys_exit"},
	{"sys_enter", "sys_enter"},
}

// attach tries the ways of attaching in turn. The error is that of the way that came furthest.
func attach(opt Options, targets []target) (probes, string, *UnavailableError) {
	_ = rlimit.RemoveMemlock() // needed before Linux 5.11 only; loading tells if it mattered
	ways := []Attach{AttachBTF, AttachRaw}
	if opt.Attach != AttachAuto {
		ways = []Attach{opt.Attach}
	}
	var errs []error
	for _, way := range ways {
		k, watching, err := load(opt, targets, way)
		if err == nil {
			return k, watching, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", way, err))
		if refused(err) {
			break // no other way asks for less
		}
	}
	return nil, "", explain(errors.Join(errs...))
}

// load puts one variant of the programs into the kernel and attaches them.
func load(opt Options, targets []target, way Attach) (*kernelProbes, string, error) {
	spec, err := bpf.LoadTrace()
	if err != nil {
		return nil, "", err
	}
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, "", fmt.Errorf("the kernel's type information: %w", err)
	}
	haveStart := hasEvent(kernel, "block_io_start")
	watch, err := watched(opt)
	if err != nil {
		return nil, "", err
	}
	if err := configure(spec, targets, map[string]any{
		bpf.TraceVarHaveStart:    flag(haveStart),
		bpf.TraceVarOldArguments: flag(oldArguments(kernel)),
		bpf.TraceVarOnlyOwn:      flag(opt.Filter == FilterProcess),
		bpf.TraceVarLbaSectors:   zoneSectors(targets),
		bpf.TraceVarWatch:        watch.mode,
		bpf.TraceVarWatchedTgid:  watch.tgid,
		bpf.TraceVarWatchedComm:  watch.comm,
		bpf.TraceVarCallKind:     callTable(),
		bpf.TraceVarFileDevice:   fileDevice(opt.Device),
	}); err != nil {
		return nil, "", err
	}
	skip := map[string]bool{
		"insert": haveStart, "io_start": !haveStart,
		"fork": watch.mode != watchSet, "exec": watch.comm[0] == 0,
		"sys_enter": opt.Level != LevelFile, "sys_exit": opt.Level != LevelFile,
	}
	prefix := map[Attach]string{AttachBTF: "btf_", AttachRaw: "raw_"}[way]
	keep := map[string]bool{}
	for _, e := range events {
		keep[prefix+e.program] = !skip[e.program]
	}
	for name := range spec.Programs {
		if !keep[name] {
			delete(spec.Programs, name) // one event that the kernel lacks would fail them all
		}
	}
	file := way
	if opt.Level != LevelFile {
		file = attachNone
		for _, m := range []string{bpf.TraceMapCalling, bpf.TraceMapCallCounts, bpf.TraceMapRecents} {
			delete(spec.Maps, m)
		}
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, "", err
	}
	k := &kernelProbes{coll: coll, block: way, file: file}
	if err := k.watch(watch); err != nil {
		return nil, "", errors.Join(err, k.close())
	}
	for _, e := range events {
		p := coll.Programs[prefix+e.program]
		if p == nil {
			continue
		}
		l, err := attachOne(p, way, e.event)
		if err != nil {
			return nil, "", errors.Join(fmt.Errorf("attach to %s: %w", e.event, err), k.close())
		}
		k.links = append(k.links, l)
	}
	return k, watch.text, nil
}

func attachOne(p *ebpf.Program, way Attach, event string) (link.Link, error) {
	if way == AttachRaw {
		return link.AttachRawTracepoint(link.RawTracepointOptions{Name: event, Program: p})
	}
	return link.AttachTracing(link.TracingOptions{Program: p})
}

func configure(spec *ebpf.CollectionSpec, targets []target, values map[string]any) error {
	values[bpf.TraceVarDevices] = uint32(len(targets))
	var devices [maxTargets]struct {
		Name        [2]uint64
		Number, Pad uint32
	}
	named := false
	for i, t := range targets {
		named = named || t.named
		devices[i].Number = t.major<<20 | t.minor
		var name [16]byte
		copy(name[:], t.name)
		devices[i].Name[0] = binary.LittleEndian.Uint64(name[:8])
		devices[i].Name[1] = binary.LittleEndian.Uint64(name[8:])
	}
	values[bpf.TraceVarDevice], values[bpf.TraceVarByName] = devices, flag(named)
	for name, v := range values {
		s := spec.Variables[name]
		if s == nil {
			return fmt.Errorf("the programs have no variable %s", name)
		}
		if err := s.Set(v); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// hasEvent says whether the kernel has a tracepoint.
func hasEvent(kernel *btf.Spec, event string) bool {
	var t *btf.Typedef
	return kernel.TypeByName("btf_trace_"+event, &t) == nil
}

// oldArguments says whether the request is the second argument of the queue's events. It was until Linux 5.11, but that
// change went into older kernels too (5.10.137, distributions), so the version says nothing and the type is asked.
func oldArguments(kernel *btf.Spec) bool {
	var t *btf.Typedef
	if kernel.TypeByName("btf_trace_block_rq_issue", &t) != nil {
		return false
	}
	p, ok := t.Type.(*btf.Pointer)
	if !ok {
		return false
	}
	f, ok := p.Target.(*btf.FuncProto)
	return ok && len(f.Params) > 2 // the first is the tracepoint's own
}
