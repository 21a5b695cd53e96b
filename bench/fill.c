/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/fill.h"

#include <math.h>
#include <string.h>

enum { TENSOR_BITS = 40 };

bool smalti_is_norm_weight(const char *name)
{
	static const char *const endings[] = {"norm1.weight", "norm2.weight", "group_norm.weight",
					      "conv_norm_out.weight", "layer_norm.weight"};
	bool norm = false;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		norm = norm || smalti_stem(name, endings[i]) >= 0;
	return norm;
}

static double scale_of(const struct smalti_tensor_view *tensor)
{
	const char *name = tensor->name;
	if (smalti_is_norm_weight(name))
		return 0.1;
	if (tensor->rank == 1)
		return 0.02;
	if (smalti_stem(name, "scale_shift_table") >= 0)
		return 0.05;
	if (strcmp(name, "shared.weight") == 0 || smalti_stem(name, ".relative_attention_bias.weight") >= 0)
		return 1;
	return (smalti_stem(name, ".SelfAttention.q.weight") >= 0 ? 0.125 : 1) *
	       sqrt(3 / (double)smalti_tensor_row(tensor));
}

struct smalti_fill smalti_fill_of(const struct smalti_tensor_view *tensor, int k)
{
	return (struct smalti_fill){
	    .start = (uint64_t)k << TENSOR_BITS,
	    .offset = smalti_is_norm_weight(tensor->name) ? 1 : 0,
	    .scale = scale_of(tensor),
	};
}

static uint64_t splitmix64(uint64_t z)
{
	z += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

void smalti_fill(const struct smalti_fill *fill, int64_t first, int64_t count, float *to)
{
	const uint64_t start = fill->start + (uint64_t)first;
	for (int64_t i = 0; i < count; i++) {
		const double u = (double)(int32_t)(splitmix64(start + (uint64_t)i) >> 40) * 0x1p-23 - 1;
		to[i] = (float)(fill->offset + fill->scale * u);
	}
}
