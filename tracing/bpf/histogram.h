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

// Places of the highest bit, by the product of the bit with a sequence of de Bruijn (Leiserson, Prokop and Randall, 1998).
// Comparisons would be 64 ways through the program, each of which the verifier walks for every value that is observed.
static const u8 highest[64] = {
	63, 0, 58, 1, 59, 47, 53, 2, 60, 39, 48, 27, 54, 33, 42, 3,
	61, 51, 37, 40, 49, 18, 28, 20, 55, 30, 34, 11, 43, 14, 22, 4,
	62, 57, 46, 52, 38, 26, 32, 41, 50, 36, 17, 19, 29, 10, 13, 21,
	56, 45, 25, 31, 35, 16, 9, 12, 44, 24, 15, 8, 23, 7, 6, 5,
};

INLINE u32 log2_of(u64 v)
{
	v |= v >> 1;
	v |= v >> 2;
	v |= v >> 4;
	v |= v >> 8;
	v |= v >> 16;
	v |= v >> 32;
	u64 i = ((v ^ v >> 1) * 0x07edd5e59a4e28c2ULL) >> 58;
	asm volatile("" : "+r"(i));
	return highest[i & 63];
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
