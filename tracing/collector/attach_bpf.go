//go:build linux && (amd64 || arm64)

package collector

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"

	"kvbench/tracing"
	"kvbench/tracing/bpf"
	"kvbench/tracing/host"
)

// events are the tracepoints in the order of attaching: completions first, so that no request is ever followed without
// its end being seen.
var events = []struct{ program, event string }{
	{bpf.TraceProgKvFork, "sched_process_fork"},
	{bpf.TraceProgKvExec, "sched_process_exec"},
	{bpf.TraceProgKvComplete, "block_rq_complete"},
	{bpf.TraceProgKvMerge, "block_rq_merge"},
	{bpf.TraceProgKvRequeue, "block_rq_requeue"},
	{bpf.TraceProgKvIssue, "block_rq_issue"},
	{bpf.TraceProgKvInsert, "block_rq_insert"},
	{bpf.TraceProgKvStart, "block_io_start"},
}

// attach puts the programs into the kernel.
func attach(opt Options, targets []host.Disk) (programs, string, *UnavailableError) {
	_ = rlimit.RemoveMemlock() // needed before Linux 5.11 only; loading tells if it mattered
	kernel, err := thisKernel()
	if err != nil {
		return nil, "", explain(err)
	}
	k, watching, err := load(opt, targets, kernel)
	if err != nil {
		return nil, "", explain(err)
	}
	return k, watching, nil
}

// kernelFacts are the differences between kernels that the programs are told of.
type kernelFacts struct {
	haveStart    bool // block_io_start exists: since Linux 6.5
	noMerge      bool // block_rq_merge does not: 5.4 has none, 5.10 has
	oldArguments bool
}

// thisKernel asks the running kernel's type information.
func thisKernel() (kernelFacts, error) {
	types, err := btf.LoadKernelSpec()
	if err != nil {
		return kernelFacts{}, fmt.Errorf("the kernel's type information: %w", err)
	}
	return kernelFacts{
		haveStart: hasEvent(types, "block_io_start"), noMerge: !hasEvent(types, "block_rq_merge"),
		oldArguments: oldArguments(types),
	}, nil
}

// load puts the programs into the kernel and attaches them.
func load(opt Options, targets []host.Disk, kernel kernelFacts) (*kernelPrograms, string, error) {
	spec, err := bpf.LoadTrace()
	if err != nil {
		return nil, "", err
	}
	watch := watched(opt)
	values := map[string]any{
		bpf.TraceVarHaveStart:    asFlag(kernel.haveStart),
		bpf.TraceVarOldArguments: asFlag(kernel.oldArguments),
		bpf.TraceVarOnlyWatched:  asFlag(opt.Filter == tracing.FilterProcess),
		bpf.TraceVarLbaSectors:   zoneSectors(targets),
		bpf.TraceVarWatch:        watch.mode,
		bpf.TraceVarWatchedTgid:  watch.tgid,
		bpf.TraceVarWatchedComm:  watch.comm,
		bpf.TraceVarCallKind:     callTable(),
		bpf.TraceVarFileDevice:   fileDevice(opt.Device),
	}
	if err := configure(spec, targets, values); err != nil {
		return nil, "", err
	}
	if watch.mode != watchSet {
		spec.Maps[bpf.TraceMapWatched].MaxEntries = 1 // its memory is taken at once
	}
	all := spec.Copy()
	skip := map[string]bool{
		bpf.TraceProgKvInsert: kernel.haveStart, bpf.TraceProgKvStart: !kernel.haveStart, bpf.TraceProgKvMerge: kernel.noMerge,
		bpf.TraceProgKvFork: watch.mode != watchSet, bpf.TraceProgKvExec: watch.comm[0] == 0,
	}
	keep := map[string]bool{}
	for _, e := range events {
		keep[e.program] = !skip[e.program]
	}
	for name := range spec.Programs {
		if !keep[name] {
			delete(spec.Programs, name) // one event that the kernel lacks would fail them all
		}
	}
	if opt.Level != tracing.LevelFile {
		for _, m := range []string{bpf.TraceMapCalling, bpf.TraceMapCallCounts, bpf.TraceMapRecents} {
			delete(spec.Maps, m)
		}
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, "", err
	}
	k := &kernelPrograms{coll: coll}
	for _, e := range events {
		p := coll.Programs[e.program]
		if p == nil {
			continue
		}
		l, err := attachTracing(p)
		if err != nil {
			return nil, "", errors.Join(fmt.Errorf("attach to %s: %w", e.event, err), k.close())
		}
		k.links = append(k.links, l)
	}
	k.attachFiles(opt, all)
	// Only now: who starts from here on is seen by the programs.
	if err := k.watch(watch); err != nil {
		return nil, "", errors.Join(err, k.close())
	}
	return k, watch.text, nil
}

// attachTracing attaches a program to what it was loaded for, by the kernel's type information.
func attachTracing(p *ebpf.Program) (link.Link, error) {
	return link.AttachTracing(link.TracingOptions{Program: p})
}

func configure(spec *ebpf.CollectionSpec, targets []host.Disk, values map[string]any) error {
	values[bpf.TraceVarDevices] = uint32(len(targets))
	var devices [maxTargets]struct {
		Name        [2]uint64
		Number, Pad uint32
	}
	named := false
	for i, t := range targets {
		named = named || t.Hidden
		devices[i].Number = t.Major<<20 | t.Minor
		var name [16]byte
		copy(name[:], t.Name)
		devices[i].Name[0] = binary.LittleEndian.Uint64(name[:8])
		devices[i].Name[1] = binary.LittleEndian.Uint64(name[8:])
	}
	values[bpf.TraceVarDevice], values[bpf.TraceVarByName] = devices, asFlag(named)
	return setAll(spec, values)
}

func setAll(spec *ebpf.CollectionSpec, values map[string]any) error {
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

func asFlag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// hasEvent says whether the kernel has a tracepoint.
func hasEvent(types *btf.Spec, event string) bool {
	var t *btf.Typedef
	return types.TypeByName("btf_trace_"+event, &t) == nil
}

// oldArguments says whether the request is the second argument of the queue's events. It was until Linux 5.11, but that
// change went into older kernels too (5.10.137, distributions), so the version says nothing and the type is asked.
func oldArguments(types *btf.Spec) bool {
	var t *btf.Typedef
	if types.TypeByName("btf_trace_block_rq_issue", &t) != nil {
		return false
	}
	p, ok := t.Type.(*btf.Pointer)
	if !ok {
		return false
	}
	f, ok := p.Target.(*btf.FuncProto)
	return ok && len(f.Params) > 2 // the first is the tracepoint's own
}
