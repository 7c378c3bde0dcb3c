//go:build ignore

// The kernel side of package tracing. Each program exists twice: attached through BTF (tp_btf, since Linux 5.5), where
// members are read directly, and as a raw tracepoint (raw_tp), where they are probed; perf.h has a third variant for kernels
// without BTF. The loader picks by name and drops what the kernel does not have.
#include "process.h"
#include "block.h"
#include "syscalls.h"
#include "functions.h"
#include "perf.h"

#define GET(p, f) DIRECT(p, f)
#define NAME(n) btf_##n
#define PROGRAM(event) SEC("tp_btf/" #event)
#include "programs.h"
#undef GET
#undef NAME
#undef PROGRAM

#define GET(p, f) PROBE(p, f)
#define NAME(n) raw_##n
#define PROGRAM(event) SEC("raw_tp/" #event)
#include "programs.h"
#undef GET
#undef NAME
#undef PROGRAM

// Tells the collector its own process id as the kernel counts it, which differs inside of a container.
SEC("raw_tp")
int whoami(void *ctx) { return bpf_get_current_pid_tgid() >> 32; }

// Runs the bucket function for a test: bucket_of(args[0]) for BUCKETS.
SEC("raw_tp")
int bucket(u64 *ctx) { return bucket_of(ctx[0], BUCKETS); }

// The loader allows helpers that read kernel memory only to programs of this licence.
char LICENSE[] SEC("license") = "GPL";
