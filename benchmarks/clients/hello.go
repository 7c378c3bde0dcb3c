package clients

import (
	"cmp"
	"debug/elf"
	"encoding/hex"
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/environment"
	"kvbench/kvbench/group/coordinate"
	"kvbench/kvbench/group/launchers"
	"kvbench/kvbench/group/wire"
	"kvbench/kvbench/params"
	"kvbench/tracing/host"
)

// Obey makes this process the rank of its orders, as if a launcher had set them. It writes none of
// the testing package's files, which have one name for all ranks: rank 0 writes them.
func Obey(o *coordinate.Orders, in *params.Inputs) {
	for _, name := range []string{"cpuprofile", "memprofile", "blockprofile", "mutexprofile",
		"trace", "coverprofile", "testlogfile"} {
		_ = flag.Set("test."+name, "") // the testing package has them all
	}
	value := func(n int) launchers.Value {
		return launchers.Value{Text: strconv.Itoa(n), Variable: coordinate.Variable}
	}
	in.Base, in.Stamp = o.Base, o.Stamp
	in.Agent = &launchers.Place{Family: "kvbench", Rank: value(o.Rank), Size: value(o.Ranks),
		Local: value(o.Ranks)}
}

// hello identifies this process to the others. Plans are what it is going to run, none where it
// cannot; dirs are the directories in which it is going to work.
func hello(m *Meeting, plans []*params.Values, dirs []string) wire.Hello {
	h := wire.Hello{Protocol: wire.Protocol, Job: m.Job, Rank: m.Rank, Ranks: m.Ranks,
		PID: os.Getpid(), Build: build(), Parameters: decisive(plans)}
	h.Host, _ = os.Hostname()
	h.Boot, h.TimeNS = coordinate.WhoseClock()
	for _, dir := range dirs {
		h.Filesystems = append(h.Filesystems, wire.Filesystem(host.IdentityOf(dir)))
	}
	return h
}

// decisive are the parameters that decide what is measured, over all selected benchmarks: of each
// its values in the order of the plans.
func decisive(plans []*params.Values) map[string]string {
	values := map[string][]string{}
	add := func(name, value string) {
		if !slices.Contains(values[name], value) {
			values[name] = append(values[name], value)
		}
	}
	for _, v := range plans {
		// These are no rows of the parameter table.
		add("bench", strings.TrimSuffix(v.Bench.Name+"/"+v.Point, "/"))
		add("benchtime", v.Text("benchtime"))
		add("count", strconv.Itoa(v.Count))
		for _, p := range v.Parameters() {
			if params.Comparable(p.Name) {
				add(p.Name, v.Text(p.Name))
			}
		}
	}
	joined := map[string]string{}
	for name, list := range values {
		joined[name] = strings.Join(list, ",")
	}
	return joined
}

// build identifies this binary by the linker's build id, which depends on its source, or by the
// version where there is none.
func build() string {
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		return environment.Version()
	}
	defer f.Close()
	id := ""
	for _, s := range f.Sections {
		if s.Name == ".note.go.buildid" {
			note, _ := s.Data()
			id = hex.EncodeToString(note)
		}
	}
	return cmp.Or(id[max(0, len(id)-24):], environment.Version())
}
