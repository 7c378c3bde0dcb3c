//go:build linux && (amd64 || arm64)

package collector

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/prometheus/procfs"

	"kvbench/tracing/bpf"
)

// As in bpf/process.h.
const (
	watchNone   uint32 = 0
	watchOne    uint32 = 1
	watchSet    uint32 = 2
	watchCgroup uint32 = 3
)

// watchSpec is how the watched processes are recognized.
type watchSpec struct {
	mode, tgid uint32
	comm       [commLength]byte
	dirty      bool // attribute the writes of the page cache to processes
	text       string
}

func watched(opt Options) watchSpec {
	w := watchSpec{mode: watchSet, dirty: true}
	switch {
	case opt.Comm != "":
		w.text = fmt.Sprintf("processes named %s and their children", opt.Comm)
		copy(w.comm[:], opt.Comm)
	case opt.PID != 0:
		w.text = fmt.Sprintf("process %d and its children", opt.PID)
	case opt.Cgroup != "":
		w.mode, w.text = watchCgroup, "the cgroup "+opt.Cgroup
	case opt.ByOwner:
		w.mode = watchNone
	default:
		return watchSpec{mode: watchOne, text: "this process"}
	}
	return w
}

// watch gives the programs the running processes or the cgroup to watch.
func (k *kernelPrograms) watch(opt Options, w watchSpec, list *ebpf.ProgramSpec) error {
	if opt.ByOwner { // the kernel always needs an entry
		kernel := bpf.TraceOwner{}
		if err := k.coll.Maps[bpf.TraceMapOwners].Put(uint32(0), &kernel); err != nil {
			return fmt.Errorf("count requests by process: %w", err)
		}
	}
	switch w.mode {
	case watchCgroup:
		dir, err := os.Open(opt.Cgroup)
		if err != nil {
			return fmt.Errorf("watch a cgroup: %w", err)
		}
		defer dir.Close()
		err = k.coll.Maps[bpf.TraceMapWatchedCgroup].Put(uint32(0), uint32(dir.Fd()))
		if err != nil {
			return fmt.Errorf("watch the cgroup %s: %w", opt.Cgroup, err)
		}
	case watchSet:
		return k.watchRunning(opt, list)
	}
	return nil
}

// watchRunning puts the running processes into the set.
func (k *kernelPrograms) watchRunning(opt Options, list *ebpf.ProgramSpec) error {
	set := k.coll.Maps[bpf.TraceMapWatched]
	return untilNoneIsNew(processes, func() (map[uint32]uint32, error) { return kernelIDs(list) },
		func(p procfs.ProcStat) bool {
			return p.PID == opt.PID || opt.Comm != "" && p.Comm == opt.Comm
		},
		func(pid int, id uint32) (isNew bool, err error) {
			err = set.Update(id, uint8(1), ebpf.UpdateNoExist)
			if errors.Is(err, ebpf.ErrKeyExist) {
				return false, nil // the programs have seen its start
			}
			if err != nil {
				return false, fmt.Errorf("watch process %d: %w", pid, err)
			}
			k.initial++
			if !alive(pid) { // it may have ended before it was watched; then no program saw its end
				_ = set.Delete(id)
			}
			return true, nil
		})
}

// untilNoneIsNew watches the processes that match, and their children. The programs see the start of a
// child only after its parent is watched. A child that starts between the list and the watching of its
// parent is in the next list. So lists are read until all processes of one are watched. The ids are
// read after the list: a process of the list without an id has ended.
func untilNoneIsNew(list func() []procfs.ProcStat, ids func() (map[uint32]uint32, error),
	match func(procfs.ProcStat) bool, watch func(pid int, id uint32) (isNew bool, err error)) error {
	for met := map[int]bool{}; ; {
		family := withChildren(list(), match)
		global, err := ids()
		if err != nil {
			return err
		}
		grown := false
		for _, pid := range family {
			id, lives := global[uint32(pid)]
			if !lives || met[pid] {
				continue
			}
			met[pid] = true
			isNew, err := watch(pid, id)
			if err != nil {
				return err
			}
			grown = grown || isNew
		}
		if !grown {
			return nil
		}
	}
}

// kernelIDs maps the ids of processes in this PID namespace and its /proc to the kernel's own ids,
// which the programs use. The two differ in a container only.
func kernelIDs(list *ebpf.ProgramSpec) (map[uint32]uint32, error) {
	p, err := ebpf.NewProgram(list)
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	defer p.Close()
	it, err := link.AttachIter(link.IterOptions{Program: p})
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	defer it.Close()
	r, err := it.Open()
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	defer r.Close()
	ids := map[uint32]uint32{}
	for in := bufio.NewReader(r); ; {
		var pair [2]uint32 // the kernel's, ours
		switch err := binary.Read(in, binary.NativeEndian, &pair); err {
		case nil:
			ids[pair[1]] = pair[0]
		case io.EOF:
			return ids, nil
		default:
			return nil, fmt.Errorf("list the processes: %w", err)
		}
	}
}

func (k *kernelPrograms) family() (met, running int) {
	var counts [2]uint64
	if k.coll.Variables[bpf.TraceVarFamily].Get(&counts) != nil {
		return 0, 0
	}
	var pid uint32
	var present uint8
	entries := k.coll.Maps[bpf.TraceMapWatched].Iterate()
	for entries.Next(&pid, &present) {
		running++
	}
	return k.initial + int(counts[0]), running // an aborted iteration counts most of them
}

// alive reports whether a process has not ended. A zombie has ended but is still listed.
func alive(pid int) bool {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return false
	}
	s, err := p.Stat()
	return err == nil && s.State != "Z" && s.State != "X"
}

// processes reads /proc, without the processes that end meanwhile.
func processes() (all []procfs.ProcStat) {
	list, _ := procfs.AllProcs() // without /proc no process matches
	for _, p := range list {
		if s, err := p.Stat(); err == nil {
			all = append(all, s)
		}
	}
	return all
}

// withChildren lists the processes that match, and all their descendants.
func withChildren(all []procfs.ProcStat, match func(procfs.ProcStat) bool) []int {
	in := map[int]bool{}
	for before := -1; before < len(in); {
		before = len(in)
		for _, p := range all {
			if in[p.PPID] || match(p) {
				in[p.PID] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(in))
}
