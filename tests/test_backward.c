/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of gradients on awkward shapes against plain loops in double, whose own derivatives are checked
 * by differences. */
#include "codelet_case.h"
#include "kernels/attention.h"
#include "kernels/backward.h"
#include "kernels/groupnorm.h"
#include "kernels/kernels.h"

#include <math.h>
#include <stdio.h>

static const struct smalti_cpu_kernels *kernels; /* of the instruction set under test */

static const char *label(const char *what, int64_t a, int64_t b, int64_t c)
{
	static char text[128];
	snprintf(text, sizeof(text), "%s, %lld %lld %lld", what, (long long)a, (long long)b, (long long)c);
	return text;
}

/* Runs `check` with the kernels of each instruction set that this machine has. */
static void each_isa(void (*check)(void))
{
	for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
		kernels = smalti_cpu_kernels((enum smalti_isa)isa);
		check();
	}
}

/* Element by element */

static double gelu(double x)
{
	return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

static double silu(double x)
{
	return x / (1 + exp(-x));
}

static double slope(double (*f)(double), double x)
{
	const double step = 1e-5;
	return (f(x + step) - f(x - step)) / (2 * step);
}

static void check_slopes(void)
{
	enum { COUNT_OF_X = 611 };
	static const struct {
		double (*f)(double);
		bool gelu;
	} functions[] = {{gelu, true}, {silu, false}};
	for (size_t i = 0; i < COUNT_OF(functions); i++) {
		float x[COUNT_OF_X], g[COUNT_OF_X];
		struct kernel_error error = {0};
		for (int j = 0; j < COUNT_OF_X; j++) {
			x[j] = (float)(j - COUNT_OF_X / 2) / 25.f;
			g[j] = 0.5f + (float)(j % 3);
		}
		if (functions[i].gelu)
			kernels->gelu_backward(COUNT_OF_X, x, g);
		else
			kernels->silu_backward(COUNT_OF_X, x, g);
		for (int j = 0; j < COUNT_OF_X; j++)
			kernel_compare(&error, (double)g[j],
				       (0.5 + j % 3) * slope(functions[i].f, (double)x[j]));
		kernel_check(&error, 2e-6, functions[i].gelu ? "gelu" : "silu");
	}
}

static void slopes_agree(void)
{
	each_isa(check_slopes);
}

/* Large arguments have the slope 0 or 1; NaN stays. */
static void check_limits(void)
{
	const float x[] = {1e30f, -1e30f, INFINITY, -1e3f, 1e3f, NAN};
	const float expected[] = {1, 0, 1, 0, 1, NAN};
	float g[COUNT_OF(x)];
	for (size_t i = 0; i < COUNT_OF(x); i++)
		g[i] = 1;
	kernels->gelu_backward(COUNT_OF(x), x, g);
	for (size_t i = 0; i < COUNT_OF(x); i++)
		CHECK(g[i] == expected[i] || (isnan(g[i]) && isnan(expected[i])), "gelu's limits");
}

static void slopes_have_limits(void)
{
	each_isa(check_limits);
}

/* Rows */

static const struct {
	int64_t rows, dim, stride; /* the last for sums alone */
} shapes[] = {{1, 1, 1}, {1, 72, 73}, {513, 17, 17}, {3, 67, 200}, {7, 1152, 1152}, {64, 16, 48}, {2, 1, 3}};

static void check_gates(void)
{
	uint64_t state = 3;
	for (size_t s = 0; s < COUNT_OF(shapes); s++) {
		const int64_t rows = shapes[s].rows, dim = shapes[s].dim, count = rows * dim;
		float *x = random_floats(count, &state), *z = random_floats(count, &state);
		float *gate = random_floats(dim, &state), *ggate = random_floats(dim, &state);
		float *y = fresh_floats(count), *plain = fresh_floats(count), *before = fresh_floats(dim);
		struct kernel_error error = {0};
		memcpy(before, ggate, (size_t)dim * sizeof(float));
		kernels->gated_sum(rows, dim, x, gate, z, y);
		kernels->gated_sum(rows, dim, x, NULL, z, plain);
		for (int64_t i = 0; i < count; i++) {
			kernel_compare(&error, (double)y[i],
				       (double)x[i] + (double)gate[i % dim] * (double)z[i]);
			kernel_compare(&error, (double)plain[i], (double)x[i] + (double)z[i]);
		}
		kernels->gate_backward(rows, dim, x, gate, z, y, ggate);
		for (int64_t d = 0; d < dim; d++) {
			double sum = (double)before[d];
			for (int64_t r = 0; r < rows; r++) {
				const int64_t i = r * dim + d;
				sum += (double)x[i] * (double)z[i];
				kernel_compare(&error, (double)y[i], (double)gate[d] * (double)x[i]);
			}
			kernel_compare(&error, (double)ggate[d], sum);
		}
		kernel_check(&error, 2e-6, label("gates", rows, dim, 0));
		float *const all[] = {x, z, gate, ggate, y, plain, before};
		for (size_t i = 0; i < COUNT_OF(all); i++)
			free(all[i]);
	}
}

static void gates_agree(void)
{
	each_isa(check_gates);
}

static void check_sums(void)
{
	uint64_t state = 4;
	for (size_t s = 0; s < COUNT_OF(shapes); s++)
		for (int add = 0; add < 2; add++) {
			const int64_t rows = shapes[s].rows, dim = shapes[s].dim, stride = shapes[s].stride;
			float *x = random_floats(rows * stride, &state), *y = random_floats(dim, &state);
			struct kernel_error error = {0};
			double *sum = calloc((size_t)dim, sizeof(*sum));
			for (int64_t i = 0; i < rows * dim; i++)
				sum[i % dim] += (double)x[i / dim * stride + i % dim] +
						(add && i < dim ? (double)y[i] : 0);
			kernels->column_sums(rows, dim, stride, x, add, y);
			for (int64_t d = 0; d < dim; d++)
				kernel_compare(&error, (double)y[d], sum[d]);
			kernel_check(&error, 2e-6, label("sums", rows, dim, add));
			free(sum);
			free(x);
			free(y);
		}
}

static void sums_agree(void)
{
	each_isa(check_sums);
}

/* Σ gy ⊙ (LN(x)·(1 + scale) + shift) of a row in double. */
static double layernorm_loss(int64_t dim, const double *x, const float *shift, const float *scale,
			     const float *gy, double epsilon)
{
	double mean = 0, variance = 0, sum = 0;
	for (int64_t i = 0; i < dim; i++)
		mean += x[i] / (double)dim;
	for (int64_t i = 0; i < dim; i++)
		variance += (x[i] - mean) * (x[i] - mean) / (double)dim;
	for (int64_t i = 0; i < dim; i++)
		sum += (double)gy[i] *
		       ((x[i] - mean) / sqrt(variance + epsilon) * (1 + (double)scale[i]) + (double)shift[i]);
	return sum;
}

/* One row by differences of the loss. */
static void check_layernorm_row(int64_t dim, double spread, bool add)
{
	const double epsilon = 1e-6, step = spread * 1e-5;
	uint64_t state = (uint64_t)dim;
	float *x = random_floats(dim, &state), *scale = random_floats(dim, &state);
	float *shift = random_floats(dim, &state), *gy = random_floats(dim, &state);
	float *gx = random_floats(dim, &state), *before = fresh_floats(dim);
	float *sums = random_floats(2 * dim, &state);
	double *at = calloc((size_t)dim, sizeof(*at));
	struct kernel_error error = {0};
	memcpy(before, gx, (size_t)dim * sizeof(float));
	const float shift_before = sums[0];
	for (int64_t i = 0; i < dim; i++)
		at[i] = (double)(x[i] = (float)(10 + spread * (double)x[i]));
	const struct smalti_layernorm_backward l = {1, dim, (float)epsilon, add};
	kernels->layernorm_modulate_backward(&l, x, scale, gy, gx, sums, sums + dim);
	for (int64_t i = 0; i < dim; i++) {
		const double middle = at[i];
		at[i] = middle + step;
		double rise = layernorm_loss(dim, at, shift, scale, gy, epsilon);
		at[i] = middle - step;
		rise -= layernorm_loss(dim, at, shift, scale, gy, epsilon);
		at[i] = middle;
		kernel_compare(&error, (double)gx[i], rise / (2 * step) + (add ? (double)before[i] : 0));
	}
	kernel_check(&error, 3e-5, label("layernorm", dim, add, 0));
	CHECK(sums[0] == shift_before + gy[0], "the shift's gradient is added to");
	float *const all[] = {x, scale, shift, gy, gx, before, sums};
	for (size_t i = 0; i < COUNT_OF(all); i++)
		free(all[i]);
	free(at);
}

static void check_layernorm(void)
{
	static const int64_t dims[] = {1, 2, 17, 72, 144, 1152};
	for (size_t i = 0; i < COUNT_OF(dims); i++)
		for (int add = 0; add < 2; add++)
			check_layernorm_row(dims[i], i % 2 ? 1 : 0.3, add);
}

static void layernorm_agrees(void)
{
	each_isa(check_layernorm);
}

/* Over many rows it is the sum of them, the scale's gradient that of gy ⊙ normal. */
static void layernorm_adds_rows(void)
{
	enum { ROWS = 513, DIM = 72 };
	uint64_t state = 9;
	float *x = random_floats(ROWS * DIM, &state), *gy = random_floats(ROWS * DIM, &state);
	float *gx = fresh_floats(ROWS * DIM), *normal = fresh_floats(ROWS * DIM);
	float scale[DIM], shift[DIM] = {0}, sums[2 * DIM] = {0};
	struct kernel_error error = {0};
	for (int i = 0; i < DIM; i++)
		scale[i] = 0;
	smalti_kernels()->layernorm_modulate(ROWS, DIM, x, 1e-6f, shift, scale, SMALTI_F32, normal);
	const struct smalti_layernorm_backward l = {ROWS, DIM, 1e-6f, false};
	smalti_kernels()->layernorm_modulate_backward(&l, x, scale, gy, gx, sums, sums + DIM);
	for (int d = 0; d < DIM; d++) {
		double first = 0, second = 0;
		for (int r = 0; r < ROWS; r++) {
			first += (double)gy[r * DIM + d];
			second += (double)gy[r * DIM + d] * (double)normal[r * DIM + d];
		}
		kernel_compare(&error, (double)sums[d], first);
		kernel_compare(&error, (double)sums[DIM + d], second);
	}
	kernel_check(&error, 1e-5, "sums of rows");
	free(x);
	free(gy);
	free(gx);
	free(normal);
}

/* Products */

/* The gradient is `out` columns, from `first` on, of rows of `stride`. */
struct linear {
	int64_t rows, in, out, stride, first;
};
static const struct linear products[] = {{1, 1, 1, 1, 0},     {1, 16, 72, 72, 0},    {513, 17, 5, 5, 0},
					 {7, 144, 33, 33, 0}, {100, 72, 72, 72, 0},  {1, 5, 1, 4, 3},
					 {513, 17, 5, 19, 7}, {7, 144, 33, 100, 67}, {100, 72, 72, 216, 72}};

static void check_linear(enum smalti_dtype compute, const struct linear *linear, bool add)
{
	const int64_t rows = linear->rows, in = linear->in, out = linear->out;
	uint64_t state = (uint64_t)(rows + in);
	float *gy = random_floats(rows * linear->stride, &state), *x = random_floats(rows * in, &state);
	float *w = random_floats(out * in, &state), *gx = random_floats(rows * in, &state);
	float *gw = random_floats(out * in, &state), *gb = random_floats(out, &state);
	double *expected = calloc((size_t)(rows * in + out * in + out), sizeof(*expected));
	double *ew = expected + rows * in, *eb = ew + out * in;
	for (int64_t i = 0; add && i < rows * in; i++)
		expected[i] = (double)gx[i];
	for (int64_t i = 0; add && i < out * in; i++)
		ew[i] = (double)gw[i];
	for (int64_t i = 0; add && i < out; i++)
		eb[i] = (double)gb[i];
	for (int64_t r = 0; r < rows; r++)
		for (int64_t o = 0; o < out; o++) {
			const float given = gy[r * linear->stride + linear->first + o];
			const double g = (double)smalti_round(compute, given);
			eb[o] += (double)given;
			for (int64_t i = 0; i < in; i++) {
				expected[r * in + i] += g * (double)smalti_round(compute, w[o * in + i]);
				ew[o * in + i] += g * (double)smalti_round(compute, x[r * in + i]);
			}
		}
	RUN(linear_input, (.gy = gy, .weight = w, .gx = gx), .rows = rows, .in = in, .out = out,
	    .stride = linear->stride, .first = linear->first, .compute = compute, .add = add);
	RUN(linear_weight, (.gy = gy, .x = x, .gweight = gw, .gbias = gb), .rows = rows, .in = in, .out = out,
	    .stride = linear->stride, .first = linear->first, .compute = compute, .add = add);
	struct kernel_error error = {0};
	for (int64_t i = 0; i < rows * in; i++)
		kernel_compare(&error, (double)gx[i], expected[i]);
	for (int64_t i = 0; i < out * in; i++)
		kernel_compare(&error, (double)gw[i], ew[i]);
	for (int64_t i = 0; i < out; i++)
		kernel_compare(&error, (double)gb[i], eb[i]);
	kernel_check(&error, 2e-6, label(smalti_dtype_name(compute), rows, in, out));
	float *const all[] = {gy, x, w, gx, gw, gb};
	for (size_t i = 0; i < COUNT_OF(all); i++)
		free(all[i]);
	free(expected);
}

static void linear_agrees(void)
{
	for (size_t i = 0; i < COUNT_OF(products); i++)
		for (int compute = SMALTI_F32; compute <= SMALTI_BF16; compute++)
			for (int add = 0; add < 2; add++)
				check_linear((enum smalti_dtype)compute, &products[i], add);
}

/* Attention */

static const struct {
	int64_t queries, keys, heads, dim;
} attentions[] = {{1, 1, 1, 1},     {1, 300, 2, 72},  {513, 7, 1, 72}, {5, 13, 3, 17},
		  {129, 257, 1, 8}, {40, 520, 2, 16}, {300, 1, 2, 24}};

struct attention_arrays {
	int64_t width;
	float *q, *kv, *gy; /* that the dtype has exactly, but gy */
	void *q_given, *kv_given, *y;
	float *lse, *gq, *gkv;
	double *eq, *ekv;
};

static int64_t kv_stride(const struct attention_backward_arguments *t)
{
	return 2 * t->heads * t->head_dim;
}

/* Of one head's query: the weights and, by them, the gradients. */
static void expect_query(const struct attention_arrays *a, const struct attention_backward_arguments *t,
			 int64_t query, int64_t head, double *p)
{
	const int64_t at = query * a->width + head * t->head_dim;
	double sum = 0, delta = 0;
	for (int64_t j = 0; j < t->keys; j++) {
		double score = 0;
		for (int64_t d = 0; d < t->head_dim; d++)
			score +=
			    (double)a->q[at + d] * (double)a->kv[j * kv_stride(t) + head * t->head_dim + d];
		p[j] = exp(score * (double)t->scale);
		sum += p[j];
	}
	double *gp = p + t->keys;
	for (int64_t j = 0; j < t->keys; j++) {
		const int64_t value = j * kv_stride(t) + a->width + head * t->head_dim;
		p[j] /= sum;
		gp[j] = 0;
		for (int64_t d = 0; d < t->head_dim; d++) {
			gp[j] += (double)a->gy[at + d] * (double)a->kv[value + d];
			a->ekv[value + d] += p[j] * (double)a->gy[at + d];
		}
		delta += p[j] * gp[j];
	}
	for (int64_t j = 0; j < t->keys; j++) {
		const double gs = p[j] * (gp[j] - delta) * (double)t->scale;
		for (int64_t d = 0; d < t->head_dim; d++) {
			const int64_t key = j * kv_stride(t) + head * t->head_dim + d;
			a->eq[at + d] += gs * (double)a->kv[key];
			a->ekv[key] += gs * (double)a->q[at + d];
		}
	}
	CHECK(fabs((double)a->lse[head * t->queries + query] - log2(sum)) < 0.01, "logarithm of the sum");
}

/* Rows of `width`, whose stride is that of both. */
static void compare_gradient(int64_t rows, int64_t width, int64_t stride, const float *found,
			     const double *expected, double tolerance, const char *what)
{
	struct kernel_error error = {0};
	for (int64_t row = 0; row < rows; row++, found += stride, expected += stride)
		for (int64_t i = 0; i < width; i++)
			kernel_compare(&error, (double)found[i], expected[i]);
	kernel_check(&error, tolerance, what);
}

/* Keys `from` to `to` of the attention; what is there is added to behind the first ones. */
static void run_keys(const struct attention_arrays *a, const struct attention_backward_arguments *t,
		     int64_t from, int64_t to)
{
	const int64_t offset = from * kv_stride(t), bytes = offset * smalti_dtype_bytes(t->dtype);
	RUN(attention_backward,
	    (.q = a->q_given, .kv = (char *)a->kv_given + bytes, .y = a->y, .lse = a->lse, .gy = a->gy,
	     .gq = a->gq, .gkv = a->gkv + offset),
	    .queries = t->queries, .keys = to - from, .heads = t->heads, .head_dim = t->head_dim,
	    .dtype = t->dtype, .scale = t->scale, .add_queries = from > 0);
}

/* Runs the forward of at most four blocks of keys by tasks of two. */
static void attend(const struct attention_arrays *a, const struct attention_backward_arguments *t)
{
	const int64_t block = t->keys / 4 + 1, bytes = kv_stride(t) * smalti_dtype_bytes(t->dtype);
	float *state = fresh_floats(smalti_attention_state(t->queries, t->heads, t->head_dim));
	for (int64_t from = 0; from < t->keys; from += 2 * block) {
		const int64_t middle = smalti_min(from + block, t->keys);
		const int64_t end = smalti_min(middle + block, t->keys);
		const char *kv = a->kv_given;
		RUN(attention,
		    (.q = a->q_given, .kv = {kv + from * bytes, end > middle ? kv + middle * bytes : NULL},
		     .state = state, .y = a->y, .lse = a->lse),
		    .queries = t->queries, .keys = {middle - from, end - middle}, .heads = t->heads,
		    .head_dim = t->head_dim, .dtype = t->dtype, .scale = t->scale, .first = from == 0,
		    .last = end == t->keys);
	}
	free(state);
}

static void check_attention(const struct attention_backward_arguments *t, double tolerance)
{
	uint64_t state = (uint64_t)(t->queries * 7 + t->keys);
	struct attention_arrays a = {.width = t->heads * t->head_dim};
	const int64_t queries = t->queries * a.width, keys = t->keys * kv_stride(t);
	a.q = kernel_random(queries, t->dtype, &state);
	a.kv = kernel_random(keys, t->dtype, &state);
	a.gy = kernel_random(queries, t->dtype, &state);
	a.q_given = kernel_given(a.q, queries, t->dtype);
	a.kv_given = kernel_given(a.kv, keys, t->dtype);
	a.y = kernel_array(queries, smalti_dtype_bytes(t->dtype));
	a.lse = fresh_floats(t->heads * t->queries);
	a.gq = fresh_floats(queries);
	a.gkv = fresh_floats(keys);
	a.eq = calloc((size_t)(queries + keys + 2 * t->keys), sizeof(double));
	a.ekv = a.eq + queries;
	attend(&a, t);
	for (int64_t head = 0; head < t->heads; head++)
		for (int64_t query = 0; query < t->queries; query++)
			expect_query(&a, t, query, head, a.ekv + keys);
	for (int cut = 0; cut < 2; cut++) {
		const int64_t middle = cut ? t->keys / 3 : 0;
		if (middle)
			run_keys(&a, t, 0, middle);
		run_keys(&a, t, middle, t->keys);
		compare_gradient(t->queries, a.width, a.width, a.gq, a.eq, tolerance,
				 label("queries", t->queries, t->keys, cut));
		compare_gradient(t->keys, a.width, kv_stride(t), a.gkv, a.ekv, tolerance,
				 label("keys", t->queries, t->keys, cut));
		compare_gradient(t->keys, a.width, kv_stride(t), a.gkv + a.width, a.ekv + a.width, tolerance,
				 label("values", t->queries, t->keys, cut));
	}
	void *const all[] = {a.q, a.kv, a.gy, a.q_given, a.kv_given, a.y, a.lse, a.gq, a.gkv, a.eq};
	for (size_t i = 0; i < COUNT_OF(all); i++)
		free(all[i]);
}

static void attention_agrees(void)
{
	static const double tolerances[] = {[SMALTI_F32] = 5e-6, [SMALTI_F16] = 2e-3, [SMALTI_BF16] = 2e-2};
	for (size_t i = 0; i < COUNT_OF(attentions); i++)
		for (int dtype = SMALTI_F32; dtype <= SMALTI_BF16; dtype++) {
			const struct attention_backward_arguments t = {
			    .queries = attentions[i].queries,
			    .keys = attentions[i].keys,
			    .heads = attentions[i].heads,
			    .head_dim = attentions[i].dim,
			    .dtype = (enum smalti_dtype)dtype,
			    .scale = (float)(3 / sqrt((double)attentions[i].dim)),
			};
			check_attention(&t, tolerances[dtype]);
		}
}

static void attention_refuses_nonsense(void)
{
	static const struct attention_backward_arguments cases[] = {
	    {.queries = 0, .keys = 1, .heads = 1, .head_dim = 1},
	    {.queries = 1, .keys = 0, .heads = 1, .head_dim = 1},
	    {.queries = 1, .keys = 1, .heads = 0, .head_dim = 1},
	    {.queries = 1, .keys = 1, .heads = 1, .head_dim = 1025},
	    {.queries = INT64_MAX, .keys = 1, .heads = 1, .head_dim = 1},
	};
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const struct attention_backward_data none = {.q = NULL};
		int status = smalti_cpu_attention_backward(&none, &cases[i], &error);
		FAILS(status, &error, SMALTI_EINVAL, "extents", "expected 1 to");
	}
}

static const struct test tests[] = {
    {"slopes agree with differences", slopes_agree},
    {"slopes have limits", slopes_have_limits},
    {"gates agree with double", gates_agree},
    {"sums agree with double", sums_agree},
    {"layernorm agrees with differences", layernorm_agrees},
    {"layernorm adds rows", layernorm_adds_rows},
    {"linear layers agree with double", linear_agrees},
    {"attention agrees with double", attention_agrees},
    {"attention refuses nonsense", attention_refuses_nonsense},
};

TEST_MAIN("backward", tests)
