// Package bpf is the kernel side of package tracing: BPF programs in C, compiled ahead of time, embedded, and loaded as
// plain data.
//
// The objects are committed, so that building needs no compiler for them. After a change of the C files run
// `go generate ./tracing/bpf`, with clang 14 on the path; CI does the same and fails on a difference.
package bpf

//go:generate go tool bpf2go -tags linux -target amd64,arm64 -cc clang -type direction -type other -type entry -type calls Trace trace.bpf.c -- -mcpu=v3 -O2 -Wall -Werror
