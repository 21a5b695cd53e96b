/* SPDX-License-Identifier: Apache-2.0
 *
 * What GPUs of compute capability 9.0 do for a group of threads, of CUDA alone. Addresses are bytes of local
 * memory. Four warps, a team, multiply together: all of it call these at the same time. A team has a matrix
 * of sums as each of its warps has that of 16 rows: thread `lane` has, of each eight columns, the two from
 * 2 (lane % 4) on, of row lane / 4 and, as the next two, of row lane / 4 + 8. */
#pragma once

enum { TEAM = 128 };

/* How rows of 16-byte pieces are mixed in local memory, so that no two of a column are in one bank: by the
 * bytes of a row. */
enum mixture { MIXED_128 = 1, MIXED_64 = 2, MIXED_32 = 3 };

/* Describes a matrix in local memory, from address `at` on: `step` bytes from eight rows to the next; `leap`
 * from one panel to the next, where the rows are those of a matrix that is turned. */
DEVICE uint64_t matrix_at(uint at, int leap, int step, enum mixture mixture)
{
	return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)(leap >> 4) << 16 | (uint64_t)(step >> 4) << 32 |
	       (uint64_t)mixture << 62;
}

#ifdef __CUDACC__
#include <cuda.h>

#define TENSOR_MAP const __grid_constant__ CUtensorMap

/* The group's local memory, at a multiple of 1024. */
DEVICE uint hopper_memory()
{
	extern __shared__ uchar memory[];
	return ((uint)__cvta_generic_to_shared(memory) + 1023) & ~1023u;
}

/* Returns the number of the thread's team, which the compiler then knows to be one for a warp. */
DEVICE int team_number()
{
	return __shfl_sync(0xffffffff, (int)THREAD / TEAM, 0);
}

/* Teams that load need few registers, and leave them to those that multiply. @{ */
template <int count> DEVICE void take_registers()
{
	asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

template <int count> DEVICE void leave_registers()
{
	asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
/* @} */

/* A barrier in local memory has phases: one ends when `arrivals` have arrived and all bytes that are expected
 * have come. expect_bytes() is an arrival; arrive_if() is none if `arrives` is 0. They have no branches,
 * which the compiler would not have beside products. wait_phase() waits until phase 0, or 1, has ended;
 * before the first one 1 has. @{ */
DEVICE void open_barrier(uint barrier, int arrivals)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/* Has the engine that copies see barriers that were opened before. */
DEVICE void show_barriers()
{
	asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;" ::: "memory");
}

DEVICE void expect_bytes(uint barrier, int bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
		     : "memory");
}

DEVICE void arrive_if(int arrives, uint barrier)
{
	asm volatile(
	    "{ .reg .pred p; setp.ne.b32 p, %1, 0; @p mbarrier.arrive.shared::cta.b64 _, [%0]; }" ::"r"(
		barrier),
	    "r"(arrives)
	    : "memory");
}

DEVICE void wait_phase(uint barrier, int phase)
{
	asm volatile("{ .reg .pred p;\n"
		     "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
		     "@p bra done;\n"
		     "bra again;\n"
		     "done: }" ::"r"(barrier),
		     "r"(phase)
		     : "memory");
}
/* @} */

/* Has the engine that copies read the map before it is used. */
DEVICE void fetch_map(const CUtensorMap *map)
{
	asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* Copies a box of the map from (column, head, token) on; its bytes come to the barrier. */
DEVICE void load_box(uint to, const CUtensorMap *map, int column, int head, int token, uint barrier)
{
	asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
		     "[%1, {%3, %4, %5}], [%2];" ::"r"(to),
		     "l"(map), "r"(barrier), "r"(column), "r"(head), "r"(token)
		     : "memory");
}

/* Two teams take turns: a team begins when the other one has ended its turn. @{ */
DEVICE void begin_turn(int turn)
{
	asm volatile("bar.sync %0, %1;" ::"r"(turn), "n"(2 * TEAM) : "memory");
}

DEVICE void end_turn(int turn)
{
	asm volatile("bar.arrive %0, %1;" ::"r"(turn), "n"(2 * TEAM) : "memory");
}
/* @} */

/* Products are computed while the team goes on: behind begin_products(), in the order of batches that
 * end_batch() ends. wait_batches() waits until all but the last `batches` are done. @{ */
DEVICE void begin_products()
{
	asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

DEVICE void end_batch()
{
	asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int batches> DEVICE void wait_batches()
{
	asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(batches) : "memory");
}
/* @} */

/* Numbers of operands, and sums as operands. @{ */
#define TEN(tens)                                                                                            \
	"%" #tens "0, %" #tens "1, %" #tens "2, %" #tens "3, %" #tens "4, %" #tens "5, %" #tens "6, %" #tens \
	"7, %" #tens "8, %" #tens "9"
#define THIRTY  TEN() ", " TEN(1) ", " TEN(2) ", "
#define FOUR(i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define OF_32   FOUR(0), FOUR(4), FOUR(8), FOUR(12), FOUR(16), FOUR(20), FOUR(24), FOUR(28)
#define OF_40   OF_32, FOUR(32), FOUR(36)
#define OF_48   OF_40, FOUR(40), FOUR(44)
#define OF_64   OF_48, FOUR(48), FOUR(52), FOUR(56), FOUR(60)
/* @} */

#define MULTIPLY_KEYS(type)                                                                                  \
	asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0; "                                               \
		     "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" THIRTY TEN(           \
			 3) ", " TEN(4) ", " TEN(5) ", %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 0; }"      \
		     : OF_64                                                                                 \
		     : "l"(a), "l"(b), "r"(adds))

/* d [64, 128] = a [64, 16] · b [128, 16]ᵀ, and what d was if it adds. */
template <enum smalti_dtype dtype> DEVICE void multiply_keys(float *d, uint64_t a, uint64_t b, int adds)
{
	if (dtype == SMALTI_BF16)
		MULTIPLY_KEYS("bf16");
	else
		MULTIPLY_KEYS("f16");
}

#define MULTIPLY_VALUES(type, columns, numbers, left, right, ...)                                            \
	asm volatile("{ .reg .pred p; setp.eq.b32 p, 0, 0; "                                                 \
		     "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" numbers       \
		     "}, {" left "}, " right ", p, 1, 1, 1; }"                                               \
		     : __VA_ARGS__                                                                           \
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define MULTIPLY_COLUMNS(type)                                                                               \
	do {                                                                                                 \
		if constexpr (columns == 8)                                                                  \
			MULTIPLY_VALUES(type, "8", "%0, %1, %2, %3", "%4, %5, %6, %7", "%8", FOUR(0));       \
		else if constexpr (columns == 16)                                                            \
			MULTIPLY_VALUES(type, "16", "%0, %1, %2, %3, %4, %5, %6, %7", "%8, %9, %10, %11",    \
					"%12", FOUR(0), FOUR(4));                                            \
		else if constexpr (columns == 32)                                                            \
			MULTIPLY_VALUES(type, "32", TEN() ", %10, %11, %12, %13, %14, %15",                  \
					"%16, %17, %18, %19", "%20", FOUR(0), FOUR(4), FOUR(8), FOUR(12));   \
		else if constexpr (columns == 64)                                                            \
			MULTIPLY_VALUES(type, "64", THIRTY "%30, %31", "%32, %33, %34, %35", "%36", OF_32);  \
		else if constexpr (columns == 72)                                                            \
			MULTIPLY_VALUES(type, "72", THIRTY "%30, %31, %32, %33, %34, %35",                   \
					"%36, %37, %38, %39", "%40", OF_32, FOUR(32));                       \
		else if constexpr (columns == 80)                                                            \
			MULTIPLY_VALUES(type, "80", THIRTY TEN(3), "%40, %41, %42, %43", "%44", OF_40);      \
		else if constexpr (columns == 96)                                                            \
			MULTIPLY_VALUES(type, "96",                                                          \
					THIRTY TEN(3) ", %40, %41, %42, %43, %44, %45, %46, %47",            \
					"%48, %49, %50, %51", "%52", OF_48);                                 \
		else                                                                                         \
			MULTIPLY_VALUES(type, "128",                                                         \
					THIRTY TEN(3) ", " TEN(4) ", " TEN(5) ", %60, %61, %62, %63",        \
					"%64, %65, %66, %67", "%68", OF_64);                                 \
	} while (0)

/* d [64, columns] += a [64, 16] · b [16, columns]. Of a each thread has two words of its two rows: columns
 * 2 (lane % 4) …, and those eight further. */
template <enum smalti_dtype dtype, int columns>
DEVICE void multiply_values(float *d, const uint *a, uint64_t b)
{
	if (dtype == SMALTI_BF16)
		MULTIPLY_COLUMNS("bf16");
	else
		MULTIPLY_COLUMNS("f16");
}

/* Returns the value of the thread whose lane differs by `mask`. A team calls it alone, where of_other_lane()
 * is called by the whole group: what stands in for a GPU waits for that. */
template <typename T> DEVICE T of_lane_beside(T value, int mask)
{
	return of_other_lane(value, mask);
}

/* By the unit for it: 2 units in the last place, 0 for what is below 2^-126. */
DEVICE float power_of_two(float x)
{
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}
#else
#include "cuda/hopper.h" /* what stands in for a GPU */
#endif
