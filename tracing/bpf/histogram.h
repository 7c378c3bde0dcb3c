// Log-linear histograms: 16 buckets per power of two, so that a bucket is at most 1/16 wide and its middle at most 3 % off.
// The index is masked rather than compared: that verifies on every kernel.
#pragma once
#include "kernel.h"

#define SUB_BITS 4
#define SUB (1 << SUB_BITS)

#define BUCKETS 512       // values below 2^35 units; larger ones count in the last bucket
#define DEPTH_BUCKETS 256 // depths below 2^19
#define LBA_BUCKETS 1024

#define TIME_SHIFT 4 // times are counted in units of 16 ns: up to 550 s
#define SIZE_SHIFT 9 // sizes in sectors of 512 bytes

INLINE u32 log2_of(u64 v)
{
	u32 e = 0;
	if (v >= 1ULL << 32) { v >>= 32; e += 32; }
	if (v >= 1ULL << 16) { v >>= 16; e += 16; }
	if (v >= 1ULL << 8) { v >>= 8; e += 8; }
	if (v >= 1ULL << 4) { v >>= 4; e += 4; }
	if (v >= 1ULL << 2) { v >>= 2; e += 2; }
	if (v >= 1ULL << 1) { e += 1; }
	return e;
}

// bucket_of is mirrored in Go (tracing.bucketOf); a test compares the two.
SHARED u32 bucket_of(u64 v, u32 buckets)
{
	if (v < SUB)
		return v;
	u32 e = log2_of(v);
	u32 i = ((e - SUB_BITS + 1) << SUB_BITS) + ((v >> (e - SUB_BITS)) & (SUB - 1));
	return i < buckets ? i : buckets - 1;
}

// bounded masks an index where the compiler cannot conclude that it need not be: the verifier cannot.
INLINE u32 bounded(u32 i, u32 buckets)
{
	asm volatile("" : "+r"(i));
	return i & (buckets - 1);
}

#define observe(array, buckets, value) ((array)[bounded(bucket_of(value, buckets), buckets)]++)
