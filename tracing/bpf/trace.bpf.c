//go:build ignore

// The kernel side of package collector: programs attached to tracepoints through the kernel's type information (tp_btf, since
// Linux 5.5). The loader drops those whose event the running kernel does not have. block.h says what a request's events mean,
// file.h what a call's do; this file is only where they come in.
#include "process.h"
#include "block.h"
#include "syscalls.h"
#include "functions.h"
#include "uring.h"

// A tracepoint's program knows the types of its arguments and reads members directly, at no cost. Tests run the same programs
// without a tracepoint, which then know nothing: they set probed, and the verifier removes the branch that is not taken.
const volatile u32 probed = 0;
#define GET(p, f) (probed ? PROBE(p, f) : DIRECT(p, f))

INLINE int wanted(struct request *rq)
{
	struct gendisk *disk;
	if (devices == 0)
		return 1;
	if (field_exists(((struct request___old *)rq)->rq_disk)) {
		disk = GET((struct request___old *)rq, rq_disk);
	} else {
		struct request_queue *q = GET(rq, q);
		disk = GET(q, disk);
	}
	if (!disk)
		return 0;
	if (by_name)
		return wanted_name(disk);
	return wanted_number((u32)GET(disk, major) << 20 | (u32)GET(disk, first_minor));
}

SEC("tp_btf/block_io_start")
int kv_start(u64 *ctx)
{
	struct request *rq = (struct request *)ctx[0];
	if (!wanted(rq))
		return 0;
	struct entry e = {
		.start = bpf_ktime_get_ns(),
		.op = GET(rq, cmd_flags) & 0xff,
	};
	belongs(rq, &e);
	begin((u64)rq, &e);
	return 0;
}

// Kernels before 6.5 have no block_io_start: the queue is entered here, if there is a scheduler.
SEC("tp_btf/block_rq_insert")
int kv_insert(u64 *ctx)
{
	struct request *rq = (struct request *)queue_argument(ctx);
	if (!wanted(rq))
		return 0;
	struct entry e = {
		.start = bpf_ktime_get_ns(),
		.op = GET(rq, cmd_flags) & 0xff,
	};
	belongs(rq, &e);
	begin((u64)rq, &e);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int kv_issue(u64 *ctx)
{
	struct request *rq = (struct request *)queue_argument(ctx);
	u64 key = (u64)rq;
	u64 now = bpf_ktime_get_ns();
	struct entry *e = bpf_map_lookup_elem(&live, &key);
	if (!e || e->issue) {
		if (!e && !wanted(rq))
			return 0;
		// Not seen before: a flush request, one queued before the programs were attached, or a kernel without
		// block_io_start, whose time of allocation (the start in /sys/block/*/stat) is used instead.
		struct entry fresh = { .op = GET(rq, cmd_flags) & 0xff };
		if (!have_start) {
			fresh.start = GET(rq, start_time_ns);
			belongs(rq, &fresh);
		}
		begin(key, &fresh);
		e = bpf_map_lookup_elem(&live, &key);
		if (!e)
			return 0;
	}
	e->op = GET(rq, cmd_flags) & 0xff;
	e->bytes = GET(rq, __data_len);
	e->sector = GET(rq, __sector);
	issued(key, e, now, (u64)PROBE(rq, q)); // as a number
	return 0;
}

SEC("tp_btf/block_rq_requeue")
int kv_requeue(u64 *ctx)
{
	u64 key = queue_argument(ctx);
	struct entry *e = bpf_map_lookup_elem(&live, &key);
	if (e)
		requeued(e);
	return 0;
}

SEC("tp_btf/block_rq_merge")
int kv_merge(u64 *ctx)
{
	merged(queue_argument(ctx));
	return 0;
}

// The second argument was an errno and became a blk_status_t of one byte (between Linux 5.16 and 5.18); neither has a low
// byte of zero for an error.
SEC("tp_btf/block_rq_complete")
int kv_complete(u64 *ctx)
{
	struct request *rq = (struct request *)ctx[0];
	u64 key = (u64)rq;
	u32 bytes = ctx[2];
	struct entry *e = bpf_map_lookup_elem(&live, &key);
	if (e) {
		completed(key, e, GET(rq, __data_len), bytes, (u8)ctx[1] != 0);
		return 0;
	}
	// The last step of a write with data and a flush comes with zero bytes after its data has completed. Without
	// block_io_start it looks like an fsync.
	if ((bytes || !have_start) && devices && wanted(rq)) {
		struct entry unknown = { .op = GET(rq, cmd_flags) & 0xff };
		completed_unissued(&unknown, bpf_ktime_get_ns(), bytes);
	}
	return 0;
}

SEC("tp_btf/sched_process_fork")
int kv_fork(u64 *ctx)
{
	struct task_struct *child = (struct task_struct *)ctx[1];
	forked(GET(child, tgid));
	return 0;
}

SEC("tp_btf/sched_process_exec")
int kv_exec(u64 *ctx)
{
	executed();
	return 0;
}

// The last thread of a process has been taken off before.
SEC("tp_btf/sched_process_exit")
int kv_exit(u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct signal_struct *signal = GET(task, signal);
	if (signal && PROBE(signal, live.counter) <= 0)
		exited(GET(task, tgid));
	return 0;
}

// Before Linux 5.18 this was writeback_dirty_page, whose second argument is the same.
SEC("tp_btf/writeback_dirty_folio")
int kv_dirty_folio(u64 *ctx)
{
	struct address_space *mapping = (struct address_space *)ctx[1];
	if (mapping)
		made_dirty(mapping);
	return 0;
}

SEC("tp_btf/writeback_dirty_page")
int kv_dirty_page(u64 *ctx)
{
	struct address_space *mapping = (struct address_space *)ctx[1];
	if (mapping)
		made_dirty(mapping);
	return 0;
}

struct bpf_iter_meta {
	void *seq;
} CO_RE;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

// Lists the processes of the reader's PID namespace, each with the kernel's id and the namespace's, which differ in a container.
SEC("iter/task")
int processes(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task, *self = (struct task_struct *)bpf_get_current_task();
	if (!task || PROBE(task, pid) != PROBE(task, tgid))
		return 0;
	struct pid *ours = PROBE(self, thread_pid), *its = PROBE(task, thread_pid);
	if (!ours || !its)
		return 0;
	u32 level = PROBE(ours, level);
	struct upid we = {}, it = {};
	if (PROBE(its, level) < level)
		return 0;
	bpf_probe_read_kernel(&we, sizeof(we), __builtin_preserve_access_index(&ours->numbers[0]) + level);
	bpf_probe_read_kernel(&it, sizeof(it), __builtin_preserve_access_index(&its->numbers[0]) + level);
	if (we.ns != it.ns)
		return 0;
	u32 ids[2] = { PROBE(task, tgid), it.nr };
	bpf_seq_write(ctx->meta->seq, ids, sizeof(ids));
	return 0;
}

SEC("tp_btf/sys_enter")
int kv_sys_enter(u64 *ctx)
{
	on_syscall_enter((struct pt_regs *)ctx[0], ctx[1]);
	return 0;
}

SEC("tp_btf/sys_exit")
int kv_sys_exit(u64 *ctx)
{
	on_syscall_exit(ctx[1]);
	return 0;
}

SEC("tp_btf/io_uring_submit_req")
int kv_uring_submit(u64 *ctx)
{
	struct io_kiocb *req = (struct io_kiocb *)ctx[0];
	if (req)
		uring_submitted(req);
	return 0;
}

SEC("tp_btf/io_uring_complete")
int kv_uring_complete(u64 *ctx)
{
	struct io_kiocb *req = (struct io_kiocb *)ctx[1];
	if (req)
		uring_completed(req);
	return 0;
}

// Runs the bucket function for a test: bucket_of(args[0]) for BUCKETS.
SEC("raw_tp")
int bucket(u64 *ctx) { return bucket_of(ctx[0], BUCKETS); }

// The loader allows helpers that read kernel memory only to programs of this licence.
char LICENSE[] SEC("license") = "GPL";
