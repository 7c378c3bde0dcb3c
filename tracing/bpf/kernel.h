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

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PERCPU_ARRAY = 6, MAP_LRU_HASH = 9 };

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*bpf_get_current_comm)(void *buf, u32 size) = (void *)16;
static u64 (*bpf_get_current_task)(void) = (void *)35;
// Since Linux 5.5; the loader writes bpf_probe_read for older ones.
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

struct request {
	struct request_queue *q;
	u32 cmd_flags;
	u32 __data_len;
	u64 __sector;
	u64 start_time_ns;
} CO_RE;

// Before Linux 5.17.
struct request___old {
	struct gendisk *rq_disk;
} CO_RE;

struct task_struct {
	s32 tgid;
	struct files_struct *files;
} CO_RE;

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
