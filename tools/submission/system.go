package submission

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/template"

	"kvbench/kvbench/result"
	"kvbench/tools/discover"
	"kvbench/tools/load"
)

// unknown stands where only the submitter knows.
const unknown = "FILL IN"

// node is a kind of client: those that look alike are one.
type node struct {
	CPU, OS, OSVersion     string
	Sockets, Cores, Memory string
	Drive                  drive
	Filesystem             string // its type and mount options
	Name                   string // names the first
	Count                  int
}

// drive is what holds the storage tier, where a local device does.
type drive struct{ Model, Interface, Media, GB, Link, Count string }

// nodes describes the clients by the environment of their results and by what discover found on
// them.
func nodes(files []load.File, found map[string]discover.Hardware) []node {
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
		alike := func(m node) bool {
			m.Name, m.Count = n.Name, n.Count
			return m == n
		}
		if i := slices.IndexFunc(list, alike); i >= 0 {
			list[i].Count++
			continue
		}
		list = append(list, n)
	}
	return list
}

func describe(e result.Environment, h discover.Hardware) node {
	n := node{CPU: cmp.Or(e.CPUModel, unknown), Sockets: unknown, Cores: unknown, Memory: unknown,
		Name: "Benchmark client, as " + e.Hostname, Count: 1}
	if t := e.Filesystem.Type; t != "" {
		n.Filesystem = strings.TrimSuffix(t+" "+strings.Join(e.Filesystem.Options, ","), " ")
	}
	n.OS, n.OSVersion = splitOS(e.OS)
	if h.CPU.Sockets != nil {
		n.Sockets, n.Cores = fmt.Sprint(*h.CPU.Sockets), fmt.Sprint(*h.CPU.Cores)
	}
	if e.MemoryBytes > 0 {
		n.Memory = fmt.Sprint((e.MemoryBytes + 1<<29) >> 30)
	}
	if d := e.Device; d != nil {
		n.Drive = drive{Model: cmp.Or(d.Model, unknown), Interface: "other", Media: unknown,
			GB: unknown, Count: fmt.Sprint(max(1, len(d.Members)))}
		// Of an array the first member stands for all: Count says how many there are.
		if len(d.Members) > 0 {
			d = &d.Members[0]
			n.Drive.Model = cmp.Or(d.Model, unknown)
		}
		// The kernel's name is all that a result has of the interface; SAS and SATA look alike
		// there.
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
	}
	return n
}

// splitOS divides "Ubuntu 24.04 LTS" before its first word with a digit.
func splitOS(name string) (os, version string) {
	words := strings.Fields(name)
	for i, w := range words {
		if i > 0 && strings.ContainsAny(w, "0123456789") {
			return strings.Join(words[:i], " "), strings.Join(words[i:], " ")
		}
	}
	return cmp.Or(name, unknown), unknown
}

//go:embed system.yaml.tmpl
var systemText string

var systemTemplate = template.Must(template.New("system").
	Funcs(template.FuncMap{"scalar": scalar}).Parse(systemText))

// writeSystem writes the description in the form that MLPerf Storage asks for, filled as far as
// the results and discover tell.
func writeSystem(w io.Writer, system string, clients []node) error {
	blank := node{CPU: unknown, OS: unknown, OSVersion: unknown, Sockets: unknown, Cores: unknown,
		Memory: unknown, Count: 1, Name: "Storage node"}
	// A block device behind the directory is taken for a local one. What lies behind a network
	// filesystem cannot be seen from a client and waits to be filled in.
	local := slices.ContainsFunc(clients, func(n node) bool { return n.Drive.Model != "" })
	product := []node{blank}
	if len(clients) == 0 {
		blank.Name = "Benchmark client"
		clients = []node{blank}
	}
	return systemTemplate.Execute(w, map[string]any{"Notice": Notice,
		"System": system, "Local": local, "Product": product, "Clients": clients})
}

// scalar quotes what waits to be filled in and leaves words and numbers as they are.
func scalar(s string) string {
	if s == unknown {
		return fmt.Sprintf("%q", s)
	}
	return s
}
