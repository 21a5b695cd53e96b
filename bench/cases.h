/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codelets/codelets.h"

/* The contents of a case's buffer: none of them computes slowly, as subnormal numbers or NaN do. */
enum smalti_bench_kind {
	SMALTI_BENCH_ABSENT,
	SMALTI_BENCH_F32,
	SMALTI_BENCH_F16,
	SMALTI_BENCH_ROWS8, /* bytes of 8-bit rows: base/rows8.h */
	SMALTI_BENCH_BF16,
	SMALTI_BENCH_SQUARES, /* f32, from 0 to 1 */
	SMALTI_BENCH_IDS,     /* int32, 0 … 999 */
	SMALTI_BENCH_STARTS,  /* int64, where captions of 60 tokens begin and the last ends */
	SMALTI_BENCH_MOMENTS,
	SMALTI_BENCH_F64,
	SMALTI_BENCH_GENERATOR,
	SMALTI_BENCH_MATCHES, /* from score 2 down to -2, many alike */
	SMALTI_BENCH_KINDS
};

struct smalti_bench_buffer {
	enum smalti_bench_kind kind;
	int64_t count; /* of elements */
};

int64_t smalti_bench_bytes(const struct smalti_bench_buffer *buffer);

/* Fills in `count` elements in the order of `state`. */
void smalti_bench_fill(enum smalti_bench_kind kind, int64_t count, uint32_t *state, void *to);

/* struct NAME_extents: the buffers of a codelet that a case allocates. */
#define INPUT(b)  struct smalti_bench_buffer b;
#define OUTPUT(b) struct smalti_bench_buffer b;
#define CODELET(name, work, list, members, flops, bytes)                                                     \
	struct name##_extents {                                                                              \
		list                                                                                         \
	};                                                                                                   \
	void smalti_bench_##name(const struct name##_arguments *a, struct name##_extents *extents);
#include "codelets/codelets.def"

/* One row of cases.def at one precision. */
struct smalti_bench_case {
	enum smalti_op_number op;
	const char *label;         /* "DiT q 256x1152x1152" */
	const char *name;          /* of op and label */
	enum smalti_dtype compute; /* of the products: which peak is compared */
	bool direct;               /* its flops are a direct convolution's; other algorithms need fewer */
	const void *arguments;
};

/* Calls `visit` for each, in the order of the file, until it returns other than 0, which is returned. The
 * case is valid during the call only. */
int smalti_bench_each(enum smalti_dtype precision,
		      int (*visit)(void *user, const struct smalti_bench_case *c), void *user);

/* Fills `buffers` in the order of the op's pointers; absent ones have kind SMALTI_BENCH_ABSENT. */
void smalti_bench_buffers(const struct smalti_bench_case *c, struct smalti_bench_buffer *buffers);
