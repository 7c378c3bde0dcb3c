package group

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Hello is a rank's first message to the leader.
type Hello struct {
	Job   string `json:"job"` // identifies the run; not secret under a launcher
	Rank  int    `json:"rank"`
	Ranks int    `json:"ranks"`
	Host  string `json:"host"`
	// Boot is the kernel's boot id, TimeNS the time namespace. Processes with the same Boot and
	// TimeNS have the same monotonic clock. "" is unknown.
	Boot   string `json:"boot"`
	TimeNS string `json:"time_namespace"`
	// Filesystems has one entry per cache directory of the rank.
	Filesystems []Filesystem `json:"filesystems,omitempty"`
	PID         int          `json:"pid"`
	Build       string       `json:"build"`
	// Stamp names the run, by the coordinator's start time and process id.
	Stamp string `json:"stamp,omitempty"`
	// Parameters are the parameters that decide what the selected benchmarks measure. Directories
	// and parameters of the output are not among them.
	Parameters map[string]string `json:"parameters"`
	// Refused is why the rank cannot run: an error in its parameters on its host. "" is none.
	Refused string `json:"refused,omitempty"`
}

// Filesystem identifies a filesystem to other hosts.
type Filesystem struct {
	Device string `json:"device"` // device number on this kernel, "" is unknown
	// Type and source in the mount table, and f_fsid of statfs(2). Empty if other hosts cannot
	// mount the filesystem.
	Type   string `json:"type,omitempty"`
	Source string `json:"source,omitempty"`
	ID     string `json:"id,omitempty"`
}

// same reports whether two kernels mount the same filesystem: same type, and same source or f_fsid.
// It may miss some, because a server's name may differ between hosts, and many types have no
// f_fsid.
func (f *Filesystem) same(o *Filesystem) bool {
	return f.Type != "" && f.Type == o.Type &&
		(f.Source != "" && f.Source == o.Source || f.ID != "" && f.ID == o.ID)
}

// OneHost reports whether two ranks are on one host: same boot id and same host name. Containers of
// one machine share the boot id. Cloned machines may share the host name.
func (h *Hello) OneHost(o *Hello) bool { return h.Boot == o.Boot && h.Host == o.Host }

// oneClock reports whether two ranks have the same monotonic clock.
func (h *Hello) oneClock(o *Hello) bool {
	return h.Boot != "" && h.Boot == o.Boot && h.TimeNS == o.TimeNS
}

// objection returns why the leader with hello h refuses the rank with hello o, "" if it does not.
func (h *Hello) objection(o *Hello) string {
	switch {
	case o.Build != h.Build:
		return fmt.Sprintf("its binary is %s, the coordinator's %s: all ranks need one binary",
			named(o.Build), named(h.Build))
	case o.Ranks != h.Ranks:
		return fmt.Sprintf("it is one of %d ranks, the coordinator of %d", o.Ranks, h.Ranks)
	case o.Rank < 0 || o.Rank >= h.Ranks:
		return fmt.Sprintf("there is no rank %d of %d", o.Rank, h.Ranks)
	case o.Refused != "":
		return printableLines(o.Refused)
	}
	return h.differences(o)
}

// mostNamed is how many parameters a refusal names.
const mostNamed = 3

func (h *Hello) differences(o *Hello) string {
	var list []string
	all := map[string]string{}
	maps.Copy(all, h.Parameters)
	maps.Copy(all, o.Parameters)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if mine, theirs := h.Parameters[name], o.Parameters[name]; mine != theirs {
			list = append(list, fmt.Sprintf("-%s: %s here, %s there", named(name),
				named(mine), named(theirs)))
		}
	}
	if len(list) == 0 {
		return ""
	}
	more := ""
	if n := len(list) - mostNamed; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return "its parameters are others: " + strings.Join(list[:min(mostNamed, len(list))], "; ") +
		more
}

// named returns a text from another process, made safe to print. It is "none" for "".
func named(text string) string { return printable(cmp.Or(text, "none"), 60) }

func printable(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// printableLines returns the lines of a rank's text, made safe to print, in one line.
func printableLines(text string) string {
	var list []string
	for line := range strings.Lines(text) {
		list = append(list, printable(strings.TrimRight(line, "\n"), 500))
	}
	return strings.Join(list, "; ")
}

// place returns the name of the rank in messages to the user.
func (h *Hello) place() string {
	return fmt.Sprintf("rank %d on %s (pid %d)", h.Rank, h.Host, h.PID)
}
