// Package ring is one io_uring (Linux 6.0 and later), with its system calls: a submission queue of
// which the kernel takes many requests at a time, and a completion queue.
//
//	ring_linux.go  Ring: New, Next, Enter, Reap; registered buffers
//	abi_linux.go   what the kernel's header says: structs, numbers, flags
//
// # Ownership
//
// A Ring belongs to the thread that made it (see New): no method is safe for concurrent use. The
// memory of a request belongs to the kernel until its completion has been reaped. Close does not wait
// for that: after Close the memory of requests in flight must never be used again.
//
// Numbers and structs are those of include/uapi/linux/io_uring.h; how the two queues are shared
// with the kernel is described by io_uring(7).
package ring
