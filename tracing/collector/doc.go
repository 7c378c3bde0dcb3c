// Package collector sees every request that a device gets, and counts it in the kernel between two
// exact moments.
//
//	options.go       Options: which device, how much, whose requests
//	collector.go     Collector: start, open and close the window, read
//	capture.go       a Trace of what was read, and what the numbers call a warning
//	counts.go        the kernel's counters; buckets.go: its log-linear histograms
//	attach_bpf.go    loads the programs of package bpf for this kernel and attaches them
//	programs_bpf.go  the attached programs: windows, counters, clocks, lost completions
//	calls_bpf.go     calls on files; watch_bpf.go: whose they are
//	explain_linux.go what a user can do when the kernel refuses
//
// Tracing needs CAP_BPF and CAP_PERFMON and a kernel with type information. Without, the same
// Collector has the device's own counters, and says what is missing. Its methods may be called from
// any goroutine. Nothing is pinned in the kernel: the programs vanish with the process, however it
// ends.
//
// # Kernels
//
// The programs adapt to the running kernel by its type information (CO-RE): requests name their
// disk by rq_disk before Linux 5.17 and by the queue since 5.15, the queue's events have another
// first argument before 5.10.137, queueing begins at block_io_start since 6.5 and with the
// allocation before. testdata/kernels.sh boots other kernels in qemu and runs the tests there,
// which expect every request that the devices counted themselves, and every call that was made. It
// passed on:
//
//	kernel                      calls on files
//	5.10.223  Debian 11         fexit, kprobe, tp_btf
//	5.15.0-25 Ubuntu 22.04      fexit, kprobe, tp_btf
//	6.1.176   Debian 12         fexit, kprobe, tp_btf
//	6.12.95   Debian 12, newer  fexit, kprobe, tp_btf
//	7.2.12    Debian 13, newer  fexit, kprobe, tp_btf
//	6.18.44   a VM of a cloud   tp_btf (fexit: EPERM; built without kprobes)
//
// on virtio, a partition, NVMe, an NVMe multipath head (by the names of its hidden paths),
// dm-linear over NVMe and a partition, dm-crypt and RAID 1, each with a filesystem. Not run: arm64,
// and kernels that still give the queue's events (q, rq).
//
// Kernels without type information (CONFIG_DEBUG_INFO_BTF) are not traced: their perf tracepoints
// show no requests, only places on the device, which two requests may share. What the device counts
// itself is still reported there.
//
// # Calls on files
//
// Of the ways to see calls, fexit runs only where files are used. Tracing system calls costs every
// process, whatever it calls. Instructions of Linux 6.12 for each call, measured in qemu at revision
// 37e73fc6 by its TestCostPerCall, where a pread of 4 KiB from the page cache takes 5768 and getppid
// 347 untraced:
//
//	          watched pread   pread of others   getppid of others
//	fexit         +1921            +642               +1
//	tp_btf        +2712            +527             +369
//	kprobe        +2789           +1222               +1
//
// Detaching fexit and kprobes took that kernel a second, and no time for the others; it happens
// after the window. Kprobes come last, although they are as narrow as fexit: a function has some
// ten kretprobes for calls in progress, and a server has more threads than that blocked in reads of
// pipes. On 6.1 with 300 such threads and 1000 other reads fexit and tp_btf saw 1000, kprobes none,
// and reported 999 as lost (TestCallsBesideBlockedOnes of the same revision).
//
// All ways count each read, pread, readv, preadv, preadv2, their writes, fsync and fdatasync once,
// buffered, direct or synchronous. What io_uring reads, writes and flushes is met at its own events
// besides, from the submission of a request to its completion, on kernels whose events name the
// request (since 6.4). What libaio does is met in io_submit, and in io_getevents and io_pgetevents
// where the program fetches its end: it lasts until then. A program that takes ends out of the
// memory which it shares with the kernel (fio with userspace_reap, Seastar) calls nothing, and what
// it had submitted is counted as lost. It is met there whatever the way, at the cost of tp_btf, and
// where other processes than this one are watched alone: this one makes no such calls. Of libaio
// 6.18 was tested by tp_btf and 6.1 in all three ways. What is mapped into memory is seen by none.
package collector
