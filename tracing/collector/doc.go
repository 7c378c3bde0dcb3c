// Package collector counts in the kernel every request of a device between two exact moments.
//
//	collector.go     Options: devices, level, processes; Collector: start, open and close the window,
//	                 read
//	capture.go       a Trace from the counters, and its warnings
//	counts_bpf.go    the kernel's counters; buckets.go: its log-linear histograms
//	attach_bpf.go    loads the programs of package bpf for this kernel and attaches them
//	programs_bpf.go  the attached programs: windows, counters, clocks, lost completions
//	calls_bpf.go     calls on files; watch_bpf.go: the watched processes
//	explain_linux.go advice for the user when the kernel refuses
//
// Tracing needs CAP_BPF and CAP_PERFMON and a kernel with type information. Without them the Collector
// reads the device's own counters, and names what is missing. Its methods may be called from any
// goroutine. Nothing is pinned in the kernel: the programs are removed with the process, however it ends.
//
// # Kernels
//
// The programs adapt to the running kernel by its type information (CO-RE). A request names its disk
// by rq_disk before Linux 5.17 and by the queue since 5.15. The queue's events have another first
// argument before 5.10.137. Queueing begins at block_io_start since 6.5, and with the allocation
// before. testdata/kernels.sh boots other kernels in qemu and runs the tests there. The tests expect
// every request that the devices counted themselves, and every call. They passed on:
//
//	kernel                      calls on files
//	5.10.223  Debian 11         fexit, tp_btf
//	5.15.0-25 Ubuntu 22.04      fexit, tp_btf
//	6.1.176   Debian 12         fexit, tp_btf
//	6.12.95   Debian 12, newer  fexit, tp_btf
//	7.2.12    Debian 13, newer  fexit, tp_btf
//	6.18.44   a VM of a cloud   tp_btf (fexit: EPERM)
//
// on virtio, a partition, NVMe, an NVMe multipath head (by the names of its hidden paths),
// dm-linear over NVMe and a partition, dm-crypt and RAID 1, each with a filesystem. Not run: arm64,
// and kernels that still give the queue's events (q, rq).
//
// Kernels without type information (CONFIG_DEBUG_INFO_BTF) are not supported: their perf tracepoints name
// a request only by its sector, and two requests may have the same sector. There the device's own counters
// are reported.
//
// # Calls on files
//
// There are two ways to trace calls. Fexit programs only run for calls on files. Tracing system calls
// costs time in every call of every process. The table has the additional instructions of Linux 6.12 for
// each call, measured in qemu at revision 37e73fc6 by its TestCostPerCall. Untraced, a pread of 4 KiB from
// the page cache takes 5768 instructions and getppid 347:
//
//	          watched pread   pread of others   getppid of others
//	fexit         +1921            +642               +1
//	tp_btf        +2712            +527             +369
//
// Detaching fexit took that kernel a second, and tp_btf no time; it happens after the window. Kprobes are no
// third way: a function has some ten kretprobes for calls in progress, but a server may have more threads
// blocked in reads of pipes. On 6.1 with 300 such threads and 1000 other reads they lost 999 of those.
//
// Both ways count each read, pread, readv, preadv, preadv2, the same writes, fsync and fdatasync once,
// buffered, direct or synchronous. No way traces memory mappings.
//
// Requests of io_uring are traced at io_uring's own events, from submission to completion, on kernels whose
// events name the request (since 6.4).
//
// Requests of libaio are traced from io_submit to the io_getevents or io_pgetevents with which the program
// fetches the completion. A program that reads completions from memory shared with the kernel (fio with
// userspace_reap, Seastar) makes no such call, and its requests count as lost. With both ways libaio is
// traced in its system calls, at the cost of tp_btf. It is traced only if other processes than this one are
// watched, because this one does not use libaio. Libaio was tested on 6.18 with tp_btf and on 6.1 in both
// ways.
package collector
