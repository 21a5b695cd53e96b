/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Parts of both forms of products with raw weights, f32 and bf16. */
#include "kernels/cpu/suffix.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/workspace.h"

INLINE int64_t parts(int64_t whole, int64_t part)
{
	return (whole + part - 1) / part;
}

/* Returns the inputs of the widest part: a piece of inputs lies in one part. */
INLINE int64_t widest(const struct smalti_raw_columns *x, int parts)
{
	int64_t columns = 1; /* every part has one */
	for (int i = 0; i < parts; i++)
		columns = x[i].count > columns ? x[i].count : columns;
	return columns;
}

/* The beginning of the weights of a block of outputs and inputs. */
struct panel {
	const char *from;
	int64_t stride; /* bytes from an output to the next */
};

/* Returns the scale of output `o` of 8-bit rows. */
INLINE float scale_of(const struct smalti_raw_weight *weight, int64_t in, int64_t o)
{
	float scale;
	memcpy(&scale, (const char *)weight->data + o * weight->stride + smalti_rows8_scale_at(in),
	       sizeof(scale));
	return scale;
}

INLINE vec apply(enum smalti_epilogue epilogue, vec z, vec gate, vec operand, vec y)
{
	switch (epilogue) {
	case SMALTI_EPILOGUE_GELU:
		return vec_gelu(z);
	case SMALTI_EPILOGUE_SILU:
		return vec_silu(z);
	case SMALTI_EPILOGUE_ADD:
		return y + z;
	case SMALTI_EPILOGUE_GATE_ADD:
		return vec_fma(gate, z, y);
	case SMALTI_EPILOGUE_MULTIPLY:
		return z * operand;
	default:
		return z;
	}
}

/* Computes outputs first … end − 1 of a row, which begins at element `at` of y, from their z. */
INLINE void finish_row(const struct smalti_matmul *m, int64_t first, int64_t end, const float *z,
		       const float *bias, const void *operand, int64_t at, void *y)
{
	bool gated = m->epilogue == SMALTI_EPILOGUE_GATE_ADD;
	bool added = gated || m->epilogue == SMALTI_EPILOGUE_ADD;
	bool multiplied = m->epilogue == SMALTI_EPILOGUE_MULTIPLY;
	for (int64_t o = first; o < end; o += LANES) {
		int64_t left = end - o;
		vec sum = vec_load(z + o - first), zero = {0};
		if (bias)
			sum += vec_read(SMALTI_F32, bias, o, left);
		vec gate = gated ? vec_read(SMALTI_F32, operand, o, left) : zero;
		vec factor = multiplied ? vec_read(m->result, operand, at + o, left) : zero;
		vec old = added ? vec_read(m->result, y, at + o, left) : zero;
		vec_write(m->result, y, at + o, left, apply(m->epilogue, sum, gate, factor, old));
	}
}
