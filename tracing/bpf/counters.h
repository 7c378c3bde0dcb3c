// What the block layer's programs keep: one entry per living request, and the counters of a window.
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
	u8 watched; // of the watched processes
	u8 counted; // in the gauge
	u8 kernel;  // queued by a thread of the kernel, for a process or for none
	u32 tgid;   // its process, 0 = the kernel; only with by_owner
	u8 placed;  // its place was compared with where others ended
	u8 pad[3];
	u32 turn; // its number among the dispatches of its direction, the lower half
};

struct {
	__uint(type, MAP_HASH);
	__uint(max_entries, 16384); // the collector sets what the devices can have in flight
	__type(key, u64);
	__type(value, struct entry);
} live SEC(".maps");

// direction is one direction of one window on one CPU; a per-CPU value may not exceed 32 KiB.
struct direction {
	s64 requests;
	s64 bytes;
	s64 issued;
	s64 requeued;
	s64 errors;
	s64 d2c_ns;
	s64 q2d_ns;
	s64 q2d_samples;
	s64 depth_sum;
	s64 foreign_requests; // of other processes, as far as that is known
	s64 foreign_bytes;
	s64 kernel_requests; // of these: queued by the kernel, for files of no known process
	s64 kernel_bytes;
	s64 back_requests; // written back by the kernel, for a watched process
	s64 back_bytes;
	s64 sequential; // began where another had ended
	s64 stale; // completions that no program saw, found when the address came back
	s64 unobserved_ns; // Σ time of the window in which they counted as in flight
	s64 miscounted; // Σ dispatches of this direction meanwhile, whose depth may have them too much
	u64 d2c[BUCKETS];
	u64 q2d[BUCKETS];
	u64 size[BUCKETS];
	u64 size_bytes[BUCKETS]; // Σ bytes of each bucket: its mean is the real size
	u64 depth[DEPTH_BUCKETS];
	u64 lba[LBA_BUCKETS];
};

#define WINDOWS 2 // one is being filled while the other is read

struct {
	__uint(type, MAP_PERCPU_ARRAY);
	__uint(max_entries, WINDOWS * 2); // window * 2 + direction
	__type(key, u32);
	__type(value, struct direction);
} directions SEC(".maps");

// other is what has no direction.
struct other {
	s64 flushes; // flush requests at the device
	s64 flush_ns;
	s64 flush_waits; // requests for a flush without data: one per fsync
	s64 flush_wait_ns;
	s64 own_flush_waits; // of these: of the watched processes
	s64 kernel_flush_waits; // and of the kernel's threads, a journal's for example
	s64 discards;
	s64 discard_bytes;
	s64 discard_ns;
	s64 others; // zeroing, zone management
	s64 gaps;   // times in which nothing was in flight
	s64 gap_ns;
	s64 merged;
	s64 partial;
	s64 unmatched; // completions with data whose dispatch was not seen
	s64 orphaned;  // queued, never dispatched, address came back
	s64 stale;     // lost completions without a direction
	s64 full;      // no capacity to follow a request
	u64 flush[BUCKETS];
	u64 flush_wait[BUCKETS];
	u64 discard[BUCKETS];
	u64 gap[BUCKETS];
};

struct {
	__uint(type, MAP_PERCPU_ARRAY);
	__uint(max_entries, WINDOWS);
	__type(key, u32);
	__type(value, struct other);
} other_counts SEC(".maps");

// Set before loading, constant afterwards: the verifier removes branches that cannot be taken.
#define MAX_DEVICES 128
const volatile u32 devices = 0; // 0 = every device
const volatile u32 by_name = 0; // compare names: the paths of an NVMe multipath head have no number to be seen from outside
const volatile struct {
	u64 name[2]; // the first 16 bytes
	u32 number;  // major << 20 | minor
	u32 pad;
} device[MAX_DEVICES] = {};
const volatile u32 old_arguments = 0; // (q, rq) instead of (rq): before Linux 5.11, and 5.10 before 5.10.137
const volatile u32 have_start = 0;    // block_io_start exists: since Linux 6.5
const volatile u32 only_watched = 0;      // leave requests of other processes out of the histograms
const volatile u64 lba_sectors = 20971520; // sectors per bucket: 10 GiB

// Each on a cache line of its own: the first is read all the time, the others are written all the time.
#define LINE 128
struct {
	u64 opened; // when
	u32 window; // the one being filled
	u8 pad[LINE - 12];
} control __attribute__((aligned(LINE))) = {};

// The gauges of in-flight requests, one per direction. A completion that no program sees leaves a gauge too high until the
// request is the oldest one in the gauge, or its address comes back (lost). That hides when the device is idle for that
// time (unobserved_ns).
struct {
	s64 in_flight;
	u64 issued; // all requests so far, approximately
	u64 turns;  // all dispatches so far, also those of requests given back
	u64 over;   // the last of these before which all have ended
	u8 pad[LINE - 32];
} gauge[2] __attribute__((aligned(LINE))) = {};

// The requests in the gauges, by the number of their dispatch: addresses, 0 = ended. Of more than TURNS in flight, the
// oldest ones have no place.
#define TURNS 4096
u64 turns[2 * TURNS] __attribute__((aligned(LINE))) = {};

INLINE u64 *turn_of(u64 number, u32 dir)
{
	return &turns[bounded((dir & 1) * TURNS + (number & (TURNS - 1)), 2 * TURNS)];
}

struct {
	u64 since; // when the last request completed
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

// Where requests ended, by a hash of the place: the next of a stream begins there, whatever came in between. A place is the
// sector and, because members of an array have the same sectors, the queue; directions have a table each. A mark counts for
// the next STREAMS requests of its direction, as many as streams may take turns: later it is chance, because a load that
// reads blocks at random comes by each of them again. Two streams that hash alike, or two processors at once, lose a mark.
#define PLACES 4096
#define STREAMS 64
struct mark {
	u64 end;
	u64 number; // of the request that left it
};
struct mark marks[2 * PLACES] __attribute__((aligned(LINE))) = {};

INLINE struct mark *mark_of(u64 place, u32 dir)
{
	u32 i = (dir & 1) * PLACES + ((place * 0x9e3779b97f4a7c15ULL) >> 52);
	return &marks[bounded(i, 2 * PLACES)]; // as a whole: Linux 6.1 does not follow a sum of bounded parts
}

// follows_another says whether a request begins where one of its direction ended, and marks where it ends itself.
INLINE int follows_another(u64 queue, u64 sector, u32 bytes, u32 dir)
{
	u64 begin = sector ^ (queue << 16), end = (sector + (bytes >> SIZE_SHIFT)) ^ (queue << 16);
	u64 number = ++gauge[bounded(dir, 2)].issued; // in the cache line that this processor writes next
	struct mark *m = mark_of(begin, dir);
	int yes = m->end == begin && number - m->number <= STREAMS;
	m = mark_of(end, dir);
	m->end = end;
	m->number = number;
	return yes;
}

INLINE u32 window(void) { return *(volatile u32 *)&control.window & (WINDOWS - 1); }
INLINE s64 *gauge_of(u32 dir) { return &gauge[bounded(dir, 2)].in_flight; }
INLINE s64 in_flight(u32 dir) { return *(volatile s64 *)gauge_of(dir); }

INLINE struct direction *direction_of(u32 dir)
{
	u32 key = window() * 2 + (dir & 1);
	return bpf_map_lookup_elem(&directions, &key);
}

INLINE struct other *other_now(void)
{
	u32 key = window();
	return bpf_map_lookup_elem(&other_counts, &key);
}

