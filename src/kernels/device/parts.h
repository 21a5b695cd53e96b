/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of kernels that are no operation of codelets.def, but parts of one: for the kernels and for those
 * who launch them. */
#pragma once

enum {
	SMALTI_DEVICE_THREADS = 256, /* of a group, where nothing else is said */
	SMALTI_ATTEND_THREADS = 128,
	SMALTI_ATTEND_QUERIES = 16,  /* of a group */
	SMALTI_ATTEND_COLUMNS = 128, /* of the values of a head: the most that a launch makes */
};

/* y [rows, columns] in `result` = columns first … of a matrix whose rows are `stride` elements of `dtype`
 * apart, rounded to `compute`. */
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
	int64_t bias_first, bias_length, bias_origin; /* see kernels/attention.h; of the first head */
	enum smalti_dtype dtype, y_dtype;
	float scale;
	int first, last; /* whether */
};

/* Rows first_row … of the map that the convolution makes, of patches in `result`. */
struct conv_patches_arguments {
	struct conv_arguments conv;
	int64_t first_row, rows;
	enum smalti_dtype result;
};

struct moments_arguments {
	int64_t pixels, channels, groups;
};

struct copy_edges_arguments {
	int64_t rows, row; /* row: floats of one */
};

struct coefficients_arguments {
	int64_t channels, groups;
	float epsilon;
};
