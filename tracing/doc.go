// Package tracing tells what the kernel saw of a run: which block device stands behind a directory,
// and how many bytes it really moved.
//
// It is the witness beside the suite's own counting. An application that believes it read 100 GiB
// while its device delivered 3 was served by a cache, and only the kernel knows. Everything is read
// from /sys and /proc, needs no privilege and costs two small file reads per window. Where there is
// no block device to ask (tmpfs, NFS, overlay, object stores) the answer is a sentence that says
// why, never a zero that looks like a measurement.
//
// With privilege (CAP_BPF and CAP_PERFMON) a Collector sees every request too: how long it waited
// and how long the device took, its size, place and company, counted by programs in the kernel
// (package bpf) between two exact moments. FioJob distils that into a job for fio, WriteText prints
// it. Without privilege the same Collector has the counters, and says what is missing.
// ParseBpftrace reads what the bpftrace script of the Python benchmark printed instead.
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
// process, whatever it calls. Instructions of Linux 6.12 for each call (testdata/kernels.sh
// -instructions -run TestCostPerCall 6.12), where a pread of 4 KiB from the page cache takes 5768
// and getppid 347 untraced:
//
//	              watched pread   pread of others   getppid of others
//	fexit             +1921            +642               +1
//	tp_btf            +2712            +527             +369
//	kprobe            +2789           +1222               +1
//
// Detaching fexit and kprobes took that kernel a second, and no time for the others; it happens
// after the window. Kprobes come last, although they are as narrow as fexit: a function has some
// ten kretprobes for calls in progress, and a server has more threads than that blocked in reads of
// pipes. On 6.1 with 300 such threads and 1000 other reads (TestCallsBesideBlockedOnes) fexit and
// tp_btf saw 1000, kprobes none, and said that 999 were lost.
//
// All ways count each read, pread, readv, preadv, preadv2, their writes, fsync and fdatasync once,
// buffered, direct or synchronous. What io_uring and libaio read and write is seen by none, nor is
// what is mapped into memory.
//
// The package imports nothing else of this module and is usable alone.
package tracing
