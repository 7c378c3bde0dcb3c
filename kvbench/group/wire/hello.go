package wire

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Protocol is the version of all of this: ranks of one run have one binary, and so one of it.
const Protocol = 1

// Hello is who somebody is.
type Hello struct {
	Protocol int    `json:"protocol"`
	Job      string `json:"job"` // no secret: who knows it is not yet trusted
	Rank     int    `json:"rank"`
	Ranks    int    `json:"ranks"`
	Host     string `json:"host"`
	// Boot and TimeNS tell whose monotonic clocks are one: those of a boot and a time namespace.
	// Empty is unknown.
	Boot   string `json:"boot"`
	TimeNS string `json:"time_namespace"`
	// Devices are what its kernel calls the filesystem of each of its cache directories, "" where
	// nobody knows; none where it works on none.
	Devices []string `json:"devices,omitempty"`
	PID     int      `json:"pid"`
	Cores   int      `json:"cores"` // that it may use
	Memory  int64    `json:"memory"`
	Build   string   `json:"build"`
	// Stamp names the run: its coordinator's time and process.
	Stamp string `json:"stamp,omitempty"`
	// Parameters are those that decide what is measured, over all benchmarks that were selected:
	// no directories, nothing that is only shown.
	Parameters map[string]string `json:"parameters"`
	// Refused is why it cannot take part: what is wrong with its parameters on its host.
	Refused string `json:"refused,omitempty"`
}

// OneHost tells whether two are on one host: boot ids alone are equal in containers of one machine,
// host names in clones of one.
func (h *Hello) OneHost(o *Hello) bool { return h.Boot == o.Boot && h.Host == o.Host }

// OneClock tells whether two have one monotonic clock.
func (h *Hello) OneClock(o *Hello) bool {
	return h.Boot != "" && h.Boot == o.Boot && h.TimeNS == o.TimeNS
}

// Belongs tells whether a hello is for the job of which this one coordinates. One of another job is
// told nothing, which is what it would be told by somebody else.
func (h *Hello) Belongs(o *Hello) bool { return o != nil && o.Job == h.Job }

// Objection says why a rank of the job cannot be taken, "" if it can.
func (h *Hello) Objection(o *Hello) string {
	switch {
	case o.Protocol != h.Protocol:
		return fmt.Sprintf("it speaks protocol %d, the coordinator %d: all ranks need one binary",
			o.Protocol, h.Protocol)
	case o.Build != h.Build:
		return fmt.Sprintf("its binary is %s, the coordinator's %s: all ranks need one binary",
			named(o.Build), named(h.Build))
	case o.Ranks != h.Ranks:
		return fmt.Sprintf("it is one of %d ranks, the coordinator of %d", o.Ranks, h.Ranks)
	case o.Rank < 0 || o.Rank >= h.Ranks:
		return fmt.Sprintf("there is no rank %d of %d", o.Rank, h.Ranks)
	case o.Refused != "":
		return Printable(o.Refused)
	}
	return h.differences(o)
}

// mostNamed are the parameters that a refusal names.
const mostNamed = 3

func (h *Hello) differences(o *Hello) string {
	var list []string
	all := maps.Clone(h.Parameters)
	if all == nil {
		all = map[string]string{}
	}
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

// named is a text that a stranger may have sent, as it is printed.
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

// Printable is a text of several lines that a rank has sent, as it is printed.
func Printable(text string) string {
	var list []string
	for line := range strings.Lines(text) {
		list = append(list, printable(strings.TrimRight(line, "\n"), 500))
	}
	return strings.Join(list, "; ")
}

// Place is a rank, as messages to people name it.
func (h *Hello) Place() string {
	return fmt.Sprintf("rank %d on %s (pid %d)", h.Rank, named(h.Host), h.PID)
}
