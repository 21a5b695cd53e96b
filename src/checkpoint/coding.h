/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype.h"

/* How the bytes of a tensor code its values, where these are no elements of a dtype: in blocks of
 * neighbouring values of a row. */
struct smalti_coding {
	const char *name;            /* in files: "F8_E4M3", "Q8_0" */
	int64_t values, block_bytes; /* of a block */
	bool needs_scale;            /* its values mean nothing without a scale beside them */
	/* Decodes blocks, at any alignment, to f32. */
	void (*decode)(const unsigned char *from, int64_t blocks, float *to);
	enum smalti_dtype rows8; /* dtype of 8-bit rows with such codes; F32: there is none */
};

/* The codings of safetensors: fp8 (base/fp8.h), and integers of 8 bits, which need a scale. @{ */
extern const struct smalti_coding smalti_coding_e4m3, smalti_coding_e5m2, smalti_coding_i8;
/* @} */

/* What a tensor's values are multiplied by: nothing (data NULL), one number, or one for each row; f32 of any
 * alignment, to be divided by `divisor`. */
struct smalti_tensor_scale {
	const void *data;
	bool by_row;
	float divisor;
};
/* Returns a row's scale: 1 without any. */
float smalti_tensor_scale(const struct smalti_tensor_scale *scale, int64_t row);

struct smalti_tensor_view;
/* Returns the elements of a tensor, and those of a row: the product of all extents but the first. @{ */
int64_t smalti_tensor_elements(const struct smalti_tensor_view *view);
int64_t smalti_tensor_row(const struct smalti_tensor_view *view);
/* @} */
/* Returns the bytes of `rows` rows in the file. */
int64_t smalti_tensor_row_bytes(const struct smalti_tensor_view *view, int64_t rows);
/* Makes a view that of `rows` of its rows, from `first` on. */
void smalti_tensor_cut(struct smalti_tensor_view *view, int64_t first, int64_t rows);
/* Reads rows first … first + rows − 1 of a tensor with data, coded or not, as f32. Values of a coded one are
 * products of two f32, of the decoded one and the scale, rounded once. */
void smalti_tensor_values(const struct smalti_tensor_view *view, int64_t first, int64_t rows, float *to);
