/* SPDX-License-Identifier: Apache-2.0
 *
 * What the 32 threads of a warp do together, of CUDA alone: all of a group call these at the same time.
 * Matrices are of f16 or bf16, two elements in a word, sums f32. Of a matrix of 8 x 8 a thread has, in row
 * lane / 4, the two columns from 2 (lane % 4) on. */
#pragma once

#define LANE (THREAD % 32)

#ifdef __CUDACC__
/* Four matrices of 8 x 8, whose rows are at the addresses that threads give: thread 8 m + i row i of matrix
 * m. The second one turns each around. @{ */
DEVICE void load_matrices(LOCAL const ushort *row, uint to[4])
{
	const uint at = (uint)__cvta_generic_to_shared(row);
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
		     : "r"(at));
}

DEVICE void load_turned(LOCAL const ushort *row, uint to[4])
{
	const uint at = (uint)__cvta_generic_to_shared(row);
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
		     : "r"(at));
}
/* @} */

/* sums [16, 8] += a [16, 16] · b [8, 16]ᵀ. a: its upper left, lower left, upper right and lower right matrix;
 * b: the left and the right one; sums: the upper and the lower one. */
DEVICE void multiply_matrices(enum smalti_dtype dtype, float sums[4], const uint a[4], const uint b[2])
{
	if (dtype == SMALTI_BF16)
		asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
			     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
			     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
			     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
	else
		asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
			     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
			     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
			     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Two elements in a word, the first one in its lower half. */
DEVICE uint two_of(enum smalti_dtype dtype, float first, float second)
{
	uint word;
	if (dtype == SMALTI_BF16)
		asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
	else
		asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
	return word;
}

/* The value of the thread whose lane differs by `mask`. */
template <typename T> DEVICE T of_other_lane(T value, int mask)
{
	return __shfl_xor_sync(0xffffffffu, value, mask);
}
#else
#include "cuda/warp.h" /* what stands in for a GPU */
#endif
