package clients

import (
	"cmp"
	"crypto/rand"
	"debug/elf"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/group/agent"
	"kvbench/kvbench/group/coordinate"
	"kvbench/kvbench/group/launchers"
	"kvbench/kvbench/group/wire"
	"kvbench/kvbench/params"
	"kvbench/kvbench/version"
	"kvbench/tracing/host"
)

// Obey makes this process the rank that its orders say, as if a launcher had said it. It writes
// none of the testing package's files, which have one name for all ranks: those of rank 0 are what
// was asked for.
func Obey(o *agent.Orders, in *params.Inputs) {
	for _, name := range []string{"cpuprofile", "memprofile", "blockprofile", "mutexprofile",
		"trace", "coverprofile", "testlogfile"} {
		_ = flag.Set("test."+name, "") // the testing package has them all
	}
	say := func(n int) launchers.Value {
		return launchers.Value{Text: strconv.Itoa(n), Variable: agent.Variable}
	}
	// On another host there may be no such directory.
	if info, err := os.Stat(o.Base); err == nil && info.IsDir() {
		in.Base = o.Base
	}
	in.Stamp = o.Stamp
	in.Agent = &launchers.Place{Family: "kvbench", Rank: say(o.Rank), Size: say(o.Ranks),
		Local: say(o.LocalRanks)}
}

// Hello is who this process is, which has orders unless it coordinates. Plans are what it is going
// to run, none where it cannot; dirs are the directories in which it is going to work.
func Hello(plans []*params.Values, orders *agent.Orders, dirs []string) wire.Hello {
	h := wire.Hello{Protocol: wire.Protocol, Job: jobName(), PID: os.Getpid(),
		Build: build(), Parameters: decisive(plans)}
	if len(plans) > 0 {
		h.Rank, h.Ranks = plans[0].Rank, plans[0].Ranks
	}
	if orders != nil {
		h.Rank, h.Ranks, h.Job = orders.Rank, orders.Ranks, orders.Job
	}
	// What the coordinator compares clocks and shares out room by: where nothing is known, nobody
	// shares anything with this rank.
	h.Host, _ = os.Hostname()
	h.Boot, h.TimeNS = coordinate.WhoseClock()
	for _, dir := range dirs {
		h.Devices = append(h.Devices, host.DeviceID(dir))
	}
	limits := host.ReadLimits()
	h.Cores, h.Memory = int(limits.Cores), limits.MemoryLimit
	return h
}

// jobName is that of a run that starts its own ranks: no other has it, on whichever host.
func jobName() string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return fmt.Sprintf("%d-%x", os.Getpid(), random)
}

// decisive are the parameters that decide what is measured, over all that was selected: of each its
// values in the order in which they hold.
func decisive(plans []*params.Values) map[string]string {
	values := map[string][]string{}
	add := func(name, value string) {
		if !slices.Contains(values[name], value) {
			values[name] = append(values[name], value)
		}
	}
	for _, v := range plans {
		// What is run, and for how long, is nothing that a place decides, and no parameter's row.
		add("bench", strings.TrimSuffix(v.Bench.Name+"/"+v.Point, "/"))
		add("benchtime", v.Text("benchtime"))
		add("count", strconv.Itoa(v.Count))
		for _, p := range v.Parameters() {
			if params.Comparable(p.Name) {
				add(p.Name, v.Text(p.Name))
			}
		}
	}
	// One text of each: a sweep has several values, and their order is that of the runs.
	all := map[string]string{}
	for name, list := range values {
		all[name] = strings.Join(list, ",")
	}
	return all
}

// build names this binary: what the linker has put into it, which is another one for any other
// source, or the version where there is no such thing.
func build() string {
	// On other systems there is no such section, and the version is the best that there is. A copy
	// that was made for this run has no path any more.
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		return version.Current()
	}
	defer f.Close()
	id := ""
	for _, s := range f.Sections {
		if s.Name == ".note.go.buildid" {
			note, _ := s.Data()
			id = hex.EncodeToString(note)
		}
	}
	return cmp.Or(id[max(0, len(id)-24):], version.Current())
}
