// Whose a request is. Who queues it, for reads and for direct I/O; what the page cache writes back later is queued by the
// kernel for no process, and counts for the process that has last made pages of that file dirty.
#pragma once
#include "process.h"

const volatile u32 follow_dirty = 0; // writes that the kernel queues are attributed by their file
const volatile u32 by_owner = 0;     // requests are counted for each process

// dirtied is who has last written to a file in the page cache.
struct dirtied {
	u64 number; // of the inode: its address is reused
	u32 tgid;
	u32 watched;
};

struct {
	__uint(type, MAP_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64); // struct inode *
	__type(value, struct dirtied);
} dirty SEC(".maps");

// owner is the requests of one process.
struct owner {
	u8 comm[16];
	s64 requests[2]; // reads, writes
	s64 bytes[2];
	s64 back_requests; // of the writes: written back by the kernel
	s64 back_bytes;
};

struct {
	__uint(type, MAP_HASH);
	__uint(max_entries, 16384);
	__type(key, u32); // process, 0 = the kernel
	__type(value, struct owner);
} owners SEC(".maps");

// known makes sure that the running process has an entry, with the name that it has now: between fork and exec it is
// another's. Without capacity the request counts as the kernel's, whose entry is always there.
SHARED u32 known(u32 tgid)
{
	struct owner *o = bpf_map_lookup_elem(&owners, &tgid);
	if (o) {
		if (tgid)
			bpf_get_current_comm(o->comm, sizeof(o->comm));
		return tgid;
	}
	struct owner fresh = {};
	bpf_get_current_comm(fresh.comm, sizeof(fresh.comm));
	return bpf_map_update_elem(&owners, &tgid, &fresh, 0) ? 0 : tgid;
}

// made_dirty is called in the name of the process that writes, once for each clean piece of the page cache.
SHARED void made_dirty(struct address_space *mapping)
{
	struct inode *inode = PROBE(mapping, host);
	if (!inode || is_kernel())
		return;
	u64 key = (u64)inode;
	struct dirtied now = {
		.number = PROBE(inode, i_ino),
		.tgid = bpf_get_current_pid_tgid() >> 32,
		.watched = is_watched(),
	};
	struct dirtied *before = bpf_map_lookup_elem(&dirty, &key);
	if (before && before->number == now.number && before->tgid == now.tgid)
		return;
	if (!before && !now.watched && !by_owner)
		return;
	if (by_owner)
		now.tgid = known(now.tgid);
	bpf_map_update_elem(&dirty, &key, &now, 0);
}

// who_wrote finds who made dirty what a request writes; 0 where its memory is no file's.
SHARED struct dirtied *who_wrote(struct request *rq)
{
	struct bio *bio = PROBE(rq, bio);
	struct bio_vec *vec = bio ? PROBE(bio, bi_io_vec) : 0;
	struct page *page = vec ? PROBE(vec, bv_page) : 0;
	if (!page)
		return 0;
	if (field_exists(page->compound_head)) {
		unsigned long head = PROBE(page, compound_head);
		if (head & 1)
			page = (struct page *)(head - 1);
	}
	u64 mapping = 0;
	if (field_exists(((struct folio *)page)->mapping))
		mapping = (u64)PROBE((struct folio *)page, mapping);
	else if (field_exists(page->mapping))
		mapping = (u64)PROBE(page, mapping);
	if (!mapping || (mapping & 3))
		return 0;
	struct inode *inode = PROBE((struct address_space *)mapping, host);
	if (!inode)
		return 0;
	u64 key = (u64)inode;
	struct dirtied *d = bpf_map_lookup_elem(&dirty, &key);
	return d && d->number == PROBE(inode, i_ino) ? d : 0;
}
