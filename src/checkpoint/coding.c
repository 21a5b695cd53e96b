/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/coding.h"
#include "base/fp8.h"
#include "checkpoint/safetensors.h"

static void decode_e4m3(const unsigned char *from, int64_t blocks, float *to)
{
	smalti_fp8_widen(&smalti_e4m3, from, blocks, to);
}

static void decode_e5m2(const unsigned char *from, int64_t blocks, float *to)
{
	smalti_fp8_widen(&smalti_e5m2, from, blocks, to);
}

static void decode_i8(const unsigned char *from, int64_t blocks, float *to)
{
	for (int64_t i = 0; i < blocks; i++)
		to[i] = (float)(signed char)from[i];
}

const struct smalti_coding smalti_coding_e4m3 = {"F8_E4M3", 1, 1, false, decode_e4m3, SMALTI_E4M3};
const struct smalti_coding smalti_coding_e5m2 = {"F8_E5M2", 1, 1, false, decode_e5m2, SMALTI_E5M2};
const struct smalti_coding smalti_coding_i8 = {"I8", 1, 1, true, decode_i8, SMALTI_I8};

float smalti_tensor_scale(const struct smalti_tensor_scale *scale, int64_t row)
{
	float value;
	if (!scale->data)
		return 1;
	memcpy(&value, (const char *)scale->data + (scale->by_row ? row : 0) * (int64_t)sizeof(value),
	       sizeof(value));
	return value / scale->divisor;
}

int64_t smalti_tensor_elements(const struct smalti_tensor_view *view)
{
	int64_t count = 1;
	for (int i = 0; i < view->rank; i++)
		count *= view->shape[i];
	return count;
}

int64_t smalti_tensor_row(const struct smalti_tensor_view *view)
{
	int64_t count = 1;
	for (int i = 1; i < view->rank; i++)
		count *= view->shape[i];
	return count;
}

int64_t smalti_tensor_row_bytes(const struct smalti_tensor_view *view, int64_t rows)
{
	const int64_t elements = rows * smalti_tensor_row(view);
	return view->coding ? elements / view->coding->values * view->coding->block_bytes
			    : elements * smalti_dtype_bytes(view->dtype);
}

void smalti_tensor_cut(struct smalti_tensor_view *view, int64_t first, int64_t rows)
{
	if (view->data)
		view->data = (const char *)view->data + smalti_tensor_row_bytes(view, first);
	if (view->scale.data && view->scale.by_row)
		view->scale.data = (const char *)view->scale.data + first * (int64_t)sizeof(float);
	view->shape[0] = rows;
	view->bytes = smalti_tensor_row_bytes(view, rows);
}

void smalti_tensor_values(const struct smalti_tensor_view *view, int64_t first, int64_t rows, float *to)
{
	const int64_t row = smalti_tensor_row(view);
	const unsigned char *from = (const unsigned char *)view->data + smalti_tensor_row_bytes(view, first);
	if (!view->coding) {
		smalti_widen(view->dtype, from, rows * row, to);
		return;
	}
	view->coding->decode(from, rows * row / view->coding->values, to);
	if (!view->scale.data)
		return;
	for (int64_t r = 0; r < rows; r++) {
		const float scale = smalti_tensor_scale(&view->scale, first + r);
		for (int64_t i = 0; i < row; i++)
			to[r * row + i] *= scale;
	}
}
