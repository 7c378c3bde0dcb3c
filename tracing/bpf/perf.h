// The block layer through perf tracepoints, for kernels without type information. Their records hold no request, so one
// is known by device and first sector, which two requests may share (flushes do): good for sizes, mix and latency, not
// for books that balance to the last request. Fields are found by the offsets of the kernel's own format files, because
// distributions move them.
#pragma once
#include "block.h"

struct fields {
	u32 dev;
	u32 sector;
	u32 nr_sector;
	u32 rwbs;
};

const volatile struct fields request_fields = {};  // block_rq_insert, block_rq_issue, block_io_start, block_rq_merge
const volatile struct fields complete_fields = {}; // block_rq_complete
const volatile struct fields requeue_fields = {};  // block_rq_requeue

struct record {
	u64 key;
	u64 sector;
	u32 bytes;
	u32 op;
};

#define AT(ctx, offset, type) ({ \
	type v_ = 0; \
	bpf_probe_read_kernel(&v_, sizeof(v_), (char *)(ctx) + (offset)); \
	v_; \
})

// op_of reads what blk_fill_rwbs wrote: an F in front asks for a flush first, one alone or before another is a flush.
INLINE u32 op_of(u16 rwbs)
{
	char a = rwbs & 0xff, b = rwbs >> 8;
	if (a == 'F' && (b == 'W' || b == 'R' || b == 'D'))
		a = b;
	switch (a) {
	case 'R': return OP_READ;
	case 'W': return OP_WRITE;
	case 'F': return OP_FLUSH;
	case 'D': return OP_DISCARD;
	}
	return 0xff;
}

INLINE int read_record(void *ctx, const volatile struct fields *f, struct record *r)
{
	u32 dev = AT(ctx, f->dev, u32);
	if (devices && !wanted_number(dev))
		return 0;
	r->sector = AT(ctx, f->sector, u64);
	r->bytes = AT(ctx, f->nr_sector, u32) << SIZE_SHIFT;
	r->op = op_of(AT(ctx, f->rwbs, u16));
	r->key = r->sector ^ dev * 0x9e3779b97f4a7c15ULL;
	return 1;
}

INLINE int perf_queued(void *ctx)
{
	struct record r;
	if (!read_record(ctx, &request_fields, &r))
		return 0;
	struct entry e = { .start = bpf_ktime_get_ns(), .op = r.op, .own = is_watched() };
	begin(r.key, &e);
	return 0;
}

SEC("tracepoint/block/block_io_start")
int perf_io_start(void *ctx) { return perf_queued(ctx); }

SEC("tracepoint/block/block_rq_insert")
int perf_insert(void *ctx) { return perf_queued(ctx); }

SEC("tracepoint/block/block_rq_issue")
int perf_issue(void *ctx)
{
	u64 now = bpf_ktime_get_ns();
	struct record r;
	if (!read_record(ctx, &request_fields, &r))
		return 0;
	struct entry *e = bpf_map_lookup_elem(&live, &r.key);
	if (!e || e->issue) {
		struct entry fresh = { .op = r.op, .own = is_watched() };
		begin(r.key, &fresh);
		e = bpf_map_lookup_elem(&live, &r.key);
		if (!e)
			return 0;
	}
	e->op = r.op;
	e->bytes = r.bytes;
	e->sector = r.sector;
	issued(e, now);
	return 0;
}

SEC("tracepoint/block/block_rq_requeue")
int perf_requeue(void *ctx)
{
	struct record r;
	if (!read_record(ctx, &requeue_fields, &r))
		return 0;
	struct entry *e = bpf_map_lookup_elem(&live, &r.key);
	if (e)
		requeued(e);
	return 0;
}

SEC("tracepoint/block/block_rq_merge")
int perf_merge(void *ctx)
{
	struct record r;
	if (read_record(ctx, &request_fields, &r))
		merged(r.key);
	return 0;
}

SEC("tracepoint/block/block_rq_complete")
int perf_complete(void *ctx)
{
	struct record r;
	if (!read_record(ctx, &complete_fields, &r))
		return 0;
	struct entry *e = bpf_map_lookup_elem(&live, &r.key);
	if (e)
		completed(r.key, e, r.bytes, r.bytes, 0);
	else if (devices && r.bytes)
		completed_unissued(0, bpf_ktime_get_ns(), r.op, r.bytes);
	return 0;
}
