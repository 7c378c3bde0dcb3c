// Which processes are watched: one by its id, a set that grows by fork and, by name, by exec, or those of a cgroup. The ids
// are the kernel's own, which inside of a PID namespace are not those that processes see of each other.
#pragma once
#include "kernel.h"

enum { WATCH_NONE = 0, WATCH_ONE = 1, WATCH_SET = 2, WATCH_CGROUP = 3 };

const volatile u32 watch = WATCH_NONE;
const volatile u32 watched_tgid = 0;
const volatile char watched_comm[16] = {}; // empty: children only

struct {
	__uint(type, MAP_HASH);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u8);
} watched SEC(".maps");

struct {
	__uint(type, MAP_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} watched_cgroup SEC(".maps");

// How many processes the programs put into the set, and how many did not fit.
struct {
	u64 joined;
	u64 full;
} family = {};

SHARED int is_watched(void)
{
	if (watch == WATCH_NONE)
		return 0;
	if (watch == WATCH_CGROUP)
		return bpf_current_task_under_cgroup(&watched_cgroup, 0) == 1;
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	if (watch == WATCH_ONE)
		return tgid == watched_tgid;
	return bpf_map_lookup_elem(&watched, &tgid) != 0;
}

INLINE void add_watched(u32 tgid)
{
	u8 yes = 1;
	if (bpf_map_lookup_elem(&watched, &tgid))
		return;
	if (bpf_map_update_elem(&watched, &tgid, &yes, 0))
		atomic_add(&family.full, 1);
	else
		atomic_add(&family.joined, 1);
}

INLINE void forked(u32 child)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	if (child != tgid && bpf_map_lookup_elem(&watched, &tgid))
		add_watched(child);
}

SHARED void executed(void)
{
	if (!watched_comm[0])
		return;
	char comm[16] = {};
	bpf_get_current_comm(comm, sizeof(comm));
#pragma unroll
	for (int i = 0; i < 16; i++)
		if (comm[i] != watched_comm[i])
			return;
	add_watched(bpf_get_current_pid_tgid() >> 32);
}

// exited forgets a process, whose id another may get. Its files are remembered (owner.h): they are written back later.
INLINE void exited(u32 tgid) { bpf_map_delete_elem(&watched, &tgid); }

// is_kernel says whether a thread of the kernel runs: write-back, a journal, a queue's worker.
INLINE int is_kernel(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	return (PROBE(task, flags) & KERNEL_THREAD) != 0;
}
