/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codelets/codelets.h"
#include "graphs/weights.h"

/* Linear layers on a tile of `rows` tokens. x is in dtype `x_dtype`; see kernels/matmul.h for the epilogues.
 */

/* Inserts y [rows, out] in dtype `result` = epilogue(x·Wᵀ + b). */
void smalti_linear_into(struct smalti_task_group *task_group, const struct smalti_linear *linear,
			int64_t rows, enum smalti_dtype x_dtype, struct smalti_tile *x,
			enum smalti_epilogue epilogue, enum smalti_dtype result, struct smalti_tile *y);
/* Inserts y += x·Wᵀ + b, of y f32 [rows, out]. */
void smalti_linear_add(struct smalti_task_group *task_group, const struct smalti_linear *linear, int64_t rows,
		       enum smalti_dtype x_dtype, struct smalti_tile *x, struct smalti_tile *y);
/* Inserts y += gate ⊙ (x·Wᵀ + b); the gate is row `gate_row` of the f32 tile `gates` [*, out]. */
void smalti_linear_gate_add(struct smalti_task_group *task_group, const struct smalti_linear *linear,
			    int64_t rows, enum smalti_dtype x_dtype, struct smalti_tile *x,
			    struct smalti_tile *gates, int64_t gate_row, struct smalti_tile *y);
