// Calls on files as system calls. The programs run at every system call of the machine, so what does not concern them must
// leave early. What no system call does by itself is traced elsewhere (libaio: aio.h, io_uring: uring.h).
#pragma once
#include "aio.h"

#define SYSCALLS 512

const volatile u8 call_kind[SYSCALLS] = {}; // kind + 1 by number, which differs between architectures; 0 = ignored

// syscall_begins is the beginning of a system call of a watched process.
SHARED void syscall_begins(struct pt_regs *regs, u32 kind)
{
	if (kind > CALL_FADVISE) {
		aio_begins(regs, kind);
		return;
	}
	struct file *file = (struct file *)file_of(argument(regs, 0));
	if (!file || !wanted_file(file, PROBE) || (kind == CALL_FADVISE && argument(regs, 3) != ADVICE_DONTNEED))
		return;
	call_begins((u64)file, kind);
}

INLINE void on_syscall_enter(struct pt_regs *regs, u64 id)
{
	if (id >= SYSCALLS)
		return;
	u32 kind = call_kind[id & (SYSCALLS - 1)];
	if (kind && is_watched())
		syscall_begins(regs, kind - 1);
}

// thread_ends is the end of what a thread has called.
INLINE void thread_ends(struct call *c, u64 thread, s64 result)
{
	if (c->kind > CALL_FADVISE)
		aio_ends(c, result);
	else
		call_ends(c, result);
	bpf_map_delete_elem(&calling, &thread);
}

SHARED void on_syscall_exit(s64 result)
{
	if (watch == WATCH_ONE && !is_watched())
		return;
	u64 thread = bpf_get_current_pid_tgid();
	struct call *c = bpf_map_lookup_elem(&calling, &thread);
	if (c)
		thread_ends(c, thread, result);
}
