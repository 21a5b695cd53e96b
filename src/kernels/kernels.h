/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernels/attention.h"
#include "kernels/backward.h"
#include "kernels/conv.h"
#include "kernels/cpu/update_rows.h"
#include "kernels/isa.h"
#include "kernels/matmul.h"
#include "kernels/matmul_w8a8.h"
#include "kernels/moments.h"

/* How scores [keys, queries] and the gradients of their softmax, f32, become the weights and the scores'
 * gradients, rounded to `dtype`, stored as `stored`. `lse` as of struct smalti_attention; `delta` [queries]
 * is the sum of weights times their gradients. */
struct smalti_attention_weights {
	int64_t keys, queries;
	enum smalti_dtype dtype, stored;
	float scale;
};

enum { SMALTI_MEASURE_STEP = 64 }; /* floats that measure_read() and measure_triad() take at a time */

/* The kernels of one instruction set: kernels.def says what they compute. */
struct smalti_cpu_kernels {
#define KERNEL(type, name, parameters) type(*name) parameters;
#include "kernels/kernels.def"
};

/* Returns the kernels of one instruction set, whether or not this machine has it; NULL: not compiled. */
const struct smalti_cpu_kernels *smalti_cpu_kernels(enum smalti_isa isa);

/* Returns those of this machine. */
static inline const struct smalti_cpu_kernels *smalti_kernels(void)
{
	return smalti_cpu_kernels(smalti_isa());
}
