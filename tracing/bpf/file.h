// File layer: what the watched processes ask of files of one filesystem, counted between the beginning and the end of each
// call. functions.h and syscalls.h differ in how they trace a call, not in what they count.
#pragma once
#include "histogram.h"
#include "process.h"

enum { CALL_READ = 0, CALL_WRITE, CALL_FSYNC, WRITE_TO_FSYNC, FADVISE_TO_READ, CALL_KINDS };
enum { CALL_FADVISE = CALL_KINDS, CALL_SUBMIT, CALL_REAP }; // followed, but not counted themselves

#define ADVICE_DONTNEED 4

const volatile u32 file_device = 0; // the filesystem's s_dev: major << 20 | minor; 0 = any file

struct call {
	u64 start;
	u64 file; // of libaio's own calls: the program's array
	u32 kind;
	u32 n; // requests of CALL_SUBMIT
};

struct {
	__uint(type, MAP_HASH);
	__uint(max_entries, 16384);
	__type(key, u64); // thread, or struct io_kiocb *
	__type(value, struct call);
} calling SEC(".maps");

struct calls {
	s64 calls;
	s64 errors;
	s64 bytes;
	s64 ns;
	s64 lost; // begun, but there was no capacity to follow it, or no program saw its end
	u64 time[BUCKETS];
	u64 size[BUCKETS];
	u64 size_bytes[BUCKETS];
};

struct {
	__uint(type, MAP_PERCPU_ARRAY);
	__uint(max_entries, 2 * CALL_KINDS); // window * CALL_KINDS + kind
	__type(key, u32);
	__type(value, struct calls);
} call_counts SEC(".maps");

// recent is when an open file was last written and its pages last dropped.
struct recent {
	u64 written;
	u64 dropped;
};

struct {
	__uint(type, MAP_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64); // struct file *
	__type(value, struct recent);
} recents SEC(".maps");

INLINE struct calls *calls_of(u32 kind)
{
	u32 key = window() * CALL_KINDS + kind;
	return kind < CALL_KINDS ? bpf_map_lookup_elem(&call_counts, &key) : 0;
}

SHARED void observe_time(struct calls *c, u64 ns)
{
	c->calls++;
	c->ns += ns;
	observe(c->time, BUCKETS, ns >> TIME_SHIFT);
}

INLINE void gap_since(u64 then, u64 now, u32 kind)
{
	struct calls *c = calls_of(kind);
	if (c && then && then < now)
		observe_time(c, now - then);
}

// wanted_file says whether a file belongs to the filesystem, or without one whether it is a plain file or a block device.
#define wanted_file(file, get) ({ \
	struct inode *inode_ = get(file, f_inode); \
	int wanted_ = 0; \
	if (inode_ && file_device) { \
		struct super_block *sb_ = get(inode_, i_sb); \
		wanted_ = sb_ && get(sb_, s_dev) == file_device; \
	} else if (inode_) { \
		u32 type_ = get(inode_, i_mode) & 0xf000; \
		wanted_ = type_ == 0x8000 || type_ == 0x6000; \
	} \
	wanted_; \
})

// argument is the nth of a system call, 0 to 3, in the registers at its entry.
INLINE u64 argument(struct pt_regs *regs, int n)
{
	if (field_exists(((struct pt_regs___x86 *)regs)->di)) {
		struct pt_regs___x86 *x = (struct pt_regs___x86 *)regs;
		return n == 0 ? PROBE(x, di) : n == 1 ? PROBE(x, si) : n == 2 ? PROBE(x, dx) : PROBE(x, r10);
	}
	struct pt_regs___arm64 *a = (struct pt_regs___arm64 *)regs;
	return n == 0 ? PROBE(a, regs[0]) : n == 1 ? PROBE(a, regs[1]) : n == 2 ? PROBE(a, regs[2]) : PROBE(a, regs[3]);
}

// file_of is the open file behind a descriptor of the current process.
SHARED u64 file_of(u32 fd)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct files_struct *files = PROBE(task, files);
	struct fdtable *table = PROBE(files, fdt);
	if (!files || !table || fd >= PROBE(table, max_fds))
		return 0;
	struct file **slots = PROBE(table, fd), *file = 0;
	bpf_probe_read_kernel(&file, sizeof(file), slots + fd);
	return (u64)file;
}

INLINE void call_lost(u32 kind)
{
	struct calls *c = calls_of(kind);
	if (c)
		c->lost++;
}

// after_last counts the time since what a read or a flush is about.
SHARED void after_last(u64 file, u32 kind, u64 start)
{
	if (kind != CALL_READ && kind != CALL_FSYNC)
		return;
	struct recent *r = bpf_map_lookup_elem(&recents, &file);
	if (r && kind == CALL_READ) {
		gap_since(r->dropped, start, FADVISE_TO_READ);
		r->dropped = 0;
	} else if (r) {
		gap_since(r->written, start, WRITE_TO_FSYNC);
		r->written = 0;
	}
}

// follow is called for watched processes and wanted files only. Calls do not nest: one of this thread that is still there
// has lost its end.
SHARED void follow(u64 key, u64 file, u32 kind)
{
	struct call *before = bpf_map_lookup_elem(&calling, &key);
	if (before)
		call_lost(before->kind);
	struct call c = { .start = bpf_ktime_get_ns(), .file = file, .kind = kind };
	if (file)
		after_last(file, kind, c.start);
	if (bpf_map_update_elem(&calling, &key, &c, 0))
		call_lost(kind);
}

INLINE void call_begins(u64 file, u32 kind) { follow(bpf_get_current_pid_tgid(), file, kind); }

// call_ends counts a call with its result: a number of bytes, or below zero an error. Its place is the caller's to free.
SHARED void call_ends(struct call *c, s64 result)
{
	u64 now = bpf_ktime_get_ns();
	u32 kind = c->kind;
	if (kind == CALL_WRITE || kind == CALL_FADVISE) {
		u64 file = c->file;
		struct recent *r = bpf_map_lookup_elem(&recents, &file), fresh = {};
		if (!r) {
			r = &fresh;
		}
		if (kind == CALL_WRITE)
			r->written = now;
		else
			r->dropped = now;
		if (r == &fresh)
			bpf_map_update_elem(&recents, &file, &fresh, 0);
	}
	struct calls *n = calls_of(kind);
	if (n && result < 0) {
		n->errors++;
	} else if (n) {
		observe_time(n, now - c->start);
		if (kind <= CALL_WRITE && result > 0) {
			u32 i = bounded(bucket_of((u64)result >> SIZE_SHIFT, BUCKETS), BUCKETS);
			n->bytes += result;
			n->size[i]++;
			n->size_bytes[i] += result;
		}
	}
}
