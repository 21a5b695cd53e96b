/* SPDX-License-Identifier: Apache-2.0 */
/* What each codelet's buffers hold, from its arguments: a codelet without its function here does not link. */
#include "bench/cases.h"
#include "kernels/attention.h"
#include "kernels/conditioning.h"
#include "kernels/conv.h"
#include "kernels/matmul.h"
#include "kernels/norms.h"
#include "samplers/noise.h"

#include <string.h>

static const int64_t kind_bytes[SMALTI_BENCH_KINDS] = {
    [SMALTI_BENCH_F32] = 4,
    [SMALTI_BENCH_F16] = 2,
    [SMALTI_BENCH_BF16] = 2,
    [SMALTI_BENCH_IDS] = 4,
    [SMALTI_BENCH_MOMENTS] = sizeof(struct smalti_moments),
    [SMALTI_BENCH_GENERATOR] = sizeof(struct smalti_generator),
};

int64_t smalti_bench_bytes(const struct smalti_bench_buffer *buffer)
{
	return kind_bytes[buffer->kind] * buffer->count;
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

static struct smalti_bench_buffer bytes(int64_t count)
{
	return f32((count + 3) / 4);
}

static struct smalti_bench_buffer moments(int64_t groups)
{
	return (struct smalti_bench_buffer){groups ? SMALTI_BENCH_MOMENTS : SMALTI_BENCH_ABSENT, groups};
}

/* A packed form holds numbers of its dtype in whatever order, so any will do. A size that cannot be had is
 * that of no buffer: the kernel says why. */
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

BUFFERS(widen, .part0 = of(a->dtype[0], a->count[0]), .vector = f32(a->count[0]))
BUFFERS(pack_matmul, .part0 = of(a->dtype[0], a->in * a->out),
	.packed = packed_matrix(a->in, a->out, a->compute))
BUFFERS(pack_conv, .raw = of(a->dtype, 9 * a->in * a->out),
	.packed = packed_kernel(a->in, a->out, a->stride, a->compute))
BUFFERS(matmul, .x = of(a->x_dtype, a->rows * a->in), .weight = packed_matrix(a->in, a->out, a->compute),
	.bias = f32(a->out), .gate = f32(a->epilogue == SMALTI_EPILOGUE_GATE_ADD ? a->out : 0),
	.y = of(a->result, a->rows * a->out))
BUFFERS(matmul_raw, .x = of(a->matmul.x_dtype, a->matmul.rows * a->matmul.in),
	.part0 = of(a->dtype[0], a->part_out[0] * a->matmul.in),
	.part1 = of(a->dtype[1], a->part_out[1] * a->matmul.in),
	.part2 = of(a->dtype[2], a->part_out[2] * a->matmul.in), .bias = f32(a->matmul.out),
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
	};
	for (int i = 0; i < SMALTI_MANY; i++)
		extents->kv[i] = of(a->dtype, a->keys[i] * 2 * a->heads * a->head_dim);
}

BUFFERS(ln_modulate, .x = f32(a->rows * a->dim), .modulation = f32(2 * a->dim),
	.y = of(a->dtype, a->rows * a->dim))

/* T5's shards, as many as have columns. */
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

#define HEADS(i) of(a->dtype[i], (a->first_head + a->heads) * a->head_dim * a->in)
BUFFERS(attend_heads, .x = of(a->compute, a->tokens * a->in), .q = HEADS(0), .k = HEADS(1), .v = HEADS(2),
	.bias = f32((a->first_head + a->heads) * (2 * a->bias_reach - 1)),
	.y = of(a->compute, a->tokens * a->heads * a->head_dim))
BUFFERS(gated_gelu, .x = of(a->compute, a->rows * a->in),
	.gate = of(a->dtype[0], (a->first + a->columns) * a->in),
	.weight = of(a->dtype[1], (a->first + a->columns) * a->in), .y = of(a->compute, a->rows * a->columns))
BUFFERS(read_ahead, .weight = bytes(a->bytes), .after = bytes(1))
BUFFERS(drop_pages, .weight = bytes(a->bytes))
BUFFERS(embed_tokens, .ids = {SMALTI_BENCH_IDS, a->tokens}, .table = of(a->dtype, a->vocabulary * a->dim),
	.y = f32(a->tokens * a->columns))
BUFFERS(relative_bias, .table = f32(a->buckets * a->heads), .bias = f32(a->heads * (2 * a->reach - 1)))
BUFFERS(sinusoid, .values = f32(a->rows), .y = f32(a->rows * SMALTI_SINUSOID_SIZE))
BUFFERS(silu, .x = f32(a->count), .y = f32(a->count))
BUFFERS(add_row, .row = f32(a->dim), .y = f32(a->rows * a->dim))
BUFFERS(modulation, .table = f32(a->rows * a->dim), .embedding = f32((a->step + 1) * a->period * a->dim),
	.y = f32(a->rows * a->dim))
BUFFERS(positions, .table = f32((a->columns + a->rows) * a->dim / 2))
BUFFERS(patch_embed, .x = f32(a->rows * a->in), .weight = packed_matrix(a->in, a->out, SMALTI_F32),
	.bias = f32(a->out),
	.positions = f32((a->columns + (a->first + a->rows) / a->columns + 1) * a->out / 2),
	.y = f32(a->rows * a->out))
BUFFERS(copy, .x = bytes(a->bytes), .y = bytes(a->bytes))
BUFFERS(join, .first = bytes(a->first_bytes), .second = bytes(a->second_bytes),
	.y = bytes(a->first_bytes + a->second_bytes))
BUFFERS(clear, .y = bytes(a->bytes))
BUFFERS(patchify, .planes = f32(a->channels * a->height * a->width),
	.tokens = f32(a->rows * a->channels * a->patch * a->patch))
BUFFERS(unpatchify, .planes = f32(a->channels * a->height * a->width),
	.tokens = f32(a->rows * a->channels * a->patch * a->patch))
BUFFERS(noise, .generator = {SMALTI_BENCH_GENERATOR, 1}, .planes = f32(a->count))

#define OUTPUT f32(a->rows * a->out_channels * a->patch * a->patch)
#define TOKENS a->rows * a->channels * a->patch * a->patch
BUFFERS(sampler_step, .conditional = OUTPUT, .unconditional = OUTPUT, .x = f32(TOKENS),
	.history = f32(a->step.history * TOKENS))
BUFFERS(latent_rows, .planes = f32(a->channels * a->height * a->width),
	.y = f32(a->rows * a->width * a->channels))

/* In the middle of an image: with neighbours above and below. */
BUFFERS(conv, .x = f32(a->rows * a->width * a->in), .above = f32(a->width * a->in),
	.below = f32(a->width * a->in), .moments = moments(a->groups), .gamma = f32(a->groups ? a->in : 0),
	.beta = f32(a->groups ? a->in : 0), .weight = packed_kernel(a->in, a->out, a->stride, a->compute),
	.bias = f32(a->out), .y = f32((int64_t)smalti_conv_result_bytes(a) / 4),
	.top = f32((a->upsample ? 2 : 1) * a->width / a->stride * a->out),
	.bottom = f32((a->upsample ? 2 : 1) * a->width / a->stride * a->out),
	.y_moments = moments(a->y_groups))

BUFFERS(edges, .x = f32(a->rows * a->width * a->channels), .top = f32(a->width * a->channels),
	.bottom = f32(a->width * a->channels), .moments = moments(a->groups))
BUFFERS(merge_moments, .parts = {moments(a->groups), moments(a->groups)}, .merged = moments(a->groups))
BUFFERS(groupnorm, .x = f32(a->pixels * a->channels), .moments = moments(a->groups),
	.gamma = f32(a->channels), .beta = f32(a->channels), .y = of(a->dtype, a->pixels * a->channels))
BUFFERS(read_rows, .y = f32(3 * a->rows * a->width), .source = bytes(1))
BUFFERS(posterior_rows, .moments = f32(a->rows * a->width * 2 * a->channels),
	.planes = f32(2 * a->channels * a->height * a->width))
BUFFERS(convert, .x = bytes(a->count * smalti_dtype_bytes(a->from)),
	.y = bytes(a->count * smalti_dtype_bytes(a->to)))
BUFFERS(offload, .x = bytes(a->bytes), .token = bytes(1))
BUFFERS(fetch, .token = bytes(1), .y = bytes(a->bytes))
BUFFERS(emit_rows, .x = f32(3 * a->rows * a->width), .sink = bytes(1))
BUFFERS(deliver, .x = f32(a->count))

/* The extents of any op as an array. */
#define CODELET(name, list, members, flops, bytes)                                                           \
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
#define CODELET(name, list, members, flops, bytes) name##_buffers,
#include "codelets/codelets.def"
	};
	table[c->op](c->arguments, buffers);
}
