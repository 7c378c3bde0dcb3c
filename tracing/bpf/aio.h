// What libaio reads, writes and flushes: io_submit begins requests, and io_getevents or io_pgetevents hands over their ends. No
// event of the kernel shows an end itself, so that a request lasts until the program has fetched it. A program that takes
// ends out of the memory which it shares with the kernel calls nothing: its requests are lost, as is found when it uses the
// address of one again.
#pragma once
#include "file.h"

// struct iocb of include/uapi/linux/aio_abi.h, as far as it is read. Both architectures are little-endian.
struct aio_request {
	u64 data;
	u32 key;
	u32 flags;
	u16 opcode;
	u16 priority;
	u32 fd;
};

// struct io_event
struct aio_event {
	u64 data;
	u64 request; // its address
	s64 result;
	s64 more;
};

struct aio_key {
	u64 request;
	u64 tgid; // addresses are of a process
};

struct {
	__uint(type, MAP_HASH);
	__uint(max_entries, 16384);
	__type(key, struct aio_key);
	__type(value, struct call);
} submitted SEC(".maps");

#define AIO_MOST 128 // requests of one call that are followed: the verifier walks through each

// aio_kind is what an operation is (enum of aio_abi.h); CALL_KINDS for all others.
INLINE u32 aio_kind(u16 opcode)
{
	switch (opcode) {
	case 0: // PREAD
	case 7: // PREADV
		return CALL_READ;
	case 1: // PWRITE
	case 8: // PWRITEV
		return CALL_WRITE;
	case 2: // FSYNC
	case 3: // FDSYNC
		return CALL_FSYNC;
	}
	return CALL_KINDS;
}

// aio_at reads the nth address of the program's array of requests, 0 where it cannot.
INLINE struct aio_key aio_at(u64 array, u32 n)
{
	struct aio_key key = { .tgid = bpf_get_current_pid_tgid() >> 32 };
	if (bpf_probe_read_user(&key.request, sizeof(key.request), (void *)(array + 8 * n)))
		key.request = 0;
	return key;
}

SHARED void aio_submitted(u64 array, u32 n)
{
	struct aio_key key = aio_at(array, n);
	struct aio_request r = {};
	if (!key.request || bpf_probe_read_user(&r, sizeof(r), (void *)key.request)) {
		call_lost(CALL_READ); // or another, or none: it is not known
		return;
	}
	u32 kind = aio_kind(r.opcode);
	struct file *file = kind < CALL_KINDS ? (struct file *)file_of(r.fd) : 0;
	if (!file || !wanted_file(file, PROBE))
		return;
	struct call *before = bpf_map_lookup_elem(&submitted, &key);
	if (before)
		call_lost(before->kind);
	struct call c = { .start = bpf_ktime_get_ns(), .file = (u64)file, .kind = kind };
	after_last(c.file, kind, c.start);
	if (bpf_map_update_elem(&submitted, &key, &c, 0))
		call_lost(kind);
}

SHARED void aio_reaped(u64 array, u32 n)
{
	struct aio_event e = {};
	if (bpf_probe_read_user(&e, sizeof(e), (void *)(array + sizeof(e) * n)))
		return;
	struct aio_key key = { .request = e.request, .tgid = bpf_get_current_pid_tgid() >> 32 };
	struct call *c = bpf_map_lookup_elem(&submitted, &key);
	if (!c)
		return;
	call_ends(c, e.result);
	bpf_map_delete_elem(&submitted, &key);
}

// aio_begins is the beginning of a call: requests that it submits begin with it, because they may end before it does.
SHARED void aio_begins(struct pt_regs *regs, u32 kind)
{
	u64 thread = bpf_get_current_pid_tgid();
	struct call whole = { .kind = kind, .file = kind == CALL_SUBMIT ? argument(regs, 2) : argument(regs, 3) };
	if (kind == CALL_SUBMIT) {
		whole.n = argument(regs, 1);
		for (u32 i = 0; i < AIO_MOST && i < whole.n; i++)
			aio_submitted(whole.file, i);
	}
	if (bpf_map_update_elem(&calling, &thread, &whole, 0))
		call_lost(CALL_READ);
}

// aio_ends is the end of a call, with the number of requests that were taken or have ended.
SHARED void aio_ends(struct call *whole, s64 result)
{
	u64 array = whole->file;
	u32 n = result > 0 ? result : 0;
	if (whole->kind == CALL_REAP) {
		for (u32 i = 0; i < AIO_MOST && i < n; i++)
			aio_reaped(array, i);
		return;
	}
	struct calls *c = n > AIO_MOST ? calls_of(CALL_READ) : 0;
	if (c)
		c->lost += n - AIO_MOST;
	// Those behind the last that was taken have not begun.
	for (u32 i = 0; i < AIO_MOST && n + i < whole->n; i++) {
		struct aio_key key = aio_at(array, n + i);
		bpf_map_delete_elem(&submitted, &key);
	}
}
