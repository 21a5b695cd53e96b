/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of attention.h, backward.h, norms.h and elementwise.h on the CPU. */
#include "kernels/attention.h"
#include "kernels/backward.h"
#include "kernels/cpu/kernels.h"
#include "kernels/elementwise.h"
#include "kernels/measure.h"
#include "kernels/norms.h"
#include "kernels/scratch.h"

#include <math.h>

extern const struct smalti_cpu_kernels smalti_cpu_kernels_generic;
#if defined(__x86_64__)
extern const struct smalti_cpu_kernels smalti_cpu_kernels_avx2;
extern const struct smalti_cpu_kernels smalti_cpu_kernels_avx512;
extern const struct smalti_cpu_kernels smalti_cpu_kernels_avx512_bf16;
extern const struct smalti_cpu_kernels smalti_cpu_kernels_amx;
#endif

const struct smalti_cpu_kernels *smalti_cpu_kernels(enum smalti_isa isa)
{
	static const struct smalti_cpu_kernels *const tables[SMALTI_ISAS] = {
		[SMALTI_ISA_GENERIC] = &smalti_cpu_kernels_generic,
#if defined(__x86_64__)
		[SMALTI_ISA_AVX2] = &smalti_cpu_kernels_avx2,
		[SMALTI_ISA_AVX512] = &smalti_cpu_kernels_avx512,
		[SMALTI_ISA_AVX512_BF16] = &smalti_cpu_kernels_avx512_bf16,
		[SMALTI_ISA_AMX] = &smalti_cpu_kernels_amx,
#endif
	};
	return tables[isa];
}

static const struct smalti_cpu_kernels *here(void)
{
	return smalti_cpu_kernels(smalti_isa());
}

int64_t smalti_attention_state(int64_t queries, int64_t heads, int64_t head_dim)
{
	int64_t floats = queries;
	if (head_dim > INT64_MAX - 2)
		return -1;
	return smalti_multiply(&floats, head_dim + 2) && smalti_multiply(&floats, heads) ? floats : -1;
}

/* 2^40 tokens exceed any memory, and keep the sizes of the working memory within 64 bits. */
static const int64_t most_tokens = (int64_t)1 << 40;

/* Counts the keys of a call; -1 for too many, or a negative number. */
static int64_t count_keys(int64_t blocks, const struct smalti_keys *block)
{
	int64_t keys = 0;
	for (int64_t i = 0; i < blocks; i++) {
		if (block[i].count < 0 || block[i].count > most_tokens - keys)
			return -1;
		keys += block[i].count;
	}
	return keys;
}

static int check_attention(const struct smalti_attention *a, const struct smalti_keys *blocks,
			   struct smalti_error *error)
{
	int64_t width = a->heads * a->head_dim, keys = count_keys(a->blocks, blocks);
	if (a->queries < 0 || a->queries > most_tokens || keys < 0)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "attention of %lld queries and %lld blocks of keys: expected at most 2^40 tokens",
		    (long long)a->queries, (long long)a->blocks);
	if (a->heads < 1 || a->heads > 1 << 16 || a->head_dim < 1 || a->head_dim > 1024)
		return smalti_fail(error, SMALTI_EINVAL,
				   "attention of %lld heads of %lld: expected 1 to 65536 heads of 1 to 1024",
				   (long long)a->heads, (long long)a->head_dim);
	if (a->q_stride < width || a->k_stride < width || a->v_stride < width)
		return smalti_fail(
		    error, SMALTI_EINVAL, "attention with strides %lld, %lld, %lld: expected at least %lld",
		    (long long)a->q_stride, (long long)a->k_stride, (long long)a->v_stride, (long long)width);
	if (a->bias && a->queries && keys &&
	    (a->bias_origin - (a->queries - 1) < 0 || a->bias_origin + keys > a->bias_length))
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "attention with %lld biases, origin %lld: too few for %lld queries and %lld keys",
		    (long long)a->bias_length, (long long)a->bias_origin, (long long)a->queries,
		    (long long)keys);
	return 0;
}

int smalti_attention(const struct smalti_attention *attention, const void *q,
		     const struct smalti_keys *blocks, float *state, void *y, struct smalti_error *error)
{
	if (check_attention(attention, blocks, error) < 0)
		return -1;
	if ((!state && !(attention->first && attention->last)) || (!y && attention->last))
		return smalti_fail(error, SMALTI_EINVAL, "attention without %s",
				   y || !attention->last ? "a state between blocks" : "a result");
	int64_t floats = here()->attention_scratch(attention);
	float *scratch = smalti_scratch(SMALTI_SCRATCH_ATTENTION, floats * (int64_t)sizeof(float), error);
	if (!scratch)
		return -1;
	here()->attention(attention, q, blocks, state, y, scratch);
	return 0;
}

void smalti_layernorm_modulate(int64_t rows, int64_t dim, const float *x, float epsilon, const float *shift,
			       const float *scale, enum smalti_dtype dtype, void *y)
{
	here()->layernorm_modulate(rows, dim, x, epsilon, shift, scale, dtype, y);
}

void smalti_rmsnorm(int64_t rows, int64_t dim, const float *x, float epsilon, const float *weight,
		    enum smalti_dtype dtype, void *y)
{
	here()->rmsnorm(rows, dim, x, epsilon, weight, dtype, y);
}

void smalti_groupnorm_moments(int64_t pixels, int64_t channels, int64_t groups, const float *x,
			      struct smalti_moments *moments)
{
	here()->groupnorm_moments(pixels, channels, groups, x, moments);
}

void smalti_moments_merge(int64_t groups, const struct smalti_moments *from, struct smalti_moments *into)
{
	for (int64_t group = 0; group < groups; group++) {
		const struct smalti_moments b = from[group];
		struct smalti_moments *a = &into[group];
		if (a->count == 0 || b.count == 0) {
			*a = a->count == 0 ? b : *a;
			continue;
		}
		double count = a->count + b.count;
		double delta = b.mean - a->mean;
		a->m2 += b.m2 + delta * delta * (a->count * b.count / count);
		a->mean += delta * (b.count / count);
		a->count = count;
	}
}

void smalti_groupnorm_coefficients(int64_t channels, int64_t groups, const struct smalti_moments *moments,
				   double epsilon, const float *gamma, const float *beta, float *a, float *b)
{
	for (int64_t channel = 0; channel < channels; channel++) {
		const struct smalti_moments *group = &moments[channel / (channels / groups)];
		double factor = gamma[channel] / sqrt(group->m2 / group->count + epsilon);
		a[channel] = (float)factor;
		b[channel] = (float)(beta[channel] - group->mean * factor);
	}
}

void smalti_groupnorm_apply(int64_t pixels, int64_t channels, const float *x, const float *a, const float *b,
			    bool silu, enum smalti_dtype dtype, void *y)
{
	here()->groupnorm_apply(pixels, channels, x, a, b, silu, dtype, y);
}

void smalti_silu(int64_t count, const float *x, enum smalti_dtype dtype, void *y)
{
	here()->silu(count, x, dtype, y);
}

void smalti_gelu(int64_t count, const float *x, enum smalti_dtype dtype, void *y)
{
	here()->gelu(count, x, dtype, y);
}

void smalti_gelu_backward(int64_t count, const float *x, float *gy)
{
	here()->gelu_backward(count, x, gy);
}

void smalti_silu_backward(int64_t count, const float *x, float *gy)
{
	here()->silu_backward(count, x, gy);
}

void smalti_gated_sum(int64_t rows, int64_t dim, const float *x, const float *gate, const float *z, float *y)
{
	here()->gated_sum(rows, dim, x, gate, z, y);
}

void smalti_gate_backward(int64_t rows, int64_t dim, const float *gy, const float *gate, const float *z,
			  float *gz, float *ggate)
{
	here()->gate_backward(rows, dim, gy, gate, z, gz, ggate);
}

void smalti_layernorm_modulate_backward(const struct smalti_layernorm_backward *layernorm, const float *x,
					const float *scale, const float *gy, float *gx, float *gshift,
					float *gscale)
{
	here()->layernorm_modulate_backward(layernorm, x, scale, gy, gx, gshift, gscale);
}

void smalti_column_sums(int64_t rows, int64_t dim, int64_t stride, const float *x, bool add, float *y)
{
	here()->column_sums(rows, dim, stride, x, add, y);
}

void smalti_convert(int64_t count, enum smalti_dtype from, const void *x, enum smalti_dtype to, void *y)
{
	here()->convert(count, from, x, to, y);
}

void smalti_add(int64_t count, const float *x, const float *z, float *y)
{
	here()->add(count, x, z, y);
}

void smalti_upsample_row(int64_t width, int64_t channels, enum smalti_dtype dtype, const void *x, void *y)
{
	size_t bytes = (size_t)(channels * smalti_dtype_bytes(dtype));
	const char *from = x;
	char *to = y;
	for (int64_t pixel = 0; pixel < width; pixel++, from += bytes, to += 2 * bytes) {
		memcpy(to, from, bytes);
		memcpy(to + bytes, from, bytes);
	}
}

void smalti_to_u8(int64_t count, const float *x, uint8_t *y)
{
	here()->to_u8(count, x, y);
}

void smalti_to_u16(int64_t count, const float *x, uint16_t *y)
{
	here()->to_u16(count, x, y);
}

int64_t smalti_measure_fma(int64_t rounds, float *sum)
{
	return here()->measure_fma(rounds, sum);
}

float smalti_measure_read(int64_t count, const float *x)
{
	return here()->measure_read(count, x);
}

void smalti_measure_triad(int64_t count, const float *x, const float *y, float *z)
{
	here()->measure_triad(count, x, y, z);
}
