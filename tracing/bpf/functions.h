// Calls on files as functions of the kernel, which every system call for reading, writing and flushing goes through once:
// read and pread through vfs_read, readv, preadv and preadv2 through vfs_readv, writes likewise. fsync, fdatasync and
// io_uring's fsync are vfs_fsync_range, in which a write with O_SYNC ends as well (call_begins leaves that out). io_uring and
// libaio read and write through the filesystem's own functions and are not seen.
//
// A function is met by fentry and fexit (since Linux 5.5, on arm64 later), or by kprobe and kretprobe. The kernel has a
// limited number of kretprobes for calls in progress: one that finds none left does not run, and its call is lost.
#pragma once
#include "file.h"

INLINE void function_left(u64 file, u32 kind, s64 result)
{
	if (!is_watched())
		return;
	u64 thread = bpf_get_current_pid_tgid();
	struct call *c = bpf_map_lookup_elem(&calling, &thread);
	if (c && c->kind == kind && (!file || c->file == file))
		ended(c, result);
}

#define FENTRY(function, kind, arguments, condition) \
	SEC("fentry/" #function) \
	int fexit_in_##function(u64 *ctx) \
	{ \
		struct file *file = (struct file *)ctx[0]; \
		if (is_watched() && (condition) && wanted_file(file, DIRECT)) \
			call_begins((u64)file, kind, 1); \
		return 0; \
	} \
	SEC("fexit/" #function) \
	int fexit_out_##function(u64 *ctx) \
	{ \
		function_left(ctx[0], kind, RESULT(ctx[arguments])); \
		return 0; \
	}

// Registers as the kernel shows them to these programs on any version, by their place.
#if defined(__TARGET_ARCH_x86)
#define FIRST 14 // di
#define FOURTH 11 // cx
#define RETURNED 10 // ax
#elif defined(__TARGET_ARCH_arm64)
#define FIRST 0
#define FOURTH 3
#define RETURNED 0
#endif

#define KPROBE(function, kind, condition) \
	SEC("kprobe/" #function) \
	int kprobe_in_##function(u64 *ctx) \
	{ \
		struct file *file = (struct file *)ctx[FIRST]; \
		if (is_watched() && (condition) && wanted_file(file, PROBE)) \
			call_begins((u64)file, kind, 1); \
		return 0; \
	} \
	SEC("kretprobe/" #function) \
	int kprobe_out_##function(u64 *ctx) \
	{ \
		function_left(0, kind, RESULT(ctx[RETURNED])); \
		return 0; \
	}

#define RESULT(r) ((s64)(r))
FENTRY(vfs_read, CALL_READ, 4, 1)
FENTRY(vfs_write, CALL_WRITE, 4, 1)
FENTRY(vfs_readv, CALL_READ, 5, 1)
FENTRY(vfs_writev, CALL_WRITE, 5, 1)
KPROBE(vfs_read, CALL_READ, 1)
KPROBE(vfs_write, CALL_WRITE, 1)
KPROBE(vfs_readv, CALL_READ, 1)
KPROBE(vfs_writev, CALL_WRITE, 1)
#undef RESULT

// These return an int: the upper half of the register is not theirs.
#define RESULT(r) ((s64)(s32)(r))
FENTRY(vfs_fsync_range, CALL_FSYNC, 4, 1)
FENTRY(vfs_fadvise, CALL_FADVISE, 4, (s32)ctx[3] == ADVICE_DONTNEED)
KPROBE(vfs_fsync_range, CALL_FSYNC, 1)
KPROBE(vfs_fadvise, CALL_FADVISE, (s32)ctx[FOURTH] == ADVICE_DONTNEED)
#undef RESULT
