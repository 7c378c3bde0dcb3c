// Block layer: what is kept of a request while it lives, and what is counted when it completes.
//
// Requests are keyed by their address, which the kernel reuses after completion. Order of events for one request:
// block_io_start, block_rq_insert (only with an I/O scheduler), block_rq_issue, block_rq_complete; a device that has no
// room gives it back (block_rq_requeue) and it is issued again; a scheduler may merge it into another (block_rq_merge).
//
// Everything is counted at completion, so that all histograms of a window have the same number of samples.
#pragma once
#include "counters.h"
#include "owner.h"

SHARED int wanted_number(u32 number)
{
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
	for (u32 i = 0; i < MAX_DEVICES; i++) {
		if (i >= devices)
			return 0;
		if (device[i].name[0] == name[0] && device[i].name[1] == name[1])
			return 1;
	}
	return 0;
}

// belongs notes whose a request is that is being queued now.
SHARED void belongs(struct request *rq, struct entry *e)
{
	e->watched = is_watched();
	if (watch == WATCH_NONE && !by_owner)
		return;
	e->kernel = is_kernel();
	if (by_owner)
		e->tgid = known(e->kernel ? 0 : bpf_get_current_pid_tgid() >> 32);
	if (follow_dirty && e->kernel && e->op == OP_WRITE) {
		struct dirtied *d = who_wrote(rq);
		if (d) {
			e->watched = d->watched;
			e->tgid = d->tgid;
		}
	}
}

INLINE void gauge_up(u64 key, struct entry *e)
{
	s64 *g = gauge_of(e->op);
	u64 *n = &gauge[bounded(e->op, 2)].turns;
	atomic_add(n, 1);
	e->turn = *(volatile u64 *)n;
	*turn_of(e->turn, e->op) = key;
	atomic_add(g, 1);
	e->counted = 1;
	e->depth = *(volatile s64 *)g;
}

INLINE void gauge_down(struct entry *e)
{
	if (!e->counted)
		return;
	e->counted = 0;
	*turn_of(e->turn, e->op) = 0;
	atomic_add(gauge_of(e->op), -1);
}

// follows says whether a read or write belongs in the histograms.
INLINE int follows(struct entry *e) { return !only_watched || e->watched; }

// lost counts a read or write whose completion no program saw, once: until now it counted as in flight.
INLINE void lost(struct entry *e, u64 now)
{
	struct direction *l = direction_of(e->op);
	if (!e->counted || !l)
		return;
	gauge_down(e);
	atomic_add(&l->stale, 1);
	atomic_add(&l->miscounted, (u32)gauge[bounded(e->op, 2)].turns - e->turn);
	u64 opened = *(volatile u64 *)&control.opened;
	u64 since = e->issue > opened ? e->issue : opened;
	if (now > since)
		atomic_add(&l->unobserved_ns, now - since);
}

// A request is marked as in flight some nanoseconds after its dispatch was seen.
#define MARKED_NS 20000

// ended says whether the block layer has a request in the gauge as ended.
INLINE int ended(u64 key, u64 number, u64 now)
{
	struct request *rq = (struct request *)key;
	enum mq_rq_state state = MQ_RQ_IDLE;
	if (!field_exists(rq->state) ||
	    bpf_probe_read_kernel(&state, sizeof(state), __builtin_preserve_access_index(&rq->state)) ||
	    state != MQ_RQ_IDLE)
		return 0;
	struct entry *e = bpf_map_lookup_elem(&live, &key);
	if (e && e->counted && e->turn == (u32)number) {
		if (now - e->issue < MARKED_NS)
			return 0;
		lost(e, now);
	}
	return 1;
}

// look_for_lost looks at the oldest requests in the gauge: at more than one for a dispatch, to keep up.
SHARED void look_for_lost(u32 dir, u64 now)
{
	dir &= 1;
	u64 newest = gauge[dir].turns, over = gauge[dir].over;
	if (newest - over > TURNS)
		over = newest - TURNS;
	for (int i = 0; i < 3 && over < newest; i++) {
		u64 key = *(volatile u64 *)turn_of(over + 1, dir);
		if (key && !ended(key, over + 1, now))
			break;
		over++;
	}
	gauge[dir].over = over;
}

// recover takes an entry back whose address has come again: its completion was lost, or it never got to the device.
INLINE void recover(struct entry *e)
{
	struct other *r = other_now();
	if (!e->issue) {
		if (r)
			atomic_add(&r->orphaned, 1);
		return;
	}
	if (e->op > OP_WRITE) {
		if (r)
			atomic_add(&r->stale, 1);
		return;
	}
	lost(e, bpf_ktime_get_ns());
}

SHARED void begin(u64 key, struct entry *fresh)
{
	struct entry *e = bpf_map_lookup_elem(&live, &key);
	if (e) {
		recover(e);
		*e = *fresh;
		return;
	}
	if (bpf_map_update_elem(&live, &key, fresh, 0)) {
		struct other *r = other_now();
		if (r)
			atomic_add(&r->full, 1);
	}
}

SHARED void issued(u64 key, struct entry *e, u64 now, u64 queue)
{
	e->issue = now;
	if (e->op > OP_WRITE || !follows(e))
		return;
	struct direction *l = direction_of(e->op);
	if (l)
		l->issued++;
	if (!e->placed) { // one that was given back comes to the same place again
		e->placed = 1;
		if (follows_another(queue, e->sector, e->bytes, e->op) && l)
			l->sequential++;
	}
	if (!first.issue && window())
		first.issue = now;
	// Each completion stores its time before it leaves the gauge, so that a reader of an empty gauge has the time of the last.
	if (in_flight(0) + in_flight(1) == 0) {
		u64 since = idle.since;
		if (since > *(volatile u64 *)&control.opened && now > since) {
			struct other *r = other_now();
			if (r) {
				r->gaps++;
				r->gap_ns += now - since;
				observe(r->gap, BUCKETS, (now - since) >> TIME_SHIFT);
			}
		}
	}
	look_for_lost(e->op, now);
	gauge_up(key, e);
}

SHARED void requeued(struct entry *e)
{
	if (!e->issue)
		return;
	e->issue = 0;
	if (e->op > OP_WRITE || !follows(e))
		return;
	gauge_down(e);
	struct direction *l = direction_of(e->op);
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
	struct other *r = other_now();
	if (r)
		r->merged++;
	bpf_map_delete_elem(&live, &key);
}

// completed_for counts a request for its process.
SHARED void completed_for(struct entry *e, u32 bytes)
{
	u32 tgid = e->tgid, dir = e->op & 1;
	struct owner *o = window() ? bpf_map_lookup_elem(&owners, &tgid) : 0;
	if (!o)
		return;
	atomic_add(&o->requests[dir], 1);
	atomic_add(&o->bytes[dir], bytes);
	if (e->kernel && tgid) {
		atomic_add(&o->back_requests, 1);
		atomic_add(&o->back_bytes, bytes);
	}
}

INLINE void completed_data(struct entry *e, u64 now, u32 bytes, int failed)
{
	struct direction *l = direction_of(e->op);
	if (!l)
		return;
	if (watch && !e->watched) {
		l->foreign_requests++;
		l->foreign_bytes += bytes;
		if (e->kernel) {
			l->kernel_requests++;
			l->kernel_bytes += bytes;
		}
	} else if (e->kernel && (e->watched || e->tgid)) {
		l->back_requests++;
		l->back_bytes += bytes;
	}
	if (by_owner)
		completed_for(e, bytes);
	if (!follows(e))
		return;
	if (!e->counted) // it had only been taken for lost
		atomic_add(&l->stale, -1);
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
	struct other *r = other_now();
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
SHARED void completed_unissued(struct entry *e, u64 now, u32 bytes)
{
	struct other *r = other_now();
	if (!r)
		return;
	if (bytes || e->op != OP_WRITE) {
		atomic_add(&r->unmatched, 1);
		return;
	}
	r->flush_waits++;
	r->own_flush_waits += e->watched;
	r->kernel_flush_waits += !e->watched && e->kernel;
	if (e->start && e->start <= now) {
		r->flush_wait_ns += now - e->start;
		observe(r->flush_wait, BUCKETS, (now - e->start) >> TIME_SHIFT);
	}
}

SHARED void completed(u64 key, struct entry *e, u32 len, u32 bytes, int failed)
{
	u64 now = bpf_ktime_get_ns();
	if (bytes < len && !failed) { // the rest of it follows
		struct other *r = other_now();
		if (r)
			r->partial++;
		return;
	}
	if (!e->issue) {
		completed_unissued(e, now, bytes);
	} else if (e->op > OP_WRITE) {
		completed_other(e, now, bytes);
	} else {
		int counted = e->counted; // another process's request says nothing about the gaps of ours
		completed_data(e, now, e->bytes, failed);
		if (counted)
			idle.since = now;
		gauge_down(e);
	}
	bpf_map_delete_elem(&live, &key);
}
