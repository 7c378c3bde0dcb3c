package discover

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// tracing looks for what block-layer tracing needs. It loads nothing: a kernel may still say no for
// reasons of its own (lockdown, a security module), and the run goes on untraced then.
func (m machine) tracing(kernel string) Tracing {
	if !linux() {
		return Tracing{Verdict: "no: block-layer tracing needs Linux", Features: []Feature{}}
	}
	var t Tracing
	add := func(name string, there bool, detail string, args ...any) bool {
		t.Features = append(t.Features, Feature{name, there, fmt.Sprintf(detail, args...)})
		return there
	}
	major, minor := release(kernel)
	at := func(a, b int) bool { return major > a || major == a && minor >= b }
	// Typed tracepoints came with 5.5; privileges of their own with 5.8.
	recent := add("kernel", at(5, 5), "%s; 5.5 for typed tracepoints", kernel)
	p := m.Root.Privileges()
	if p.TypeInformation > 0 {
		add("BTF", true, "/sys/kernel/btf/vmlinux, %.1f MB", float64(p.TypeInformation)/1e6)
	} else {
		add("BTF", false,
			"no /sys/kernel/btf/vmlinux: a kernel built with CONFIG_DEBUG_INFO_BTF has it")
	}
	privileged := p.Known && len(p.Missing) == 0
	if privileged {
		add("privilege", true, "CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN")
	} else {
		add("privilege", false, "needs CAP_BPF and CAP_PERFMON (since 5.8) or root: "+
			"sudo setcap cap_bpf,cap_perfmon+ep kvbench.test")
	}
	root := m.Root
	kprobes := root.Exists("/sys/kernel/tracing/kprobe_events") ||
		root.Exists("/sys/kernel/debug/tracing/kprobe_events")
	add("kprobes", kprobes, "file-level latencies by probes; without them by system calls")
	lockdown := cmp.Or(p.Lockdown, "none")
	add("lockdown", lockdown != "confidentiality", "%s; confidentiality forbids tracing", lockdown)
	// The first reason that no setting of a run can mend is the one that is told.
	switch {
	case !recent:
		t.Verdict = "no: the kernel is older than 5.5"
	case lockdown == "confidentiality":
		t.Verdict = "no: the kernel is locked down"
	case !privileged:
		t.Verdict = "no: this process has not the privilege"
	case p.TypeInformation == 0:
		t.Verdict = "no: the kernel has no type information (BTF)"
	default:
		t.Possible, t.Verdict = true, "yes, by typed tracepoints (BTF)"
	}
	return t
}

// release reads the first two numbers of a kernel release.
func release(kernel string) (major, minor int) {
	first, rest, _ := strings.Cut(kernel, ".")
	digits := func(s string) int {
		end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
		if end >= 0 {
			s = s[:end]
		}
		n, _ := strconv.Atoi(s)
		return n
	}
	return digits(first), digits(rest)
}
