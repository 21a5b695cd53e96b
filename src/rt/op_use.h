/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype_enum.h"
#include "base/json.h"
#include "rt/op.h"

/* Counts what CPUs have done of each operation, by the dtype of its products and conversions (codelets.def).
 * Each worker has its own counters, so that none waits for another. */
enum { SMALTI_OP_DTYPES = SMALTI_I8 + 1 };

/* The use of one operation in one dtype. */
struct smalti_op_use {
	int64_t count, nanoseconds, flops, bytes; /* bytes: those that had to move */
};

/* The counters of one worker, or of all: [smalti_op_count][SMALTI_OP_DTYPES]. */
struct smalti_op_counter;

/* Returns counters for `workers` workers; NULL with an error. Free with free(). */
struct smalti_op_counter *smalti_op_counters_new(int workers, struct smalti_error *error);
struct smalti_op_counter *smalti_op_counters_of(struct smalti_op_counter *counters, int worker);
/* Adds one operation, on the worker's thread. */
void smalti_op_counter_add(struct smalti_op_counter *own, int op, const void *arguments, double seconds);

/* Returns the sums over all workers so far; NULL with an error. Free with free(). */
struct smalti_op_use *smalti_op_counters_sum(const struct smalti_op_counter *counters, int workers,
					     struct smalti_error *error);
/* Lists the operations between two such sums, the longest first: [{"name", "dtype", "count", "seconds",
 * "flops", "bytes"}]. NULL without memory. */
cJSON *smalti_op_uses_json(const struct smalti_op_use *before, const struct smalti_op_use *after);
