/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Working memory of the calling thread, one block per use so that kernels may call each other. */
enum smalti_scratch_use {
	SMALTI_SCRATCH_ASSEMBLE,  /* a convolution's input with its halo rows */
	SMALTI_SCRATCH_CONVERT,   /* an operand in another dtype */
	SMALTI_SCRATCH_ATTENTION, /* packed keys and values, scores */
	SMALTI_SCRATCH_PRODUCT,   /* a raw product's packed operands and sums */
	SMALTI_SCRATCH_LIBRARY,   /* oneDNN's scratchpad */
	SMALTI_SCRATCH_SHARD,     /* intermediate results of a layer's shard */
	SMALTI_SCRATCH_ROWS,      /* a few rows: a modulation, an image's lines */
	SMALTI_SCRATCH_WINOGRAD,  /* the points of a block of tiles */
	SMALTI_SCRATCH_SCORES,    /* of rows that are searched */
	SMALTI_SCRATCH_USES
};

/* Returns at least `bytes`, aligned to 64, contents undefined, valid until the same thread's next call with
 * the same use; freed when the thread ends. NULL with an error when there is no memory. */
void *smalti_scratch(enum smalti_scratch_use use, int64_t bytes, struct smalti_error *error);

/* Returns the bytes that all threads hold at this moment. */
int64_t smalti_scratch_held(void);
