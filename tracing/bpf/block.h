// Block layer: what is kept of a request while it lives, and what is counted when it completes.
//
// Requests are keyed by their address, which the kernel reuses after completion. Order of events for one request:
// block_io_start, block_rq_insert (only with an I/O scheduler), block_rq_issue, block_rq_complete; a device that has no
// room gives it back (block_rq_requeue) and it is issued again; a scheduler may merge it into another (block_rq_merge).
//
// Everything is counted at completion, so that all histograms of a window have the same number of samples.
#pragma once
#include "histogram.h"

enum { OP_READ = 0, OP_WRITE = 1, OP_FLUSH = 2, OP_DISCARD = 3 };

struct entry {
	u64 start; // when it entered the queue, 0 = unknown
	u64 issue; // when it was last dispatched, 0 = not (yet, or again)
	u64 sector;
	u32 bytes;
	u32 depth; // requests of its direction in flight at its dispatch, itself included
	u8 op;
	u8 own;     // of the watched processes
	u8 counted; // in the gauge
	u8 pad[5];
};

struct {
	__uint(type, MAP_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct entry);
} live SEC(".maps");

// lane is one direction of one window on one CPU; a per-CPU value may not exceed 32 KiB.
struct lane {
	u64 requests;
	u64 bytes;
	u64 issued;
	u64 requeued;
	u64 errors;
	u64 d2c_ns;
	u64 q2d_ns;
	u64 q2d_samples;
	u64 depth_sum;
	u64 foreign_requests; // of other processes, as far as that is known
	u64 foreign_bytes;
	u64 stale; // completions that no program saw, found when the address came back
	u64 d2c[BUCKETS];
	u64 q2d[BUCKETS];
	u64 size[BUCKETS];
	u64 size_bytes[BUCKETS]; // Σ bytes of each bucket: its mean is the real size
	u64 depth[DEPTH_BUCKETS];
	u64 lba[LBA_BUCKETS];
};

#define WINDOWS 2 // one is being filled while the other is read or cleared

struct {
	__uint(type, MAP_PERCPU_ARRAY);
	__uint(max_entries, WINDOWS * 2); // window * 2 + direction
	__type(key, u32);
	__type(value, struct lane);
} lanes SEC(".maps");

// rest is what has no direction.
struct rest {
	u64 flushes; // flush requests at the device
	u64 flush_ns;
	u64 flush_waits; // requests that asked for a flush and moved no data: one per fsync
	u64 flush_wait_ns;
	u64 discards;
	u64 discard_bytes;
	u64 discard_ns;
	u64 others; // zeroing, zone management
	u64 gaps;   // times in which nothing was in flight
	u64 gap_ns;
	u64 merged;
	u64 partial;
	u64 unmatched; // completions with data whose dispatch was not seen
	u64 orphaned;  // queued, never dispatched, address came back
	u64 stale;     // lost completions without a direction
	u64 full;      // no room to follow a request
	u64 flush[BUCKETS];
	u64 flush_wait[BUCKETS];
	u64 discard[BUCKETS];
	u64 gap[BUCKETS];
};

struct {
	__uint(type, MAP_PERCPU_ARRAY);
	__uint(max_entries, WINDOWS);
	__type(key, u32);
	__type(value, struct rest);
} rests SEC(".maps");

// Set before loading, constant afterwards: the verifier removes branches that cannot be taken.
#define MAX_DEVICES 16
const volatile u32 devices = 0; // 0 = every device
const volatile u32 by_name = 0; // compare names: the paths of an NVMe multipath head have no number to be seen from outside
const volatile struct {
	u64 name[2]; // the first 16 bytes
	u32 number;  // major << 20 | minor
	u32 pad;
} device[MAX_DEVICES] = {};
const volatile u32 old_arguments = 0; // (q, rq) instead of (rq): before Linux 5.11, and 5.10 before 5.10.137
const volatile u32 have_start = 0;    // block_io_start exists: since Linux 6.5
const volatile u32 only_own = 0;      // leave requests of other processes out of the histograms
const volatile u64 lba_sectors = 20971520; // sectors per bucket: 10 GiB

// Each on a cache line of its own: the first is read all the time, the others are written all the time.
#define LINE 128
struct {
	u64 opened; // when
	u32 window; // the one being filled
	u8 pad[LINE - 12];
} control __attribute__((aligned(LINE))) = {};

struct {
	s64 in_flight;
	u8 pad[LINE - 8];
} gauge[2] __attribute__((aligned(LINE))) = {};

struct {
	u64 since; // when the last request completed and none was left
	u8 pad[LINE - 8];
} idle __attribute__((aligned(LINE))) = {};

struct {
	u64 issue; // the first one in the window
	u8 pad[LINE - 8];
} first __attribute__((aligned(LINE))) = {};

// queue_argument is the request among the arguments of the queue's events. The two loads must not become one of a computed
// address, which the verifier refuses.
INLINE u64 queue_argument(u64 *ctx)
{
	u64 rq;
	if (old_arguments) {
		rq = ctx[1];
		asm volatile("" : "+r"(rq));
	} else {
		rq = ctx[0];
		asm volatile("" : "+r"(rq)::"memory");
	}
	return rq;
}

INLINE u32 window(void) { return *(volatile u32 *)&control.window & (WINDOWS - 1); }
INLINE s64 in_flight(u32 dir) { return *(volatile s64 *)&gauge[dir & 1].in_flight; }

INLINE struct lane *lane_of(u32 dir)
{
	u32 key = window() * 2 + (dir & 1);
	return bpf_map_lookup_elem(&lanes, &key);
}

INLINE struct rest *rest_now(void)
{
	u32 key = window();
	return bpf_map_lookup_elem(&rests, &key);
}

INLINE int wanted_number(u32 number)
{
#pragma unroll
	for (u32 i = 0; i < MAX_DEVICES; i++) {
		if (i >= devices)
			return 0;
		if (device[i].number == number)
			return 1;
	}
	return 0;
}

SHARED int wanted_name(struct gendisk *disk)
{
	u64 name[2] = {};
	bpf_probe_read_kernel(name, sizeof(name), __builtin_preserve_access_index(&disk->disk_name));
#pragma unroll
	for (u32 i = 0; i < MAX_DEVICES; i++) {
		if (i >= devices)
			return 0;
		if (device[i].name[0] == name[0] && device[i].name[1] == name[1])
			return 1;
	}
	return 0;
}

INLINE void gauge_up(struct entry *e)
{
	u32 dir = e->op & 1;
	atomic_add(&gauge[dir].in_flight, 1);
	e->counted = 1;
	e->depth = in_flight(dir);
}

INLINE void gauge_down(struct entry *e)
{
	if (!e->counted)
		return;
	atomic_add(&gauge[e->op & 1].in_flight, -1);
	e->counted = 0;
}

// follows says whether a read or write belongs in the histograms.
INLINE int follows(struct entry *e) { return !only_own || e->own; }

// heal takes an entry back whose address has come again: its completion was lost, or it never got to the device.
INLINE void heal(struct entry *e)
{
	struct rest *r = rest_now();
	if (!e->issue) {
		if (r)
			atomic_add(&r->orphaned, 1);
		return;
	}
	gauge_down(e);
	if (e->op > OP_WRITE) {
		if (r)
			atomic_add(&r->stale, 1);
		return;
	}
	if (!follows(e))
		return;
	struct lane *l = lane_of(e->op);
	if (l)
		atomic_add(&l->stale, 1);
}

SHARED void begin(u64 key, struct entry *fresh)
{
	struct entry *e = bpf_map_lookup_elem(&live, &key);
	if (e) {
		heal(e);
		*e = *fresh;
		return;
	}
	if (bpf_map_update_elem(&live, &key, fresh, 0)) {
		struct rest *r = rest_now();
		if (r)
			atomic_add(&r->full, 1);
	}
}

SHARED void issued(struct entry *e, u64 now)
{
	e->issue = now;
	if (e->op > OP_WRITE || !follows(e))
		return;
	struct lane *l = lane_of(e->op);
	if (l)
		l->issued++;
	if (!first.issue && window())
		first.issue = now;
	// A transition seen by two processors at once loses a gap of nanoseconds.
	if (in_flight(0) + in_flight(1) == 0) {
		u64 since = idle.since;
		if (since > *(volatile u64 *)&control.opened && now > since) {
			struct rest *r = rest_now();
			if (r) {
				r->gaps++;
				r->gap_ns += now - since;
				observe(r->gap, BUCKETS, (now - since) >> TIME_SHIFT);
			}
		}
	}
	gauge_up(e);
}

SHARED void requeued(struct entry *e)
{
	if (!e->issue)
		return;
	e->issue = 0;
	if (e->op > OP_WRITE || !follows(e))
		return;
	gauge_down(e);
	struct lane *l = lane_of(e->op);
	if (l)
		l->requeued++;
}

// merged drops a request that a scheduler has made part of another.
SHARED void merged(u64 key)
{
	struct entry *e = bpf_map_lookup_elem(&live, &key);
	if (!e)
		return;
	if (e->issue)
		gauge_down(e);
	struct rest *r = rest_now();
	if (r)
		r->merged++;
	bpf_map_delete_elem(&live, &key);
}

INLINE void completed_data(struct entry *e, u64 now, u32 bytes, int failed)
{
	struct lane *l = lane_of(e->op);
	if (!l)
		return;
	if (watch && !e->own) {
		l->foreign_requests++;
		l->foreign_bytes += bytes;
	}
	if (!follows(e))
		return;
	u64 d2c = now - e->issue;
	l->requests++;
	l->bytes += bytes;
	l->errors += failed;
	l->d2c_ns += d2c;
	observe(l->d2c, BUCKETS, d2c >> TIME_SHIFT);
	if (e->start && e->start <= e->issue) {
		u64 q2d = e->issue - e->start;
		l->q2d_ns += q2d;
		l->q2d_samples++;
		observe(l->q2d, BUCKETS, q2d >> TIME_SHIFT);
	}
	u32 i = bounded(bucket_of(bytes >> SIZE_SHIFT, BUCKETS), BUCKETS);
	l->size[i]++;
	l->size_bytes[i] += bytes;
	l->depth_sum += e->depth;
	observe(l->depth, DEPTH_BUCKETS, e->depth);
	u64 zone = e->sector / lba_sectors;
	l->lba[bounded(zone < LBA_BUCKETS ? zone : LBA_BUCKETS - 1, LBA_BUCKETS)]++;
}

INLINE void completed_other(struct entry *e, u64 now, u32 bytes)
{
	struct rest *r = rest_now();
	if (!r)
		return;
	u64 d2c = now - e->issue;
	switch (e->op) {
	case OP_FLUSH:
		r->flushes++;
		r->flush_ns += d2c;
		observe(r->flush, BUCKETS, d2c >> TIME_SHIFT);
		break;
	case OP_DISCARD:
		r->discards++;
		r->discard_bytes += bytes;
		r->discard_ns += d2c;
		observe(r->discard, BUCKETS, d2c >> TIME_SHIFT);
		break;
	default:
		r->others++;
	}
}

// completed_unissued is the parent of a flush, which completes with no data and without having been dispatched itself
// (the flush request is), or a request dispatched before the programs were attached.
SHARED void completed_unissued(u64 start, u64 now, u32 op, u32 bytes)
{
	struct rest *r = rest_now();
	if (!r)
		return;
	if (bytes || op != OP_WRITE) {
		atomic_add(&r->unmatched, 1);
		return;
	}
	r->flush_waits++;
	if (start && start <= now) {
		r->flush_wait_ns += now - start;
		observe(r->flush_wait, BUCKETS, (now - start) >> TIME_SHIFT);
	}
}

SHARED void completed(u64 key, struct entry *e, u32 len, u32 bytes, int failed)
{
	u64 now = bpf_ktime_get_ns();
	if (bytes < len && !failed) { // the rest of it follows
		struct rest *r = rest_now();
		if (r)
			r->partial++;
		return;
	}
	if (!e->issue) {
		completed_unissued(e->start, now, e->op, bytes);
	} else if (e->op > OP_WRITE) {
		completed_other(e, now, bytes);
	} else {
		completed_data(e, now, e->bytes, failed);
		gauge_down(e);
		if (in_flight(0) + in_flight(1) == 0)
			idle.since = now;
	}
	bpf_map_delete_elem(&live, &key);
}
