//go:build linux && (amd64 || arm64)

package collector

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/cilium/ebpf"

	"kvbench/tracing/bpf"
	"kvbench/tracing/host"
)

// As in bpf/process.h.
const (
	watchOne uint32 = 1
	watchSet uint32 = 2
)

// watchSpec is how processes are told from each other.
type watchSpec struct {
	mode, tgid uint32
	comm       [commLength]byte
	text       string
}

func watched(opt Options, spec *ebpf.CollectionSpec) watchSpec {
	if opt.Comm == "" && opt.PID == 0 {
		return watchSpec{mode: watchOne, tgid: ownID(spec), text: "this process"}
	}
	w := watchSpec{mode: watchSet, text: fmt.Sprintf("process %d and its children", opt.PID)}
	if opt.Comm != "" {
		w.text = fmt.Sprintf("processes named %s and their children", opt.Comm)
		copy(w.comm[:], opt.Comm)
	}
	return w
}

// watch puts the processes that run already into the set.
func (k *kernelPrograms) watch(opt Options) error {
	if opt.Comm == "" && opt.PID == 0 {
		return nil
	}
	ids := withChildren(processes(), func(p process) bool {
		return p.pid == opt.PID || opt.Comm != "" && p.comm == opt.Comm
	})
	for _, pid := range ids {
		if err := k.coll.Maps[bpf.TraceMapWatched].Put(uint32(pid), uint8(1)); err != nil {
			return fmt.Errorf("watch process %d: %w", pid, err)
		}
	}
	return nil
}

func (k *kernelPrograms) family() (ids []int) {
	var pid uint32
	var yes uint8
	all := k.coll.Maps[bpf.TraceMapWatched].Iterate()
	for all.Next(&pid, &yes) {
		ids = append(ids, int(pid))
	}
	return ids // an aborted iteration, because the map changed, has most of them
}

// ownID is this process's id as the kernel counts it. In a container os.Getpid says another; a
// program that runs once in our name tells (since Linux 5.10).
func ownID(spec *ebpf.CollectionSpec) uint32 {
	fallback := uint32(os.Getpid())
	p, err := ebpf.NewProgram(spec.Programs[bpf.TraceProgWhoami])
	if err != nil {
		return fallback
	}
	defer p.Close()
	if id, err := p.Run(&ebpf.RunOptions{}); err == nil && id != 0 {
		return id
	}
	return fallback
}

type process struct {
	pid, parent int
	comm        string
}

// processes reads /proc; those that end meanwhile are left out.
func processes() (all []process) {
	const files = host.Root("/proc")
	for _, name := range files.Names() {
		pid, err := strconv.Atoi(name)
		parent, gone := strconv.Atoi(files.Field("PPid", name, "status"))
		if err == nil && gone == nil {
			all = append(all, process{pid, parent, files.Text(name, "comm")})
		}
	}
	return all
}

// withChildren lists the processes that match and all that descend from them.
func withChildren(all []process, match func(process) bool) []int {
	in := map[int]bool{}
	for before := -1; before < len(in); {
		before = len(in)
		for _, p := range all {
			if in[p.parent] || match(p) {
				in[p.pid] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(in))
}
