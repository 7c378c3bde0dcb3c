package collector

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"kvbench/tracing/host"
)

// explain turns the kernel's refusal into advice for the user.
func explain(err error) *UnavailableError {
	because := func(reason, need string) *UnavailableError {
		return &UnavailableError{Reason: reason, Need: need, Err: err}
	}
	p := host.Root("").Privileges()
	missing := strings.Join(p.Missing, " and ")
	// The process needs more privilege. The verifier rejects a program with EACCES, too, but that has
	// another cause.
	refused := errors.Is(err, unix.EPERM)
	switch {
	case refused && missing != "":
		return because("this process lacks the privilege ("+missing+")",
			missing+": run with sudo, or setcap cap_bpf,cap_perfmon+ep on the binary, or "+
				"--cap-add BPF,PERFMON for the container")
	case refused && p.Lockdown == "confidentiality":
		return because("kernel lockdown (confidentiality) forbids programs that read kernel "+
			"memory", "a kernel booted without lockdown=confidentiality")
	case refused:
		return because("the kernel refuses to load programs (a seccomp filter or a user namespace "+
			"does that)", "bpf() allowed by the sandbox, and capabilities in the initial user "+
			"namespace")
	case !p.TypeInformation:
		return because("the kernel has no type information (/sys/kernel/btf/vmlinux)",
			"a kernel of 5.10 or later built with CONFIG_DEBUG_INFO_BTF=y")
	}
	return because(brief(err),
		"a kernel of 5.10 or later with CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS")
}

// brief removes a verifier log from an error. It also removes the library's guess that a memory limit
// causes EPERM, because that limit was lifted.
func brief(err error) string {
	s, _, _ := strings.Cut(err.Error(), "\n")
	s, _, _ = strings.Cut(s, " (MEMLOCK")
	return s
}
