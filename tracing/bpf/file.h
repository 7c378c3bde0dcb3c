// File layer: system calls of the watched processes on files of one filesystem. The programs run at every system call of
// the machine, so what does not concern them must leave early.
#pragma once
#include "histogram.h"
#include "process.h"

enum { CALL_READ = 0, CALL_WRITE, CALL_FSYNC, WRITE_TO_FSYNC, FADVISE_TO_READ, CALL_KINDS };
enum { CALL_FADVISE = CALL_KINDS }; // followed, but not counted itself

#define SYSCALLS 512
#define ADVICE_DONTNEED 4

const volatile u8 call_kind[SYSCALLS] = {}; // kind + 1 by number, which differs between architectures; 0 = ignored
const volatile u32 file_device = 0;         // the filesystem's s_dev: major << 20 | minor; 0 = any file

struct call {
	u64 start;
	u32 fd;
	u32 kind;
};

struct {
	__uint(type, MAP_HASH);
	__uint(max_entries, 16384);
	__type(key, u64); // thread
	__type(value, struct call);
} calling SEC(".maps");

struct calls {
	u64 calls;
	u64 errors;
	u64 bytes;
	u64 ns;
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

// recent is when a descriptor was last written and its pages last dropped.
struct recent {
	u64 written;
	u64 dropped;
};

struct {
	__uint(type, MAP_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64); // process << 32 | descriptor
	__type(value, struct recent);
} recents SEC(".maps");

INLINE struct calls *calls_of(u32 kind)
{
	u32 key = window() * CALL_KINDS + kind;
	return bpf_map_lookup_elem(&call_counts, &key);
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

// argument is the nth of a system call in the registers at its entry.
INLINE u64 argument(struct pt_regs *regs, int n)
{
	if (field_exists(((struct pt_regs___x86 *)regs)->di)) {
		struct pt_regs___x86 *x = (struct pt_regs___x86 *)regs;
		return n == 0 ? PROBE(x, di) : PROBE(x, r10);
	}
	struct pt_regs___arm64 *a = (struct pt_regs___arm64 *)regs;
	return n == 0 ? PROBE(a, regs[0]) : PROBE(a, regs[3]);
}

// concerns says whether a descriptor is a file of the filesystem, or without one any file or block device.
SHARED int concerns(u32 fd)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct files_struct *files = PROBE(task, files);
	struct fdtable *table = PROBE(files, fdt);
	if (!files || !table || fd >= PROBE(table, max_fds))
		return 0;
	struct file **slots = PROBE(table, fd), *file = 0;
	bpf_probe_read_kernel(&file, sizeof(file), slots + fd);
	struct inode *inode = PROBE(file, f_inode);
	if (!file || !inode)
		return 0;
	if (file_device) {
		struct super_block *sb = PROBE(inode, i_sb);
		return PROBE(sb, s_dev) == file_device;
	}
	u32 type = PROBE(inode, i_mode) & 0xf000;
	return type == 0x8000 || type == 0x6000;
}

INLINE void entered(struct pt_regs *regs, u64 id)
{
	if (id >= SYSCALLS)
		return;
	u32 kind = call_kind[id & (SYSCALLS - 1)];
	if (!kind-- || !is_watched())
		return;
	u64 thread = bpf_get_current_pid_tgid();
	struct call c = { .fd = argument(regs, 0), .kind = kind };
	if (!concerns(c.fd) || (kind == CALL_FADVISE && argument(regs, 3) != ADVICE_DONTNEED))
		return;
	c.start = bpf_ktime_get_ns();
	if (kind == CALL_READ || kind == CALL_FSYNC) {
		u64 file = (thread & ~0xffffffffULL) | c.fd;
		struct recent *r = bpf_map_lookup_elem(&recents, &file);
		if (r && kind == CALL_READ) {
			gap_since(r->dropped, c.start, FADVISE_TO_READ);
			r->dropped = 0;
		} else if (r) {
			gap_since(r->written, c.start, WRITE_TO_FSYNC);
			r->written = 0;
		}
	}
	bpf_map_update_elem(&calling, &thread, &c, 0);
}

SHARED void left(s64 result)
{
	if (watch == WATCH_ONE && !is_watched())
		return;
	u64 thread = bpf_get_current_pid_tgid();
	struct call *c = bpf_map_lookup_elem(&calling, &thread);
	if (!c)
		return;
	u64 now = bpf_ktime_get_ns();
	u32 kind = c->kind;
	if (kind == CALL_WRITE || kind == CALL_FADVISE) {
		u64 file = (thread & ~0xffffffffULL) | c->fd;
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
	struct calls *n = kind < CALL_KINDS ? calls_of(kind) : 0;
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
	bpf_map_delete_elem(&calling, &thread);
}
