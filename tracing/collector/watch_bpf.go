//go:build linux && (amd64 || arm64)

package collector

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"

	"kvbench/tracing/bpf"
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
	match      func(process) bool
	text       string
}

func watched(opt Options, spec *ebpf.CollectionSpec) watchSpec {
	switch {
	case opt.Comm != "":
		w := watchSpec{mode: watchSet, text: fmt.Sprintf("processes named %s and their children",
			opt.Comm)}
		copy(w.comm[:], opt.Comm)
		w.match = func(p process) bool { return p.comm == opt.Comm }
		return w
	case opt.PID != 0:
		return watchSpec{
			mode: watchSet, text: fmt.Sprintf("process %d and its children", opt.PID),
			match: func(p process) bool { return p.pid == opt.PID },
		}
	}
	return watchSpec{mode: watchOne, tgid: ownID(spec), text: "this process"}
}

// watch puts the processes that run already into the set.
func (k *kernelPrograms) watch(w watchSpec) error {
	if w.match == nil {
		return nil
	}
	for _, pid := range withChildren(processes(), w.match) {
		if err := k.coll.Maps[bpf.TraceMapWatched].Put(pid, uint8(1)); err != nil {
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
func processes() []process {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // a fixed pattern: no error possible
	var all []process
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		if p, ok := parseProcess(string(text)); ok {
			all = append(all, p)
		}
	}
	return all
}

// parseProcess reads "pid (name) state parent …"; a name may hold anything, parentheses too.
func parseProcess(stat string) (process, bool) {
	open, shut := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 0 || shut < open {
		return process{}, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(stat[:open]))
	rest := strings.Fields(stat[shut+1:])
	if err != nil || len(rest) < 2 {
		return process{}, false
	}
	parent, err := strconv.Atoi(rest[1])
	return process{pid: pid, parent: parent, comm: stat[open+1 : shut]}, err == nil
}

// withChildren lists the processes that match and all that descend from them.
func withChildren(all []process, match func(process) bool) []uint32 {
	in := map[int]bool{}
	for _, p := range all {
		if match(p) {
			in[p.pid] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if in[p.parent] && !in[p.pid] {
				in[p.pid], grown = true, true
			}
		}
	}
	var ids []uint32
	for pid := range in {
		ids = append(ids, uint32(pid))
	}
	return ids
}
