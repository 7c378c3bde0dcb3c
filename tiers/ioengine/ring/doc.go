// Package ring is one io_uring of the kernel (Linux 6.0 and later), by its system calls: a queue
// of requests that the kernel takes many at a time, and a queue of their completions.
//
//	ring_linux.go  Ring: New, Next, Enter, Reap; registered buffers
//	abi_linux.go   what the kernel's header says: structs, numbers, flags
//
// # Ownership
//
// A Ring belongs to one thread, the one that made it (see New): no method is safe for concurrent
// use. What a request points to belongs to the kernel until its completion has been reaped,
// whatever became of it. Close does not wait for that: the owner who closes a Ring with requests in
// flight must never use their memory again.
//
// Numbers and structs are those of include/uapi/linux/io_uring.h; how the two queues are shared
// with the kernel is described by io_uring(7).
package ring
