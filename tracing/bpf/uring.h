// What io_uring reads, writes and flushes: requests that are submitted and completed, by whichever thread. A request knows its
// file only when it is executed, so the file is read at its end; until then requests on sockets and pipes are followed too.
#pragma once
#include "file.h"

struct io_cqe {
	s32 res;
} CO_RE;

struct io_kiocb {
	struct file *file;
	u8 opcode;
	struct io_cqe cqe; // since Linux 5.19
} CO_RE;

// uring_kind is what an operation is (enum io_uring_op of include/uapi/linux/io_uring.h); CALL_KINDS for all others.
INLINE u32 uring_kind(u8 opcode)
{
	switch (opcode) {
	case 1: // READV
	case 4: // READ_FIXED
	case 22: // READ
		return CALL_READ;
	case 2: // WRITEV
	case 5: // WRITE_FIXED
	case 23: // WRITE
		return CALL_WRITE;
	case 3:
		return CALL_FSYNC;
	}
	return CALL_KINDS;
}

SHARED void uring_submitted(struct io_kiocb *req)
{
	u32 kind = uring_kind(PROBE(req, opcode));
	if (kind < CALL_KINDS && is_watched())
		follow((u64)req, 0, kind);
}

SHARED void uring_completed(struct io_kiocb *req)
{
	u64 key = (u64)req;
	struct call *c = bpf_map_lookup_elem(&calling, &key);
	if (!c)
		return;
	struct file *file = PROBE(req, file);
	if (!file || !wanted_file(file, PROBE)) {
		bpf_map_delete_elem(&calling, &key);
		return;
	}
	c->file = (u64)file;
	after_last(c->file, c->kind, c->start);
	call_ends(c, PROBE(req, cqe.res));
	bpf_map_delete_elem(&calling, &key);
}
