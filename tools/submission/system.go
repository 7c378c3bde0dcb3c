package submission

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/tools/discover"
	"kvbench/tools/load"
)

// unknown stands where only the submitter knows.
const unknown = "FILL IN"

// node is a kind of client: those that look alike are one.
type node struct {
	CPU, OS, OSVersion      string
	Sockets, Cores, Memory  string
	Drive                   drive
	Filesystem, Mount, Host string // of the first
	count                   int
}

// drive is what holds the storage tier, where a local device does.
type drive struct{ Model, Interface, Media, GB, Link, Count string }

// nodes describes the clients by the environment of their results and by what discover found on them.
func nodes(files []load.File, found map[string]discover.Hardware) []node {
	hosts := make(map[string]result.Environment)
	for _, f := range files {
		if e := f.Result.Environment; e.Hostname != "" {
			hosts[e.Hostname] = e
		}
	}
	var list []node
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		n := describe(hosts[host], found[host])
		alike := func(m node) bool {
			m.Host, m.count = n.Host, n.count
			return m == n
		}
		if i := slices.IndexFunc(list, alike); i >= 0 {
			list[i].count++
			continue
		}
		list = append(list, n)
	}
	return list
}

func describe(e result.Environment, h discover.Hardware) node {
	n := node{CPU: cmp.Or(e.CPUModel, unknown), Sockets: unknown, Cores: unknown, Memory: unknown, Host: e.Hostname, count: 1,
		Filesystem: e.Filesystem.Type, Mount: strings.Join(e.Filesystem.Options, ",")}
	n.OS, n.OSVersion = splitOS(e.OS)
	if h.CPU.Sockets != nil {
		n.Sockets, n.Cores = fmt.Sprint(*h.CPU.Sockets), fmt.Sprint(*h.CPU.Cores)
	}
	if e.MemoryBytes > 0 {
		n.Memory = fmt.Sprint((e.MemoryBytes + 1<<29) >> 30)
	}
	if d := e.Device; d != nil {
		n.Drive = drive{Model: cmp.Or(d.Model, unknown), Interface: "other", Media: unknown, GB: unknown, Count: fmt.Sprint(max(1, len(d.Members)))}
		if len(d.Members) > 0 {
			d = &d.Members[0]
			n.Drive.Model = cmp.Or(d.Model, unknown)
		}
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

// writeSystem writes the description in the form that MLPerf Storage asks for, filled as far as the results and discover
// tell.
func writeSystem(w io.Writer, system string, list []node) error {
	local := slices.ContainsFunc(list, func(n node) bool { return n.Drive.Model != "" })
	location, api := "remote", unknown
	if local {
		location, api = "local", "block"
	}
	p := &printer{w: w}
	p.line("# %s", result.ClosedNotice)
	p.line("# Description of the system under test. It was filled from the results and from kvreport discover where they tell;")
	p.line("# every %q waits for you. The file is yours: kvreport submission never writes over it.", unknown)
	p.line("system_under_test:")
	p.line("  solution:")
	p.line("    submission_name: %q", system)
	p.line("    friendly_description: %q", unknown)
	p.line("    architecture:")
	p.line("      storage_location: %s  # local, remote, remote_and_local", location)
	p.line("      benchmark_API: file")
	p.line("      product_API: %s  # file, object, block", scalar(api))
	p.line("      client_footprint: %s  # open_source, closed_source, n/a", scalar(unknown))
	p.line("      client_installation: %s  # in_box, installable, n/a", scalar(unknown))
	p.line("    capabilities:")
	if local {
		p.line("      multi_host: false")
		p.line("      simultaneous_write: false")
		p.line("      simultaneous_read: false")
	} else {
		p.line("      multi_host: %s  # true, false", scalar(unknown))
		p.line("      simultaneous_write: %s  # by several hosts: true, false", scalar(unknown))
		p.line("      simultaneous_read: %s  # by several hosts: true, false", scalar(unknown))
	}
	p.line("      remap_time_in_seconds: %s  # from writing on one host to reading on another; 0 if none", scalar(unknown))
	p.line("  deployment: %s  # onprem, cloud", scalar(unknown))
	p.line("  total_rack_units: %s  # of the storage, without clients", scalar(unknown))
	if !local {
		p.line("  product_nodes:  # the storage itself cannot be seen from a client")
		p.node(node{CPU: unknown, OS: unknown, OSVersion: unknown, Sockets: unknown, Cores: unknown, Memory: unknown, count: 1}, "Storage node")
	}
	p.line("  clients:")
	for _, n := range list {
		p.node(n, "Benchmark client, as "+n.Host)
	}
	if len(list) == 0 {
		p.node(node{CPU: unknown, OS: unknown, OSVersion: unknown, Sockets: unknown, Cores: unknown, Memory: unknown, count: 1}, "Benchmark client")
	}
	return p.err
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) node(n node, what string) {
	p.line("    - friendly_description: %q", what)
	p.line("      quantity: %d", n.count)
	p.line("      chassis:")
	p.line("        model_name: %q", unknown)
	p.line("        rack_units: %s", scalar(unknown))
	p.line("        cpu_model: %q", n.CPU)
	p.line("        cpu_qty: %s  # sockets", scalar(n.Sockets))
	p.line("        cpu_cores: %s  # of all sockets", scalar(n.Cores))
	p.line("        memory_capacity: %s  # GiB", scalar(n.Memory))
	if d := n.Drive; d.Model != "" {
		p.line("      drives:")
		p.line("        - unit_count: %s", d.Count)
		p.line("          vendor_name: %q", unknown)
		p.line("          model_name: %q", d.Model)
		p.line("          interface: %s  # nvme, sas, sata, other", d.Interface)
		p.line("          media_type: %s  # HDD, TLC, QLC, other", scalar(d.Media))
		p.line("          capacity_in_GB: %s  # 10^9 bytes", scalar(d.GB))
		if d.Link != "" {
			p.line("          # runs at %s", d.Link)
		}
	}
	p.line("      operating_system:")
	p.line("        name: %q", n.OS)
	p.line("        version: %q", n.OSVersion)
	if n.Filesystem != "" {
		p.line("      environment:")
		p.line("        - name: filesystem")
		p.line("          value: %q", strings.TrimSuffix(n.Filesystem+" "+n.Mount, " "))
	}
}

// scalar quotes what waits to be filled in and leaves words and numbers as they are.
func scalar(s string) string {
	if s == unknown {
		return fmt.Sprintf("%q", s)
	}
	return s
}
