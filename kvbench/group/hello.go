package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"kvbench/tracing/host"
)

// Hello is a rank's first message to the coordinator.
type Hello struct {
	Job   string // identifies the run; not secret under a launcher
	Rank  int
	Ranks int
	Host  string
	// Boot is the kernel's boot id. Processes with the same Boot have the same clock. "" is unknown.
	Boot string
	// Filesystems has one entry per cache directory of the rank.
	Filesystems []host.Identity
	PID         int
	Build       string
	// Stamp names the run, by the coordinator's start time and process id.
	Stamp string
	// Parameters are the parameters that determine what the selected benchmarks measure. They do not
	// include directories and the parameters of the output.
	Parameters map[string]string
	// Refused is why the rank cannot run: an error in its parameters on its host. "" means no error.
	Refused string
}

// OneHost reports whether two ranks are on one host: same boot id and same host name. Containers of
// one machine share the boot id. Cloned machines may share the host name.
func (h *Hello) OneHost(o *Hello) bool { return h.Boot == o.Boot && h.Host == o.Host }

// objection returns why the coordinator with hello h refuses the rank with hello o; "" if it admits the rank.
func (h *Hello) objection(o *Hello) string {
	switch {
	case o.Build != h.Build:
		return fmt.Sprintf("its binary is %q, the coordinator's %q: all ranks need one binary", o.Build,
			h.Build)
	case o.Ranks != h.Ranks:
		return fmt.Sprintf("it is one of %d ranks, the coordinator of %d", o.Ranks, h.Ranks)
	case o.Rank < 0 || o.Rank >= h.Ranks:
		return fmt.Sprintf("there is no rank %d of %d", o.Rank, h.Ranks)
	case o.Refused != "":
		return o.Refused
	}
	var list []string
	names := map[string]string{}
	maps.Copy(names, h.Parameters)
	maps.Copy(names, o.Parameters)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if mine, theirs := h.Parameters[name], o.Parameters[name]; mine != theirs {
			list = append(list, fmt.Sprintf("-%s: %q here, %q there", name, mine, theirs))
		}
	}
	if list == nil {
		return ""
	}
	return "its parameters are others: " + strings.Join(list, "; ")
}

// printable returns a text that may come from another process as one line without control characters.
func printable(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, text)
}

// place returns the name of the rank in messages to the user.
func (h *Hello) place() string {
	return fmt.Sprintf("rank %d on %s (pid %d)", h.Rank, h.Host, h.PID)
}
