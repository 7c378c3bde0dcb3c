// Package bpf is the kernel side of package collector: BPF programs in C, compiled ahead of time,
// embedded, and loaded as plain data.
//
//	kernel.h     own declarations of what the kernel has: helpers, structures (CO-RE)
//	histogram.h  log-linear histograms
//	process.h    which processes are watched; owner.h: whose a request is
//	counters.h   the state of a request, and the counters of a window
//	block.h      the handlers of a request's events
//	file.h       the state of a call on a file; functions.h, syscalls.h, aio.h, uring.h: the ways to
//	             trace it
//	trace.bpf.c  the programs at the tracepoints
//
// The objects are committed, so that building needs no compiler for them. After a change of the C
// files run `go generate ./tracing/bpf`, with clang 14 on the path; CI does the same and fails on a
// difference.
package bpf

//go:generate go tool bpf2go -tags linux -target amd64,arm64 -cc clang -type direction -type other -type entry -type calls -type owner Trace trace.bpf.c -- -mcpu=v3 -O2 -Wall -Werror
