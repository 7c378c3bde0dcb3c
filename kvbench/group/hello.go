package group

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Hello identifies a rank.
type Hello struct {
	Job   string `json:"job"` // identifies the run, and is no secret under a launcher
	Rank  int    `json:"rank"`
	Ranks int    `json:"ranks"`
	Host  string `json:"host"`
	// Processes of one Boot and TimeNS (time namespace) have one monotonic clock. Empty is unknown.
	Boot   string `json:"boot"`
	TimeNS string `json:"time_namespace"`
	// Filesystems are those of its cache directories; none without directories.
	Filesystems []Filesystem `json:"filesystems,omitempty"`
	PID         int          `json:"pid"`
	Build       string       `json:"build"`
	// Stamp names the run: its coordinator's time and process.
	Stamp string `json:"stamp,omitempty"`
	// Parameters are those that decide what is measured, over all benchmarks that were selected:
	// no directories, nothing that is only shown.
	Parameters map[string]string `json:"parameters"`
	// Refused is why it cannot take part: what is wrong with its parameters on its host.
	Refused string `json:"refused,omitempty"`
}

// Filesystem identifies a filesystem to other hosts.
type Filesystem struct {
	Device string `json:"device"` // its number on this kernel, "" is unknown
	// Of a filesystem that other hosts can mount, else empty: its type and source in the mount
	// table, and f_fsid of statfs(2).
	Type   string `json:"type,omitempty"`
	Source string `json:"source,omitempty"`
	ID     string `json:"id,omitempty"`
}

// same reports whether filesystems that two kernels have mounted are one, as far as is known: a
// server's name may differ between hosts, and many types have no f_fsid.
func (f *Filesystem) same(o *Filesystem) bool {
	return f.Type != "" && f.Type == o.Type &&
		(f.Source != "" && f.Source == o.Source || f.ID != "" && f.ID == o.ID)
}

// OneHost reports whether two are on one host: boot ids alone are equal in containers of one
// machine, host names in clones of one.
func (h *Hello) OneHost(o *Hello) bool { return h.Boot == o.Boot && h.Host == o.Host }

// oneClock reports whether two have one monotonic clock.
func (h *Hello) oneClock(o *Hello) bool {
	return h.Boot != "" && h.Boot == o.Boot && h.TimeNS == o.TimeNS
}

// objection returns why a rank of the job cannot be taken, "" if it can.
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

// mostNamed are the parameters that a refusal names.
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

// named is a text that another process may have sent, ready to print.
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

// printableLines is a text of several lines that a rank has sent, ready to print.
func printableLines(text string) string {
	var list []string
	for line := range strings.Lines(text) {
		list = append(list, printable(strings.TrimRight(line, "\n"), 500))
	}
	return strings.Join(list, "; ")
}

// place is the rank in messages to the user.
func (h *Hello) place() string {
	return fmt.Sprintf("rank %d on %s (pid %d)", h.Rank, h.Host, h.PID)
}
