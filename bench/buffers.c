/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of each codelet's buffers, from its arguments: by a row of cases.def, or by a function here. A
 * codelet without either does not link. */
#include "base/rows8.h"
#include "bench/cases.h"
#include "kernels/attention.h"
#include "kernels/conditioning.h"
#include "kernels/conv.h"
#include "kernels/groupnorm.h"
#include "kernels/matmul.h"
#include "samplers/diffusion_loss.h"
#include "samplers/noise.h"

#include <string.h>

static const int64_t kind_bytes[SMALTI_BENCH_KINDS] = {
    [SMALTI_BENCH_F32] = 4,
    [SMALTI_BENCH_F16] = 2,
    [SMALTI_BENCH_ROWS8] = 1,
    [SMALTI_BENCH_BF16] = 2,
    [SMALTI_BENCH_SQUARES] = 4,
    [SMALTI_BENCH_IDS] = 4,
    [SMALTI_BENCH_STARTS] = 8,
    [SMALTI_BENCH_MOMENTS] = sizeof(struct smalti_moments),
    [SMALTI_BENCH_F64] = sizeof(double),
    [SMALTI_BENCH_GENERATOR] = sizeof(struct smalti_generator),
    [SMALTI_BENCH_MATCHES] = sizeof(struct smalti_match),
};

int64_t smalti_bench_bytes(const struct smalti_bench_buffer *buffer)
{
	return kind_bytes[buffer->kind] * buffer->count;
}

/* Returns values evenly over [-0.5, 0.5). */
static float random_value(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (float)(*state >> 8) / (float)(1 << 24) - 0.5f;
}

/* Returns a match; better ones come first. */
static struct smalti_match match_of(int64_t i, int64_t count, uint32_t state)
{
	const int64_t step = 16 * i / count;
	return (struct smalti_match){3 * i + state % 3, 2 - 0.25f * (float)step, 0};
}

void smalti_bench_fill(enum smalti_bench_kind kind, int64_t count, uint32_t *state, void *to)
{
	for (int64_t i = 0; i < count; i++) {
		const float value = random_value(state);
		if (kind == SMALTI_BENCH_F32)
			((float *)to)[i] = value;
		else if (kind == SMALTI_BENCH_F16)
			((uint16_t *)to)[i] = smalti_f32_to_f16(value);
		else if (kind == SMALTI_BENCH_BF16)
			((uint16_t *)to)[i] = smalti_f32_to_bf16(value);
		else if (kind == SMALTI_BENCH_ROWS8) /* of any four bytes a scale, too, from 2e-5 to 0.9 */
			((int8_t *)to)[i] = (int8_t)(56 + (*state >> 29));
		else if (kind == SMALTI_BENCH_SQUARES)
			((float *)to)[i] = value + 0.5f;
		else if (kind == SMALTI_BENCH_IDS)
			((int32_t *)to)[i] = (int32_t)((value + 0.5f) * 999);
		else if (kind == SMALTI_BENCH_STARTS)
			((int64_t *)to)[i] = 60 * i;
		else if (kind == SMALTI_BENCH_MOMENTS)
			((struct smalti_moments *)to)[i] = (struct smalti_moments){1000, (double)value, 100};
		else if (kind == SMALTI_BENCH_F64)
			((double *)to)[i] = (double)value;
		else if (kind == SMALTI_BENCH_MATCHES)
			((struct smalti_match *)to)[i] = match_of(i, count, *state);
		else
			smalti_generator_seed(to, *state);
	}
}

static struct smalti_bench_buffer of(enum smalti_dtype dtype, int64_t count)
{
	static const enum smalti_bench_kind kinds[] = {[SMALTI_F32] = SMALTI_BENCH_F32,
						       [SMALTI_F16] = SMALTI_BENCH_F16,
						       [SMALTI_BF16] = SMALTI_BENCH_BF16};
	return (struct smalti_bench_buffer){count > 0 ? kinds[dtype] : SMALTI_BENCH_ABSENT, count};
}

static struct smalti_bench_buffer f32(int64_t count)
{
	return of(SMALTI_F32, count);
}

static struct smalti_bench_buffer squares(int64_t count)
{
	return (struct smalti_bench_buffer){SMALTI_BENCH_SQUARES, count};
}

static struct smalti_bench_buffer f64(int64_t count)
{
	return (struct smalti_bench_buffer){SMALTI_BENCH_F64, count};
}

static struct smalti_bench_buffer bytes(int64_t count)
{
	return f32((count + 3) / 4);
}

static struct smalti_bench_buffer matches(int64_t count)
{
	return (struct smalti_bench_buffer){SMALTI_BENCH_MATCHES, count};
}

static struct smalti_bench_buffer moments(int64_t groups)
{
	return (struct smalti_bench_buffer){groups ? SMALTI_BENCH_MOMENTS : SMALTI_BENCH_ABSENT, groups};
}

/* Describes a packed form: numbers of its dtype in any order do. An impossible size gives an empty buffer:
 * the kernel says why. */
static struct smalti_bench_buffer packed(enum smalti_dtype dtype, int64_t size)
{
	return of(dtype, size / smalti_dtype_bytes(dtype));
}

static struct smalti_bench_buffer packed_matrix(int64_t in, int64_t out, enum smalti_dtype compute)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	return packed(compute, smalti_matmul_packed_bytes(in, out, compute, &error));
}

static struct smalti_bench_buffer packed_kernel(int64_t in, int64_t out, int stride,
						enum smalti_dtype compute)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	return packed(compute, smalti_conv_packed_bytes(in, out, stride, compute, &error));
}

#define BUFFERS(codelet, ...)                                                                                \
	void smalti_bench_##codelet(const struct codelet##_arguments *a, struct codelet##_extents *extents)  \
	{                                                                                                    \
		(void)a;                                                                                     \
		*extents = (struct codelet##_extents){__VA_ARGS__};                                          \
	}

BUFFERS(matmul, .x = of(a->x_dtype, a->rows * a->in), .weight = packed_matrix(a->in, a->out, a->compute),
	.bias = f32(a->out), .gate = f32(a->epilogue == SMALTI_EPILOGUE_GATE_ADD ? a->out : 0),
	.y = of(a->result, a->rows * a->out))
/* Describes rows of weights as a file has them. */
static struct smalti_bench_buffer raw(enum smalti_dtype dtype, int64_t rows, int64_t in)
{
	if (smalti_is_rows8(dtype))
		return (struct smalti_bench_buffer){SMALTI_BENCH_ROWS8, rows * smalti_rows8_stride(in)};
	return of(dtype, rows * in);
}

BUFFERS(matmul_raw, .x = of(a->matmul.x_dtype, a->matmul.rows * a->matmul.in),
	.part0 = raw(a->dtype[0], a->part_out[0], a->matmul.in),
	.part1 = raw(a->dtype[1], a->part_out[1], a->matmul.in),
	.part2 = raw(a->dtype[2], a->part_out[2], a->matmul.in), .bias = f32(a->matmul.out),
	.y = of(a->matmul.result, a->matmul.rows * a->matmul.out))

void smalti_bench_attention(const struct attention_arguments *a, struct attention_extents *extents)
{
	const struct smalti_bench_buffer queries = of(a->dtype, a->queries * a->heads * a->head_dim);
	const int64_t state = smalti_attention_state(a->queries, a->heads, a->head_dim);
	*extents = (struct attention_extents){
	    .q = queries,
	    .bias = f32(a->bias_reach ? a->heads * (2 * a->bias_reach - 1) : 0),
	    .state = f32(a->first && a->last ? 0 : state),
	    .y = a->last ? queries : f32(0),
	    .lse = f32(a->last ? a->heads * a->queries : 0),
	};
	for (int i = 0; i < SMALTI_MANY; i++)
		extents->kv[i] = of(a->dtype, a->keys[i] * 2 * a->heads * a->head_dim);
}

/* Fills in T5's shards, as many as have columns. */
static void fill_shards(enum smalti_dtype dtype, int64_t rows, const int64_t *columns,
			struct smalti_bench_buffer x[SMALTI_MANY])
{
	for (int i = 0; i < SMALTI_MANY; i++)
		x[i] = of(dtype, rows * columns[i]);
}

void smalti_bench_rmsnorm(const struct rmsnorm_arguments *a, struct rmsnorm_extents *extents)
{
	*extents = (struct rmsnorm_extents){.weight = f32(a->dim), .y = of(a->dtype, a->rows * a->dim)};
	fill_shards(SMALTI_F32, a->first_row + a->rows, a->columns, extents->x);
}

void smalti_bench_sum_shards(const struct sum_shards_arguments *a, struct sum_shards_extents *extents)
{
	*extents = (struct sum_shards_extents){.weight = of(a->dtype, (a->first + a->columns) * a->in),
					       .y = f32(a->rows * a->columns)};
	fill_shards(a->compute, a->rows, a->x_columns, extents->x);
}

#define HEADS(i) of(a->dtype[i], (a->first_head - a->held + a->heads) * a->head_dim * a->in)
BUFFERS(attend_heads, .x = of(a->compute, a->tokens * a->in), .q = HEADS(0), .k = HEADS(1), .v = HEADS(2),
	.bias = f32((a->first_head + a->heads) * (2 * a->bias_reach - 1)),
	.starts = {a->captions > 1 ? SMALTI_BENCH_STARTS : SMALTI_BENCH_ABSENT, a->captions + 1},
	.y = of(a->compute, a->tokens * a->heads * a->head_dim))

#define OUTPUT a->rows * a->out_channels * a->patch * a->patch
#define TOKENS a->rows * a->channels * a->patch * a->patch
BUFFERS(sampler_step, .conditional = f32(OUTPUT), .unconditional = f32(a->guidance > 0 ? OUTPUT : 0),
	.noise = f32(a->step.draws_noise ? a->channels * a->height * a->width : 0), .x = f32(TOKENS),
	.history = f32(a->step.history * TOKENS))

#define WIDTH   a->heads * a->head_dim
#define QUERIES a->queries *WIDTH
#define KEYS    a->keys * 2 * WIDTH
BUFFERS(attention_backward, .q = of(a->dtype, QUERIES), .kv = of(a->dtype, KEYS), .y = of(a->dtype, QUERIES),
	.lse = f32(a->heads * a->queries), .gy = f32(QUERIES), .gq = f32(QUERIES), .gkv = f32(KEYS))

/* A band inside an image: with neighbours above and below. */
BUFFERS(conv, .x = f32(a->rows * a->width * a->in), .above = f32(a->width * a->in),
	.below = f32(a->width * a->in), .moments = moments(a->groups), .gamma = f32(a->groups ? a->in : 0),
	.beta = f32(a->groups ? a->in : 0), .weight = packed_kernel(a->in, a->out, a->stride, a->compute),
	.bias = f32(a->out), .y = f32((int64_t)smalti_conv_result_bytes(a) / 4),
	.top = f32((a->upsample ? 2 : 1) * a->width / a->stride * a->out),
	.bottom = f32((a->upsample ? 2 : 1) * a->width / a->stride * a->out),
	.y_moments = moments(a->y_groups))

#define PART(i) f32(a->shape.parts > (i) ? a->shape.batch * a->shape.rows * a->shape.columns : 0)
BUFFERS(came, .gradient0 = PART(0), .gradient1 = PART(1), .gradient2 = PART(2), .value0 = PART(0),
	.value1 = PART(1), .value2 = PART(2), .mean0 = PART(0), .mean1 = PART(1), .mean2 = PART(2),
	.factors = squares(smalti_came_factors(&a->shape)))

BUFFERS(merge_moments, .parts = {moments(a->groups), moments(a->groups)}, .merged = moments(a->groups))

#include "bench/cases.def"

/* The extents of each op as an array. */
#define CODELET(name, work, list, members, flops, bytes)                                                     \
	static void name##_buffers(const void *arguments, struct smalti_bench_buffer *buffers)               \
	{                                                                                                    \
		struct name##_extents extents;                                                               \
		smalti_bench_##name(arguments, &extents);                                                    \
		memcpy(buffers, &extents, sizeof(extents));                                                  \
	}
#include "codelets/codelets.def"

void smalti_bench_buffers(const struct smalti_bench_case *c, struct smalti_bench_buffer *buffers)
{
	static void (*const table[SMALTI_OPS])(const void *arguments, struct smalti_bench_buffer *buffers) = {
#define CODELET(name, work, list, members, flops, bytes) name##_buffers,
#include "codelets/codelets.def"
	};
	table[c->op](c->arguments, buffers);
}
