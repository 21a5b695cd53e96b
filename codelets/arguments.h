/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CODELETS_ARGUMENTS_H
#define SMALTI_CODELETS_ARGUMENTS_H

#include "base/dtype.h"
#include "kernels/matmul.h"
#include "samplers/sampler.h"

#include <stdbool.h>

/* How many tiles of one kind a task takes at most. */
enum { SMALTI_MANY = 16 };

/* Of a tensor [rows, columns]. */
static inline double smalti_bytes(enum smalti_dtype dtype, int64_t rows, int64_t columns)
{
	return (double)smalti_dtype_bytes(dtype) * (double)rows * (double)columns;
}

/* Plain values only: a task's arguments travel to the process that runs it. */

/* The parts end to end, as f32. */
struct widen_arguments {
	enum smalti_dtype dtype[3]; /* of each part present */
	int64_t count[3];
};

double smalti_widen_bytes(const struct widen_arguments *a);

struct pack_matmul_arguments {
	int64_t in, out;
	enum smalti_dtype compute;
	enum smalti_dtype dtype[3]; /* of each part present */
	int64_t rows[3];
};

double smalti_pack_matmul_bytes(const struct pack_matmul_arguments *a);

struct pack_conv_arguments {
	int64_t in, out;
	int stride;
	enum smalti_dtype compute, dtype;
};

/* x has dtype `x_dtype` (converted to `compute` first when they differ). Operands: specification of the
 * epilogues in kernels/matmul.h; the gate is row `gate_row` of an f32 [*, out] tile. */
struct matmul_arguments {
	int64_t rows, in, out;
	enum smalti_dtype x_dtype, compute, result;
	enum smalti_epilogue epilogue;
	int64_t gate_row;
};

double smalti_matmul_bytes(const struct matmul_arguments *a);

/* The same with a weight as the file has it, in up to three parts stacked along `out`. */
struct matmul_raw_arguments {
	struct matmul_arguments matmul;
	enum smalti_dtype dtype[3]; /* of each part present */
	int64_t part_out[3];
};

double smalti_matmul_raw_bytes(const struct matmul_raw_arguments *a);

/* q [queries, heads·head_dim]; kv[i] [keys[i], 2·heads·head_dim]: a token's keys, then its values; the blocks
 * follow each other. bias f32 [heads, 2·bias_reach − 1], entry r + bias_reach − 1 for key index − query index
 * = r. */
struct attention_arguments {
	int64_t queries, heads, head_dim;
	int64_t keys[SMALTI_MANY];
	enum smalti_dtype dtype;
	float scale;
	int64_t bias_reach, first_query, first_key; /* where the blocks lie in their sequences */
	/* Whether the first and the last block of keys are among these: else the state comes from the task
	 * before, or goes to the next one. There is no state when both are; y is there when the last is. */
	bool first, last;
};

double smalti_attention_flops(const struct attention_arguments *a);
double smalti_attention_bytes(const struct attention_arguments *a);

/* shift and scale are rows of the f32 modulation tile [*, dim]. */
struct ln_modulate_arguments {
	int64_t rows, dim, shift_row, scale_row;
	float epsilon;
	enum smalti_dtype dtype;
};

/* Columns first … first + columns − 1 of the table [vocabulary, dim], which is in `dtype`, as f32; ids are
 * int32. */
struct embed_tokens_arguments {
	int64_t tokens, dim, vocabulary, first, columns;
	enum smalti_dtype dtype;
};

struct relative_bias_arguments {
	int64_t heads, buckets, max_distance, reach; /* bias [heads, 2·reach − 1] */
};

/* Rows first_row … of x f32 [*, dim], which is shards x[i] [*, columns[i]] side by side. */
struct rmsnorm_arguments {
	int64_t rows, dim, first_row;
	int64_t columns[SMALTI_MANY];
	float epsilon;
	enum smalti_dtype dtype;
};

/* y [tokens, heads·head_dim] in `compute` = the attention of heads first_head … with scores unscaled, from
 * x [tokens, in] and the matrices q, k, v [*, in] of all heads in the file's dtypes. The tokens are
 * `captions` that do not see each other, caption i from starts[i] (int64) to starts[i + 1] − 1 (absent: one
 * caption). `bias` as in attention_arguments, of all heads. */
struct attend_heads_arguments {
	int64_t tokens, in, first_head, heads, head_dim;
	int64_t captions, pairs; /* of tokens that see each other */
	int64_t bias_reach;
	enum smalti_dtype compute, dtype[3];
};

double smalti_attend_heads_flops(const struct attend_heads_arguments *a);
double smalti_attend_heads_bytes(const struct attend_heads_arguments *a);

/* y [rows, columns] = gelu(x·gateᵀ) ⊙ (x·weightᵀ), all in `compute`, for rows first … of the two matrices
 * [*, in] in the file's dtypes. */
struct gated_gelu_arguments {
	int64_t rows, in, first, columns;
	enum smalti_dtype compute, dtype[2];
};

/* y f32 [rows, columns] += x·weightᵀ for rows first … of the weight [*, in] in the file's dtype; x is shards
 * x[i] [rows, x_columns[i]] side by side, taken in order. */
struct sum_shards_arguments {
	int64_t rows, in, first, columns;
	int64_t x_columns[SMALTI_MANY];
	enum smalti_dtype compute, dtype;
};

/* `after` says when; it is not read. */
struct read_ahead_arguments {
	int64_t bytes;
};
#define drop_pages_arguments read_ahead_arguments

/* y [rows, 256] = cosines, sines of values[rows] (docs/reference.md 3.3). */
struct sinusoid_arguments {
	int64_t rows;
};

struct silu_arguments {
	int64_t count;
};

struct add_row_arguments {
	int64_t rows, dim; /* every row of y gets the one row added */
};

/* y[r] = table[r] + embedding[step·period + r mod period], rows of `dim`. */
struct modulation_arguments {
	int64_t rows, dim, period, step;
};

/* The separable halves of the 2-D positional embedding: f32 [columns + rows, dim / 2]. */
struct positions_arguments {
	int64_t columns, rows, dim, base;
	double interpolation_scale;
};

/* y = patches(x·input_scale)·Wᵀ + bias + position, tokens first … first + rows − 1 of an image that
 * is `columns` patches wide and whose position table holds `columns` + … rows. */
struct patch_embed_arguments {
	int64_t rows, in, out, first, columns;
	float input_scale;
};

struct copy_arguments {
	int64_t bytes;
};

/* The two end to end. */
struct join_arguments {
	int64_t first_bytes, second_bytes;
};

struct clear_arguments {
	int64_t bytes;
};

/* Between planes [channels, height, width] and tokens [rows, channels·patch²], whose columns run over
 * (channel, row, column) as the patch embedding's weight does. */
struct patchify_arguments {
	int64_t channels, height, width, patch, first, rows;
	float scale;
};
#define unpatchify_arguments patchify_arguments

struct noise_arguments {
	int64_t count;
	enum smalti_dtype dtype;
};

/* One step on tokens first … first + rows − 1. The DiT's output rows hold (row, column, channel) of
 * `out_channels`, of which the first `channels` are used; noise is planes [channels, height, width]. */
struct sampler_step_arguments {
	struct smalti_sampler_step step;
	int64_t rows, channels, out_channels, patch, first, height, width;
	float guidance;
};

double smalti_sampler_flops(const struct sampler_step_arguments *a); /* with guidance */

/* Rows first_row … of planes [channels, height, width], times scale, channels last. */
struct latent_rows_arguments {
	int64_t channels, height, width, first_row, rows;
	float scale;
};

/* y = conv3×3(f(x)) + bias over a band; f is GroupNorm and SiLU when moments are given, and nearest ×2
 * when `upsample`. rows, width, in: of x. Absent above/below: the image's border. With stride 2 (rows and
 * width even) y has half of them, and `above` is not looked at. With `residual` it is added to y. */
struct conv_arguments {
	int64_t rows, width, in, out;
	int stride;
	int64_t groups, y_groups;
	float epsilon;
	bool upsample, residual;
	enum smalti_dtype compute;
};

#define SMALTI_CONV_FLOPS(a)                                                                                 \
	(18.0 * ((a)->upsample ? 4.0 : 1.0) * ((a)->stride == 2 ? 0.25 : 1.0) * (double)(a)->rows *          \
	 (double)(a)->width * (double)(a)->in * (double)(a)->out)

double smalti_conv_bytes(const struct conv_arguments *a);
double smalti_conv_result_bytes(const struct conv_arguments *a);

/* The first and last row of a band, and its statistics, for its neighbours and readers. */
struct edges_arguments {
	int64_t rows, width, channels, groups;
};

/* `count` elements in another dtype. */
struct convert_arguments {
	int64_t count;
	enum smalti_dtype from, to;
};

/* Moves bytes to a place in a file, and back; with `last` they are not asked for again. 0 or -1 with an
 * error. The token of a place says that it was written. */
typedef int (*smalti_offload_writer)(void *user, int64_t offset, int64_t bytes, const void *data,
				     struct smalti_error *error);
typedef int (*smalti_offload_reader)(void *user, int64_t offset, int64_t bytes, bool last, void *data,
				     struct smalti_error *error);

struct offload_arguments {
	int64_t offset, bytes;
	smalti_offload_writer write;
	void *user;
};

struct fetch_arguments {
	int64_t offset, bytes;
	bool last;
	smalti_offload_reader read;
	void *user;
};

struct merge_moments_arguments {
	int64_t groups;
};

struct groupnorm_arguments {
	int64_t pixels, channels, groups;
	float epsilon;
	enum smalti_dtype dtype;
};

/* Fills in rows of an image in order: f32 [rows, width, 3] in [-1, 1], from row `first`; 0 or -1 with an
 * error. */
typedef int (*smalti_row_source)(void *user, int64_t first, int64_t rows, int64_t width, float *pixels,
				 struct smalti_error *error);

struct read_rows_arguments {
	int64_t rows, width, first;
	smalti_row_source source;
	void *user;
};

/* Rows first_row … of planes [2·channels, height, width] from moments [rows, width, 2·channels]: the means,
 * and the standard deviations of the logarithms of the variances (docs/reference.md 5.2). */
struct posterior_rows_arguments {
	int64_t channels, height, width, first_row, rows;
};

/* Takes finished rows of an image in order: f32 [rows, width, 3] in [-1, 1], from row `first`; 0 or -1 with
 * an error. Sources and sinks are this process's: pointers that stay here. */
typedef int (*smalti_row_sink)(void *user, int64_t first, int64_t rows, int64_t width, const float *pixels,
			       struct smalti_error *error);

struct emit_rows_arguments {
	int64_t rows, width, first;
	smalti_row_sink sink;
	void *user;
};

/* Hands `count` floats to this process; 0 or -1 with an error. */
typedef int (*smalti_float_sink)(void *user, int64_t count, const float *values, struct smalti_error *error);

struct deliver_arguments {
	int64_t count;
	smalti_float_sink sink;
	void *user;
};

#endif
