// Package tracing tells what the kernel saw of a run: which block device stands behind a directory, and how many
// bytes it really moved.
//
// It is the witness beside the suite's own counting. An application that believes it read 100 GiB while its device
// delivered 3 was served by a cache, and only the kernel knows. Everything is read from /sys and /proc, needs no
// privilege and costs two small file reads per window. Where there is no block device to ask (tmpfs, NFS, overlay,
// object stores) the answer is a sentence that says why, never a zero that looks like a measurement.
//
// With privilege (CAP_BPF and CAP_PERFMON) a Collector sees every request too: how long it waited and how long the device
// took, its size, place and company, counted by programs in the kernel (package bpf) between two exact moments. FioJob
// distils that into a job for fio, WriteText prints it. Without privilege the same Collector has the counters, and says
// what is missing. ParseBpftrace reads what the bpftrace script of the Python benchmark printed instead.
//
// The package imports nothing else of this module and is usable alone.
package tracing
