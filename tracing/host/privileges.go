package host

import (
	"os"
	"strconv"
	"strings"
)

// Privileges are what decides whether this process may load programs into the kernel. They are a
// forecast: a seccomp filter or a user namespace may refuse all the same.
type Privileges struct {
	// Missing are the capabilities that tracing needs and this process lacks. CAP_SYS_ADMIN stands
	// for both of them, and before Linux 5.8 there was no other.
	Missing []string
	// Known is false where the kernel does not tell the capabilities; Missing is empty then.
	Known bool
	// TypeInformation is the size of the kernel's description of its own types (BTF), by which
	// programs find their way in it; 0 = it was built without CONFIG_DEBUG_INFO_BTF.
	TypeInformation int64
	// Lockdown is none, integrity or confidentiality, which forbids programs that read kernel
	// memory; empty where the kernel has no such thing.
	Lockdown string
}

// capabilities of linux/capability.h, by their bit.
const (
	capSysAdmin = 21
	capPerfmon  = 38
	capBPF      = 39
)

// ReadPrivileges reads those of this process. It loads nothing: trying is the collector's, which
// asks here what to say when the kernel refuses.
func ReadPrivileges() Privileges { return Root("").Privileges() }

// Privileges are those of the process whose /proc/self is below the root.
func (r Root) Privileges() Privileges {
	p := Privileges{Lockdown: Chosen(r.Text("/sys/kernel/security/lockdown"))}
	if info, err := os.Stat(r.Path("/sys/kernel/btf/vmlinux")); err == nil {
		p.TypeInformation = info.Size()
	}
	effective, err := r.effectiveCapabilities()
	if p.Known = err == nil; !p.Known || effective&(1<<capSysAdmin) != 0 {
		return p
	}
	if effective&(1<<capBPF) == 0 {
		p.Missing = append(p.Missing, "CAP_BPF")
	}
	if effective&(1<<capPerfmon) == 0 {
		p.Missing = append(p.Missing, "CAP_PERFMON")
	}
	return p
}

// effectiveCapabilities reads CapEff, which is a mask in hexadecimal digits.
func (r Root) effectiveCapabilities() (uint64, error) {
	_, after, _ := strings.Cut(r.Text("/proc/self/status"), "CapEff:")
	digits, _, _ := strings.Cut(after, "\n")
	return strconv.ParseUint(strings.TrimSpace(digits), 16, 64)
}
