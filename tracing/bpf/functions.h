// Calls on files as functions of the kernel, by fentry and fexit (since Linux 5.5, on arm64 later). Reading and writing: read
// and pread go through vfs_read, readv, preadv and preadv2 through vfs_readv, writes through vfs_write and vfs_writev; each
// call goes through one of them once. Flushing is traced in the system calls' own functions, because vfs_fsync_range is partly
// inlined (on Linux 6.1 fdatasync does not call it), and writes with O_SYNC and overlay end in it too. Dropping pages is traced
// in generic_fadvise: vfs_fadvise is inlined into the system call, whose own function has two types in BTF (6.1), so that no
// program can be attached to it.
#pragma once
#include "syscalls.h"

SHARED void function_ends(u32 kind, s64 result)
{
	if (!is_watched())
		return;
	u64 thread = bpf_get_current_pid_tgid();
	struct call *c = bpf_map_lookup_elem(&calling, &thread);
	if (c && c->kind == kind)
		thread_ends(c, thread, result);
}

#if defined(__TARGET_ARCH_x86)
#define SYSCALL(name) __x64_sys_##name
#elif defined(__TARGET_ARCH_arm64)
#define SYSCALL(name) __arm64_sys_##name
#endif

#define TEXT(x) #x
#define NAMED(x) TEXT(x)

// FUNCTION is one whose first argument is the open file, with the number of its arguments, after which fexit has the result.
// When says which calls of it are meant.
#define FUNCTION(name, kind, arguments, when) \
	SEC("fentry/" #name) \
	int fexit_in_##name(u64 *ctx) \
	{ \
		struct file *file = (struct file *)ctx[0]; \
		if (is_watched() && (when) && wanted_file(file, DIRECT)) \
			call_begins((u64)file, kind); \
		return 0; \
	} \
	SEC("fexit/" #name) \
	int fexit_out_##name(u64 *ctx) \
	{ \
		function_ends(kind, ctx[arguments]); \
		return 0; \
	}

// WHOLE is a system call's own function: its one argument are the registers with the system call's.
#define WHOLE(name, kind, function) \
	SEC("fentry/" NAMED(function)) \
	int fexit_in_##name(u64 *ctx) \
	{ \
		if (is_watched()) \
			syscall_begins((struct pt_regs *)ctx[0], kind); \
		return 0; \
	} \
	SEC("fexit/" NAMED(function)) \
	int fexit_out_##name(u64 *ctx) \
	{ \
		function_ends(kind, ctx[1]); \
		return 0; \
	}

FUNCTION(vfs_read, CALL_READ, 4, 1)
FUNCTION(vfs_write, CALL_WRITE, 4, 1)
FUNCTION(vfs_readv, CALL_READ, 5, 1)
FUNCTION(vfs_writev, CALL_WRITE, 5, 1)
WHOLE(fsync, CALL_FSYNC, SYSCALL(fsync))
WHOLE(fdatasync, CALL_FSYNC, SYSCALL(fdatasync))
FUNCTION(generic_fadvise, CALL_FADVISE, 4, (u32)ctx[3] == ADVICE_DONTNEED)
