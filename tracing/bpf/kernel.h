// Own declarations of what the programs use: no vmlinux.h, no libbpf headers. Helpers are pointers made of their numbers
// in include/uapi/linux/bpf.h. Structures hold only the members that are read; preserve_access_index makes the loader
// put in the offsets of the running kernel (CO-RE), so order and padding here mean nothing.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, val) int (*name)[val]
#define __type(name, val) typeof(val) *name
#define INLINE static inline __attribute__((always_inline))
// Functions that all variants share are called, not inlined: the object would be three times the size.
#define SHARED static __attribute__((noinline))
#define CO_RE __attribute__((preserve_access_index))

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PERCPU_ARRAY = 6, MAP_CGROUP_ARRAY = 8, MAP_LRU_HASH = 9 };

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*bpf_get_current_comm)(void *buf, u32 size) = (void *)16;
static u64 (*bpf_get_current_task)(void) = (void *)35;
static long (*bpf_current_task_under_cgroup)(void *map, u32 index) = (void *)37;
// Since Linux 5.8, as are iterators, the only programs that use it.
static long (*bpf_seq_write)(void *seq, const void *data, u32 size) = (void *)127;
// Since Linux 5.5; the loader writes bpf_probe_read for older ones.
static long (*bpf_probe_read_user)(void *dst, u32 size, const void *src) = (void *)112;
static long (*bpf_probe_read_kernel)(void *dst, u32 size, const void *src) = (void *)113;

// Is the member there in the running kernel? The branch that is not taken is removed before the verifier sees it.
#define field_exists(field) __builtin_preserve_field_info(field, 2)

// PROBE reads a member through any pointer. Programs that know the pointer's BTF type (tp_btf) read it directly, which
// costs no call.
#define PROBE(p, f) ({ \
	typeof((p)->f) v_ = 0; \
	bpf_probe_read_kernel(&v_, sizeof(v_), __builtin_preserve_access_index(&(p)->f)); \
	v_; \
})
#define DIRECT(p, f) ((p)->f)

struct gendisk {
	s32 major;
	s32 first_minor;
	char disk_name[32];
} CO_RE;

struct request_queue {
	struct gendisk *disk; // since Linux 5.15
} CO_RE;

struct bio_vec {
	struct page *bv_page;
} CO_RE;

struct bio {
	struct bio_vec *bi_io_vec;
} CO_RE;

enum mq_rq_state { // of an enum the loader finds only enums in the kernel
	MQ_RQ_IDLE, // not dispatched, or freed
};

struct request {
	struct request_queue *q;
	struct bio *bio;
	u32 cmd_flags;
	u32 __data_len;
	u64 __sector;
	u64 start_time_ns;
	enum mq_rq_state state;
} CO_RE;

// Before Linux 5.17.
struct request___old {
	struct gendisk *rq_disk;
} CO_RE;

// A page of the page cache knows its file. Since Linux 5.16 a folio does, which lies where its first page does.
struct page {
	unsigned long compound_head; // of a later page of several: the first one, and bit 0
	struct address_space *mapping;
} CO_RE;

struct folio {
	struct address_space *mapping; // bits 0 and 1 say that the memory is no file's
} CO_RE;

struct address_space {
	struct inode *host;
} CO_RE;

typedef struct {
	s32 counter;
} CO_RE atomic_t;

struct signal_struct {
	atomic_t live; // threads that have not ended
} CO_RE;

struct upid {
	s32 nr;
	struct pid_namespace *ns;
} CO_RE;

// A process has an id in its own namespace and in each above it; that of the first, level 0, is the kernel's own.
struct pid {
	u32 level;
	struct upid numbers[1];
} CO_RE;

struct task_struct {
	u32 flags;
	s32 pid;
	s32 tgid;
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct files_struct *files;
} CO_RE;

#define KERNEL_THREAD 0x00200000 // PF_KTHREAD of flags

struct files_struct {
	struct fdtable *fdt;
} CO_RE;

struct fdtable {
	u32 max_fds;
	struct file **fd;
} CO_RE;

struct file {
	struct inode *f_inode;
} CO_RE;

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
	u16 i_mode;
} CO_RE;

struct super_block {
	u32 s_dev;
} CO_RE;

// Arguments of a system call, as the two architectures hand them over.
struct pt_regs {
	u64 unused;
} CO_RE;

struct pt_regs___x86 {
	unsigned long di;
	unsigned long si;
	unsigned long dx;
	unsigned long r10;
} CO_RE;

struct pt_regs___arm64 {
	u64 regs[31];
} CO_RE;

// Atomic additions whose result is not used: those exist in every kernel, fetching ones only since Linux 5.12.
#define atomic_add(p, v) ((void)__sync_fetch_and_add(p, v))
