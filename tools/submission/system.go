package submission

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"kvbench/kvbench/merge/tree"
	"kvbench/kvbench/result"
	"kvbench/tools/discover"
)

// node is a kind of client: those that look alike are one. What is empty waits to be filled in.
type node struct {
	CPU, OS, OSVersion     string
	Sockets, Cores, Memory string
	Drive                  drive
	Filesystem             string // its type and mount options
	Name                   string // names the first
	Count                  int
}

// drive is what holds the storage tier; without an interface no local device does.
type drive struct{ Model, Interface, Media, GB, Link, Count string }

// nodes describes the clients by the environment of their results and by what discover found on
// them.
func nodes(files []tree.File, found map[string]discover.Hardware) []node {
	hosts := make(map[string]result.Environment)
	for _, f := range files {
		if e := f.Result.Environment; e.Hostname != "" {
			hosts[e.Hostname] = e
		}
	}
	// Alike but for their names: MLPerf describes a kind of client once, with its number.
	var list []node
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		n := describe(hosts[host], found[host])
		i := slices.IndexFunc(list, func(m node) bool {
			m.Name, m.Count = n.Name, n.Count
			return m == n
		})
		if i < 0 {
			list = append(list, n)
		} else {
			list[i].Count++
		}
	}
	return list
}

// versioned divides "Ubuntu 24.04 LTS" before its first word with a digit.
var versioned = regexp.MustCompile(`^(.+?)\s+(\S*\d.*)$`)

// describe puts together what a result tells of its client, which was there when it ran, and what
// discover tells, which may have been asked later: sockets, cores and links stand in no result.
func describe(e result.Environment, h discover.Hardware) node {
	n := node{Name: "Benchmark client, as " + e.Hostname, Count: 1, CPU: e.CPUModel, OS: e.OS}
	if t := e.Filesystem.Type; t != "" {
		n.Filesystem = strings.TrimSuffix(t+" "+strings.Join(e.Filesystem.Options, ","), " ")
	}
	if m := versioned.FindStringSubmatch(e.OS); m != nil {
		n.OS, n.OSVersion = m[1], m[2]
	}
	if h.CPU.Sockets != nil {
		n.Sockets, n.Cores = fmt.Sprint(*h.CPU.Sockets), fmt.Sprint(*h.CPU.Cores)
	}
	if e.MemoryBytes > 0 {
		n.Memory = fmt.Sprint((e.MemoryBytes + 1<<29) >> 30)
	}
	d := e.Device
	if d == nil {
		return n
	}
	n.Drive = drive{Model: d.Model, Interface: "other", Count: fmt.Sprint(max(1, len(d.Members)))}
	// Of an array the first member stands for all: Count says how many there are.
	if len(d.Members) > 0 {
		d = &d.Members[0]
		n.Drive.Model = d.Model
	}
	// The kernel's name is all that a result has of the interface; SAS and SATA look alike there.
	if strings.HasPrefix(d.Name, "nvme") {
		n.Drive.Interface = "nvme"
	}
	if d.Rotational != nil && *d.Rotational {
		n.Drive.Media = "HDD"
	}
	if d.SizeBytes != nil {
		n.Drive.GB = fmt.Sprint((*d.SizeBytes + 5e8) / 1e9)
	}
	for _, dev := range h.Devices {
		if dev.Name == d.Name && dev.Link != nil {
			n.Drive.Link = fmt.Sprintf("PCIe Gen%d x%d", dev.Link.Generation, dev.Link.Width)
		}
	}
	return n
}

// unknown stands where only the submitter knows.
const unknown = "FILL IN"

//go:embed system.yaml.tmpl
var systemText string

// The template quotes texts and leaves numbers and the words of a list as they are.
var systemTemplate = template.Must(template.New("system").Funcs(template.FuncMap{
	"text":  func(s string) string { return strconv.Quote(cmp.Or(s, unknown)) },
	"plain": func(s string) string { return cmp.Or(s, strconv.Quote(unknown)) },
}).Parse(systemText))

// writeSystem writes the description in the form that MLPerf Storage asks for, filled as far as
// the results and discover tell.
func writeSystem(w io.Writer, system string, clients []node) error {
	if len(clients) == 0 {
		clients = []node{{Name: "Benchmark client", Count: 1}}
	}
	// A block device behind the directory is taken for a local one. What lies behind a network
	// filesystem cannot be seen from a client and waits to be filled in.
	local := slices.ContainsFunc(clients, func(n node) bool { return n.Drive.Interface != "" })
	return systemTemplate.Execute(w, map[string]any{
		"Notice": Notice, "System": system, "Clients": clients, "Local": local,
		"Product": node{Name: "Storage node", Count: 1},
	})
}
