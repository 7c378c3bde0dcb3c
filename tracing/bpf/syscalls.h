// Calls on files as system calls. The programs run at every system call of the machine, so what does not concern them must
// leave early. Calls that no system call makes directly (io_uring: uring.h; libaio) are not seen.
#pragma once
#include "file.h"

#define SYSCALLS 512

const volatile u8 call_kind[SYSCALLS] = {}; // kind + 1 by number, which differs between architectures; 0 = ignored

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

// syscall_begins is the beginning of a system call of a watched process.
SHARED void syscall_begins(struct pt_regs *regs, u32 kind)
{
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

SHARED void on_syscall_exit(s64 result)
{
	if (watch == WATCH_ONE && !is_watched())
		return;
	u64 thread = bpf_get_current_pid_tgid();
	struct call *c = bpf_map_lookup_elem(&calling, &thread);
	if (c)
		call_ends(c, thread, result);
}
