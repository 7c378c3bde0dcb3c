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

	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
	"kvbench/tools/discover"
)

// node is a kind of client: equal ones are one node. Empty fields are for the user to fill in.
type node struct {
	CPU, OS, OSVersion     string
	Sockets, Cores, Memory string
	Drive                  drive
	Location               string // where the storage is, seen from the client; "" is not known
	Object                 bool   // the storage has the API of an object store
	Filesystem             string // its type and mount options
	Name                   string // names the first
	Count                  int
}

// drive is the storage tier's drive; without an interface the drive is not local.
type drive struct{ Model, Interface, Media, GB, Link, Count string }

// nodes describes the clients by the environment of their results and by what discover found on
// them.
func nodes(files []merge.File, found map[string]discover.Hardware) []node {
	hosts, object := make(map[string]result.Environment), make(map[string]bool)
	for _, f := range files {
		if e := f.Result.Environment; e.Hostname != "" {
			hosts[e.Hostname] = e
			object[e.Hostname] = f.Result.Objects != nil
		}
	}
	// Equal except for their names: MLPerf describes a kind of client once, with its number.
	var list []node
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		n := describe(hosts[host], found[host])
		if object[host] {
			n.Object, n.Location, n.Drive, n.Filesystem = true, remote, drive{}, ""
		}
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

// describe combines the client's description in a result, made when it ran, with discover's, which
// may be newer: sockets, cores and links are in no result.
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
		// Without a device behind it a directory is a network's, or in memory, which is none.
		if e.Filesystem.Type != "" && !e.Filesystem.InMemory {
			n.Location = remote
		}
		return n
	}
	n.Drive = drive{Model: d.Model, Count: fmt.Sprint(max(1, len(d.Members)))}
	// A stack is located where its members are: its own place in the kernel's tree is virtual.
	members := d.Members
	if len(members) == 0 {
		members = []result.Device{*d}
	}
	for i, m := range members {
		// An array of local and remote drives is both, like a mirror to another building.
		where := locations[m.Transport]
		if i > 0 && where != n.Location && where != "" && n.Location != "" {
			where = both
		}
		if n.Location = where; where == "" {
			break // an unknown one may be either
		}
	}
	// The first member describes an array; Count is their number.
	first := members[0]
	n.Drive.Interface = interfaceOf(first)
	// A virtual disk reports that it rotates, whatever its host has.
	physical := locations[first.Transport] != ""
	if physical && first.Rotational != nil && *first.Rotational {
		n.Drive.Media = "HDD"
	}
	if first.SizeBytes != nil {
		n.Drive.GB = fmt.Sprint((*first.SizeBytes + 5e8) / 1e9)
	}
	for _, dev := range h.Devices {
		if dev.Name == first.Name && dev.Link != nil {
			n.Drive.Link = fmt.Sprintf("PCIe Gen%d x%d", dev.Link.Generation, dev.Link.Width)
		}
	}
	return n
}

// The words of schema.yaml for storage_location.
const (
	local  = "local"
	remote = "remote"
	both   = "remote_and_local"
)

// locations is the location of a device by its transport. Only the host knows a virtual machine's
// disk.
var locations = map[string]string{"pcie": local, "sata": local, "sas": local, "usb": local,
	"tcp": remote, "rdma": remote, "fc": remote, "iscsi": remote}

// interfaceOf is a drive's interface in the words of schema.yaml, "" where it is not known: SAS and
// SATA drives have names alike.
func interfaceOf(d result.Device) string {
	switch {
	case strings.HasPrefix(d.Name, "nvme"):
		return "nvme"
	// schema.yaml writes these two in capitals, and refuses them otherwise.
	case d.Transport == "sata" || d.Transport == "sas":
		return strings.ToUpper(d.Transport)
	case d.Transport == "" && strings.HasPrefix(d.Name, "sd"):
		return ""
	}
	return "other"
}

// unknown marks facts that only the submitter knows.
const unknown = "FILL IN"

//go:embed system.yaml.tmpl
var systemText string

// The template quotes texts and leaves numbers and the words of a list as they are.
var systemTemplate = template.Must(template.New("system").Funcs(template.FuncMap{
	"text":  func(s string) string { return strconv.Quote(cmp.Or(s, unknown)) },
	"plain": func(s string) string { return cmp.Or(s, strconv.Quote(unknown)) },
}).Parse(systemText))

//go:embed todo.md.tmpl
var todoText string

var todoTemplate = template.Must(template.New("todo").Parse(todoText))

// writeSystem writes the description in MLPerf Storage's form, filled in from the results and
// discover.
func writeSystem(w io.Writer, system string, clients []node) error {
	if len(clients) == 0 {
		clients = []node{{Name: "Benchmark client", Count: 1}}
	}
	// One client with an unknown location makes the whole unknown: a guess would be a false
	// statement about a product.
	location := clients[0].Location
	for _, c := range clients[1:] {
		if c.Location == "" || location == "" {
			location = ""
		} else if c.Location != location {
			location = both
		}
	}
	// The filesystem on a drive, local or remote, is the client's; the product under test stores
	// the bytes.
	api, product := "file", ""
	if object := slices.ContainsFunc(clients, func(n node) bool { return n.Object }); object {
		api, product = "object", "object"
	} else if slices.ContainsFunc(clients, func(n node) bool { return n.Drive.Count != "" }) {
		product = "block"
	}
	return systemTemplate.Execute(w, map[string]any{"Notice": result.ClosedNotice, "System": system,
		"Clients": clients, "Location": location, "Local": location == local, "API": api,
		"Product": product, "Storage": node{Name: "Storage node", Count: 1}})
}
