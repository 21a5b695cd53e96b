/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/adapter_set.h"

/* A matrix of a checkpoint with its adapters merged (checkpoint/adapter.h). Sums are in double, rounded once
 * to f32. Nothing is kept but DoRA's factors: rows are computed where they are asked for. */
struct smalti_merge;

/* Makes it of a whole tensor and the adapters that change it; both outlive it. *merge is NULL if none does.
 */
int smalti_merge_new(struct smalti_merge **merge, const struct smalti_adapter_set *adapters,
		     const struct smalti_tensor_view *tensor, struct smalti_error *error);
void smalti_merge_free(struct smalti_merge *merge); /* NULL is allowed */

/* Computes columns [first_in, first_in + in) of `rows` rows from first_out on, f32 [rows, in]. Any thread may
 * call it. */
int smalti_merge_rows(struct smalti_merge *merge, int64_t first_out, int64_t rows, int64_t first_in,
		      int64_t in, float *to, struct smalti_error *error);
