/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of kernels that are no operation of codelets.def, but parts of one: for the kernels and for those
 * who launch them. */
#pragma once

enum {
	SMALTI_DEVICE_THREADS = 256, /* of a group, where nothing else is said */
	SMALTI_SUM_COLUMNS = 8,      /* of a group that sums over rows */
	SMALTI_ROW_EIGHTS = 2, /* of values that a thread has of a row that a group keeps in registers */
	SMALTI_ATTEND_THREADS = 128,
	SMALTI_ATTEND_QUERIES = 16,  /* of a group */
	SMALTI_TENSOR_QUERIES = 64,  /* likewise, in f16 and bf16 */
	SMALTI_ATTEND_COLUMNS = 128, /* of the values of a head: the most that a group makes */
	SMALTI_ATTEND_NARROW = 80,   /* with so many it needs fewer registers */
	SMALTI_SEARCH_TILE = 64,     /* queries, and rows, whose scores a group makes */
};

/* z, at z_first with rows `z_stride` elements apart, [rows, out] f32 = x·Wᵀ for rows w_row … of int8 with
 * their scales (base/rows8.h); x [rows, in], of `dtype`, is rounded to such rows. */
struct integer_product_arguments {
	int64_t rows, in, out, w_row, z_first, z_stride;
	enum smalti_dtype dtype;
};

/* y [rows, columns] in `result` = columns first … of a matrix whose rows are `stride` elements of `dtype`
 * apart, rounded to `compute`. Rows of int8 are taken as a whole; their scale is 16 bytes before the next
 * row. */
struct operand_arguments {
	int64_t rows, columns, first, stride;
	enum smalti_dtype dtype, compute, result;
};

/* Attention of `queries` tokens, in rows of q of `q_stride` elements; a row of `kv_stride` elements has a
 * token's keys from element `k_first` on, its values from `v_first`. As struct attention_arguments has it,
 * but for columns first_column … of the values alone: `columns` of them; the state's first two rows are
 * written with the last column. With `starts` the tokens are captions, each the keys of its own queries. */
struct attend_arguments {
	int64_t queries, heads, head_dim, first_column, columns;
	int64_t q_stride, kv_stride, k_first, v_first;
	int64_t keys[SMALTI_MANY];
	int64_t captions;
	int64_t parts; /* of the columns, each of other groups: in f16 and bf16 alone */
	int64_t bias_first, bias_length, bias_origin; /* see kernels/attention.h; of the first head */
	enum smalti_dtype dtype, y_dtype;
	float scale;
	int first, last; /* whether */
};

/* y [heads, padded, padded] in `dtype`: what is added to the score of each query, in rows, and key. Those are
 * tokens of captions as in struct attend_arguments, and behind them what nobody reads. */
struct spread_bias_arguments {
	int64_t tokens, padded, heads, captions;
	int64_t bias_first, bias_length, bias_origin;
	enum smalti_dtype dtype;
};

/* Rows first_row … of the map that the convolution makes, of patches in `result`. */
struct conv_patches_arguments {
	struct conv_arguments conv;
	int64_t first_row, rows;
	enum smalti_dtype result;
};

/* patches [rows, columns, 3, 3] of pixels of so many chunks, of rows of `width` pixels: the first is that
 * above. */
struct add_map_arguments {
	int64_t count, dim, first;
	enum smalti_dtype dtype;
	int adds;
};

struct copy_patches_arguments {
	int64_t rows, columns, width, stride, chunks;
};

struct moments_arguments {
	int64_t pixels, channels, groups;
	int64_t parts, step; /* of so many pixels each, the last ones of fewer */
	int shift;           /* where a group has 4·2^shift channels */
};

struct copy_edges_arguments {
	int64_t rows, row; /* row: floats of one */
};

struct coefficients_arguments {
	int64_t channels, groups;
	float epsilon;
};

/* How a row is normalised: (x − mean)·factor. */
struct smalti_normal {
	float mean, factor;
};

/* weights [2, heads, queries, keys] in `result`, rounded to `dtype`: P = 2^(score·scale − lse), with scores
 * in units of ln 2, and P ⊙ (P′ − delta)·scale, from scores and P′ [2, heads, queries, keys]. lse and deltas
 * are [heads, all_queries], of which the first is `first_query`. */
struct attention_weights_arguments {
	int64_t heads, queries, keys, first_query, all_queries;
	enum smalti_dtype dtype, result;
	float scale;
};

/* Attention of one head by products, of queries first … first + rows − 1 of `queries`, in units of ln 2. The
 * state f32 [2 + columns, queries] is that of struct attention_arguments: where it begins there is none yet.
 *
 * soften: weights [rows, stride] = 2^(score·scale − origin), 0 beyond the keys, of scores f32 [rows, stride];
 * in f32 both may be the same. The state's origin and sum become those with these keys, and factors f32
 * [rows] what its values are to be multiplied by. `stride` is a multiple of 8. scale_values: does that.
 * divide_values: y [queries, columns] = the state's values / its sum; `columns` is a multiple of 8. rows ·
 * columns fit into 32 bits. */
struct wide_attention_arguments {
	int64_t first, rows, queries, keys, stride, columns;
	float scale;
	int begins; /* whether */
};

struct adamw_elements_arguments {
	struct smalti_adamw_factors factors;
	int64_t count;
};

/* factor² times the sum of so many doubles. */
struct sum_squares_arguments {
	int64_t count;
	double factor;
};

/* What a pass of CAME over the elements squares: their gradients, the steps, or how far these are from their
 * means. `sums`: how many there are to be added up. */
enum smalti_came_pass { SMALTI_CAME_GRADIENTS, SMALTI_CAME_STEPS, SMALTI_CAME_DEVIATIONS };
struct came_pass_arguments {
	struct came_arguments of;
	int64_t sums;
	enum smalti_came_pass pass;
};

/* Rows at … at + count − 1 of those that are searched; of a sum so many products are added up at a time. */
struct search_some_arguments {
	struct search_rows_arguments of;
	int64_t at, count, depth;
};
