package submission

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
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

// node describes a group of clients with equal hardware and software. The user fills in empty fields.
type node struct {
	CPU, OS, OSVersion     string
	Sockets, Cores, Memory string
	Drive                  drive
	Location               string // of the storage as the client sees it; "" if not known
	Object                 bool   // the storage is an object store
	Filesystem             string // type and mount options
	Name                   string // has the name of the first client of the group
	Count                  int
}

// drive is the drive of the storage tier. All fields are empty if no block device is known.
type drive struct{ Model, Interface, Media, GB, Link, Count string }

// nodes groups the clients. It describes each client by the environment in its results and by the
// hardware that discover found.
func nodes(files []merge.File, found map[string]discover.Hardware) []node {
	hosts, object := make(map[string]result.Environment), make(map[string]bool)
	for _, f := range files {
		if e := f.Result.Environment; e.Hostname != "" {
			hosts[e.Hostname] = e
			object[e.Hostname] = f.Result.Objects != nil
		}
	}
	// Equal except for the name: MLPerf describes a kind of client once, with a count.
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

// versioned splits "Ubuntu 24.04 LTS" before the first word that has a digit.
var versioned = regexp.MustCompile(`^(.+?)\s+(\S*\d.*)$`)

// describe combines the environment in a client's result with the hardware that discover found.
// discover may have run later. Only discover has sockets, cores and PCIe links.
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
		// A directory without a block device is on a network filesystem or in memory. A directory in
		// memory has no location.
		if e.Filesystem.Type != "" && !e.Filesystem.InMemory {
			n.Location = remote
		}
		return n
	}
	n.Drive = drive{Model: d.Model, Count: fmt.Sprint(max(1, len(d.Members)))}
	// The location of a stack (RAID, LVM) is the location of its members, because sysfs lists the stack
	// as virtual.
	members := d.Members
	if len(members) == 0 {
		members = []result.Device{*d}
	}
	for i, m := range members {
		// A mirror of a local and a remote drive is in both locations.
		where := locations[m.Transport]
		if i > 0 && where != n.Location && where != "" && n.Location != "" {
			where = both
		}
		if n.Location = where; where == "" {
			break // an unknown location may be either
		}
	}
	// The first member describes an array. Count is the number of members.
	first := members[0]
	n.Drive.Interface = interfaceOf(first)
	// A virtual disk reports that it rotates, so check only a physical one.
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

// Values of storage_location in schema.yaml.
const (
	local  = "local"
	remote = "remote"
	both   = "remote_and_local"
)

// locations maps a device's transport to its location. The transport of a virtual disk is not in the
// map, because only the hypervisor knows the location.
var locations = map[string]string{"pcie": local, "sata": local, "sas": local, "usb": local,
	"tcp": remote, "rdma": remote, "fc": remote, "iscsi": remote}

// interfaceOf returns a drive's interface as schema.yaml writes it, or "" if it is not known. Without a
// transport, a device sdX may be SAS or SATA.
func interfaceOf(d result.Device) string {
	switch {
	case strings.HasPrefix(d.Name, "nvme"):
		return "nvme"
	case d.Transport == "sata" || d.Transport == "sas":
		return d.Transport
	case d.Transport == "" && strings.HasPrefix(d.Name, "sd"):
		return ""
	}
	return "other"
}

// unknown marks the values that the submitter has to fill in.
const unknown = "FILL IN"

//go:embed system.yaml.tmpl
var systemText string

// The template quotes strings. Numbers and values of an enumeration have no quotes.
var systemTemplate = template.Must(template.New("system").Funcs(template.FuncMap{
	"text":  func(s string) string { return strconv.Quote(cmp.Or(s, unknown)) },
	"plain": func(s string) string { return cmp.Or(s, strconv.Quote(unknown)) },
}).Parse(systemText))

//go:embed todo.md.tmpl
var todoText string

var todoTemplate = template.Must(template.New("todo").Parse(todoText))

// writeSystem writes the system description as schema.yaml requires, with the values that results and
// discover have. Without keys it has only keys and words that older checkers accept.
func writeSystem(w io.Writer, system string, clients []node, keys bool) error {
	if len(clients) == 0 {
		clients = []node{{Name: "Benchmark client", Count: 1}}
	}
	// If the location of one client is unknown, the location of the storage is unknown. A guess would
	// be a false statement about a product.
	location := clients[0].Location
	for _, c := range clients[1:] {
		if c.Location == "" || location == "" {
			location = ""
		} else if c.Location != location {
			location = both
		}
	}
	// The client's kernel runs the filesystem on a block device. The product under test is then the
	// block device.
	api, product := "file", ""
	if object := slices.ContainsFunc(clients, func(n node) bool { return n.Object }); object {
		api, product = "object", "object"
	} else if slices.ContainsFunc(clients, func(n node) bool { return n.Drive.Count != "" }) {
		product = "block"
	}
	var text bytes.Buffer
	err := systemTemplate.Execute(&text, map[string]any{"Notice": result.ClosedNotice, "System": system,
		"Keys": keys, "Clients": clients, "Location": location, "Local": location == local, "API": api,
		"Product": product, "Storage": node{Name: "Storage node", Count: 1}})
	description := text.String()
	if !keys {
		description = interfaces.ReplaceAllStringFunc(description, strings.NewReplacer("sas", "SAS", "sata", "SATA").Replace)
	}
	_, writing := io.WriteString(w, description)
	return errors.Join(err, writing)
}

// interfaces matches the words for a drive's interface, of which older checkers want some in capitals.
var interfaces = regexp.MustCompile(`interface: .*`)
