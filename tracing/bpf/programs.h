// The programs, written once for both ways of attaching: included with PROGRAM, NAME and GET defined.

INLINE int NAME(wanted)(struct request *rq)
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

PROGRAM(block_io_start)
int NAME(io_start)(u64 *ctx)
{
	struct request *rq = (struct request *)ctx[0];
	if (!NAME(wanted)(rq))
		return 0;
	struct entry e = {
		.start = bpf_ktime_get_ns(),
		.op = GET(rq, cmd_flags) & 0xff,
		.own = is_watched(),
	};
	begin((u64)rq, &e);
	return 0;
}

// Kernels before 6.5 have no block_io_start: the queue is entered here, if there is a scheduler.
PROGRAM(block_rq_insert)
int NAME(insert)(u64 *ctx)
{
	struct request *rq = (struct request *)queue_argument(ctx);
	if (!NAME(wanted)(rq))
		return 0;
	struct entry e = {
		.start = bpf_ktime_get_ns(),
		.op = GET(rq, cmd_flags) & 0xff,
		.own = is_watched(),
	};
	begin((u64)rq, &e);
	return 0;
}

PROGRAM(block_rq_issue)
int NAME(issue)(u64 *ctx)
{
	struct request *rq = (struct request *)queue_argument(ctx);
	u64 key = (u64)rq;
	u64 now = bpf_ktime_get_ns();
	struct entry *e = bpf_map_lookup_elem(&live, &key);
	if (!e || e->issue) {
		if (!e && !NAME(wanted)(rq))
			return 0;
		// Not seen before: a flush request, one queued before the programs were attached, or a kernel without
		// block_io_start, whose time of allocation (what /sys/block/*/stat reckons from) serves instead.
		struct entry fresh = {
			.op = GET(rq, cmd_flags) & 0xff,
			.own = have_start ? 0 : is_watched(),
		};
		if (!have_start)
			fresh.start = GET(rq, start_time_ns);
		begin(key, &fresh);
		e = bpf_map_lookup_elem(&live, &key);
		if (!e)
			return 0;
	}
	e->op = GET(rq, cmd_flags) & 0xff;
	e->bytes = GET(rq, __data_len);
	e->sector = GET(rq, __sector);
	issued(e, now);
	return 0;
}

PROGRAM(block_rq_requeue)
int NAME(requeue)(u64 *ctx)
{
	u64 key = queue_argument(ctx);
	struct entry *e = bpf_map_lookup_elem(&live, &key);
	if (e)
		requeued(e);
	return 0;
}

PROGRAM(block_rq_merge)
int NAME(merge)(u64 *ctx)
{
	merged(queue_argument(ctx));
	return 0;
}

// The second argument was an errno and became a blk_status_t of one byte (between Linux 5.16 and 5.18); neither has a low
// byte of zero for an error.
PROGRAM(block_rq_complete)
int NAME(complete)(u64 *ctx)
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
	// block_io_start it cannot be told from an fsync.
	if ((bytes || !have_start) && devices && NAME(wanted)(rq))
		completed_unissued(0, bpf_ktime_get_ns(), GET(rq, cmd_flags) & 0xff, bytes);
	return 0;
}

PROGRAM(sched_process_fork)
int NAME(fork)(u64 *ctx)
{
	struct task_struct *child = (struct task_struct *)ctx[1];
	forked(GET(child, tgid));
	return 0;
}

PROGRAM(sched_process_exec)
int NAME(exec)(u64 *ctx)
{
	executed();
	return 0;
}

PROGRAM(sys_enter)
int NAME(sys_enter)(u64 *ctx)
{
	entered((struct pt_regs *)ctx[0], ctx[1]);
	return 0;
}

PROGRAM(sys_exit)
int NAME(sys_exit)(u64 *ctx)
{
	left(ctx[1]);
	return 0;
}
