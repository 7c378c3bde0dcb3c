// Which processes are watched: one by its id, or a set that grows by fork and, by name, by exec.
#pragma once
#include "kernel.h"

enum { WATCH_NONE = 0, WATCH_ONE = 1, WATCH_SET = 2 };

const volatile u32 watch = WATCH_NONE;
const volatile u32 watched_tgid = 0;
const volatile char watched_comm[16] = {}; // empty: children only

struct {
	__uint(type, MAP_HASH);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u8);
} watched SEC(".maps");

SHARED int is_watched(void)
{
	if (watch == WATCH_NONE)
		return 0;
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	if (watch == WATCH_ONE)
		return tgid == watched_tgid;
	return bpf_map_lookup_elem(&watched, &tgid) != 0;
}

INLINE void add_watched(u32 tgid)
{
	u8 yes = 1;
	bpf_map_update_elem(&watched, &tgid, &yes, 0);
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
