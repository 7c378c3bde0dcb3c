package collector

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"kvbench/tracing/host"
)

// explain turns the kernel's refusal into what a user can do about it.
func explain(err error) *UnavailableError {
	u := &UnavailableError{Err: err}
	p := host.ReadPrivileges()
	missing := strings.Join(p.Missing, " and ")
	switch {
	case refused(err) && missing != "":
		u.Reason = "this process lacks the privilege (" + missing + ")"
		u.Needs = append(u.Needs, missing+" (before Linux 5.8: CAP_SYS_ADMIN): run with sudo, "+
			"or setcap cap_bpf,cap_perfmon+ep on the binary, or --cap-add BPF,PERFMON for the "+
			"container")
	case refused(err) && p.Lockdown == "confidentiality":
		u.Reason = "kernel lockdown (confidentiality) forbids programs that read kernel memory"
		u.Needs = append(u.Needs, "a kernel booted without lockdown=confidentiality")
	case refused(err):
		u.Reason = "the kernel refuses to load programs (a seccomp filter or a user namespace " +
			"does that)"
		u.Needs = append(u.Needs, "bpf() allowed by the sandbox, and capabilities in the initial "+
			"user namespace")
	case p.TypeInformation == 0:
		u.Reason = "the kernel has no type information (/sys/kernel/btf/vmlinux)"
		u.Needs = append(u.Needs, "a kernel of 5.10 or later built with CONFIG_DEBUG_INFO_BTF=y")
	default:
		u.Reason = firstLine(err)
		u.Needs = append(u.Needs, "a kernel of 5.10 or later with CONFIG_BPF_SYSCALL and "+
			"CONFIG_BPF_EVENTS")
	}
	return u
}

// refused says that the kernel wants more privilege. A program that the verifier rejects fails with
// EACCES and is another matter.
func refused(err error) bool {
	return errors.Is(err, unix.EPERM)
}

// firstLine keeps a verifier log out of a sentence.
func firstLine(err error) string {
	s, _, _ := strings.Cut(err.Error(), "\n")
	return s
}

// brief is the first line without the library's guess that a limit of memory might be behind EPERM:
// it was lifted.
func brief(err error) string {
	s, _, _ := strings.Cut(firstLine(err), " (MEMLOCK")
	return s
}
