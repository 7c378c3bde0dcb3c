package discover

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// The capabilities that loading tracing programs asks for, by their bit.
const (
	capSysAdmin = 21
	capPerfmon  = 38
	capBPF      = 39
)

// tracing looks for what block-layer tracing needs. It loads nothing: a kernel may still say no for reasons of its own
// (lockdown, a security module), and the run goes on untraced then.
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
	recent := add("kernel", at(4, 17), "%s; 5.5 for typed tracepoints, 4.17 for raw ones", kernel)
	btf := false
	if info, err := os.Stat(m.path("/sys/kernel/btf/vmlinux")); err == nil {
		btf = add("BTF", true, "/sys/kernel/btf/vmlinux, %.1f MB", float64(info.Size())/1e6)
	} else {
		add("BTF", false, "no /sys/kernel/btf/vmlinux: a kernel built with CONFIG_DEBUG_INFO_BTF has it")
	}
	permitted := m.capabilities()
	privileged := permitted&(1<<capSysAdmin) != 0 || permitted&(1<<capBPF) != 0 && permitted&(1<<capPerfmon) != 0
	if privileged {
		add("privilege", true, "CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN")
	} else {
		add("privilege", false, "needs CAP_BPF and CAP_PERFMON (since 5.8) or root: sudo setcap cap_bpf,cap_perfmon+ep kvbench.test")
	}
	tracefs := ""
	for _, dir := range []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"} {
		if _, err := os.Stat(m.path(dir + "/events")); err == nil {
			tracefs = dir
			break
		}
	}
	if tracefs != "" {
		add("tracefs", true, "%s: tracepoints can be used where typed ones cannot", tracefs)
		_, err := os.Stat(m.path(tracefs + "/kprobe_events"))
		add("kprobes", err == nil, "file-level latencies by probes; without them by system calls")
	} else {
		add("tracefs", false, "not mounted or not readable: mount -t tracefs nodev /sys/kernel/tracing; not needed with BTF")
	}
	lockdown := chosen(m.text("/sys/kernel/security/lockdown"))
	if lockdown == "" {
		lockdown = "none"
	}
	add("lockdown", lockdown != "confidentiality", "%s; confidentiality forbids tracing", lockdown)
	switch {
	case !recent:
		t.Verdict = "no: the kernel is older than 4.17"
	case lockdown == "confidentiality":
		t.Verdict = "no: the kernel is locked down"
	case !privileged:
		t.Verdict = "no: this process has not the privilege"
	case btf && at(5, 5):
		t.Possible, t.Verdict = true, "yes, by typed tracepoints (BTF)"
	case tracefs != "":
		t.Possible, t.Verdict = true, "probably, by tracepoints (no BTF)"
	default:
		t.Verdict = "no: neither BTF nor tracefs is there"
	}
	return t
}

// capabilities is the effective set of this process.
func (m machine) capabilities() uint64 {
	for line := range strings.Lines(m.text("/proc/self/status")) {
		if rest, ok := strings.CutPrefix(line, "CapEff:"); ok {
			v, _ := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
			return v
		}
	}
	return 0
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

// chosen picks the bracketed word of a sysfs choice.
func chosen(s string) string {
	if _, rest, ok := strings.Cut(s, "["); ok {
		word, _, _ := strings.Cut(rest, "]")
		return word
	}
	return s
}
