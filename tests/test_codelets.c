/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of operations, and what the codelets of weights and transformers do between a task's buffers and
 * the kernels.
 */
#include "codelet_case.h"
#include "kernels/attention.h"
#include "kernels/bias_form.h"
#include "kernels/conditioning.h"
#include "kernels/kernels.h"
#include "kernels/matmul.h"
#include "rt/op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void table(void)
{
	for (int i = 0; i < SMALTI_OPS; i++) {
		const struct smalti_op *op = &smalti_ops[i];
		CHECK(op->name && op->name[0] && op->run && op->flops, "row");
		int buffers = 0;
		for (int kind = 0; kind < op->buffer_kinds; kind++) {
			CHECK(op->buffers[kind].name[0] && op->buffers[kind].count >= 1, op->name);
			buffers += op->buffers[kind].count;
		}
		CHECK(buffers >= 1 && buffers <= SMALTI_MAX_BUFFERS, op->name);
		CHECK(op->arguments_size <= SMALTI_MAX_ARGUMENTS, op->name);
		for (int j = 0; j < i; j++)
			CHECK(strcmp(op->name, smalti_ops[j].name) != 0, op->name);
	}
}

/* Weights */

static const enum smalti_dtype dtypes[3] = {SMALTI_F16, SMALTI_F32, SMALTI_BF16};

/* Values in parts of different dtypes, as a file has them. */
struct parts {
	struct smalti_weight_source source;
	struct misaligned part[3];
	float *values;
};

static struct parts given(enum smalti_weight_kind kind, int parts, const int64_t counts[3], uint64_t *state)
{
	struct parts p = {.source = {.kind = kind, .parts = parts}};
	p.values = random_floats(counts[0] + counts[1] + counts[2], state);
	for (int64_t i = 0, at = 0; i < parts; at += counts[i++]) {
		p.part[i] = kernel_misalign(dtypes[i], p.values + at, counts[i]);
		p.source.part[i] = view_of(dtypes[i], p.part[i].data, counts[i]);
	}
	return p;
}

static void drop(struct parts *p)
{
	for (int i = 0; i < 3; i++)
		free(p->part[i].block);
	free(p->values);
}

static void vectors(void)
{
	static const int64_t counts[3] = {5, 17, 1};
	uint64_t state = 1;
	for (int parts = 1; parts <= 3; parts++)
		for (int device = 0; device < SMALTI_DEVICE_KINDS; device++) {
			struct parts p = given(SMALTI_WEIGHT_VECTOR, parts, counts, &state);
			const int64_t total = parts == 1 ? 5 : parts == 2 ? 22 : 23;
			float *found = form_of(&p.source, (enum smalti_device_kind)device);
			CHECK(memcmp(found, p.values, (size_t)total * sizeof(float)) == 0,
			      "the parts as f32");
			free(found);
			drop(&p);
		}
}

/* Devices have a bias in f32, and behind it rounded to what is multiplied. */
static void bias(void)
{
	enum { ALL = 5 + 17 + 1 };
	static const int64_t counts[3] = {5, 17, 1};
	uint64_t state = 1;
	for (int compute = SMALTI_F16; compute <= SMALTI_BF16; compute++) {
		struct parts p = given(SMALTI_WEIGHT_VECTOR, 3, counts, &state);
		uint16_t rounded[ALL];
		p.source.compute = (enum smalti_dtype)compute;
		char *found = form_of(&p.source, SMALTI_DEVICE_GPU);
		float *of_cpu = form_of(&p.source, SMALTI_DEVICE_CPU);
		smalti_narrow(p.source.compute, p.values, ALL, rounded);
		CHECK(memcmp(of_cpu, p.values, ALL * sizeof(float)) == 0, "a CPU's");
		CHECK(memcmp(found, p.values, ALL * sizeof(float)) == 0, "in f32");
		CHECK(memcmp(found + smalti_bias_rounded(ALL), rounded, sizeof(rounded)) == 0,
		      smalti_dtype_name(p.source.compute));
		free(found);
		free(of_cpu);
		drop(&p);
	}
}

/* A device has a matrix as it is, rounded to what is multiplied. */
static void plain_matrix(void)
{
	enum { IN = 7, OUT = 6, COUNT_OF_ALL = IN * OUT };
	static const int64_t counts[3] = {2 * IN, 2 * IN, 2 * IN};
	uint64_t state = 7;
	for (int compute = SMALTI_F32; compute <= SMALTI_BF16; compute++) {
		float rounded[COUNT_OF_ALL];
		struct parts p = given(SMALTI_WEIGHT_MATRIX, 3, counts, &state);
		p.source.in = IN, p.source.out = OUT, p.source.compute = (enum smalti_dtype)compute;
		void *found = form_of(&p.source, SMALTI_DEVICE_GPU);
		smalti_narrow(p.source.compute, p.values, COUNT_OF_ALL, rounded);
		const int64_t bytes = COUNT_OF_ALL * smalti_dtype_bytes(p.source.compute);
		CHECK(memcmp(found, rounded, (size_t)bytes) == 0, smalti_dtype_name(p.source.compute));
		free(found);
		drop(&p);
	}
}

/* … and a convolution's weights with the channels last. */
static void plain_kernel(void)
{
	enum { IN = 5, OUT = 3, TAPS = 9 };
	uint64_t state = 8;
	struct parts p = given(SMALTI_WEIGHT_KERNEL, 1, (const int64_t[3]){IN * OUT * TAPS}, &state);
	p.source.in = IN, p.source.out = OUT, p.source.stride = 1;
	const float *found = form_of(&p.source, SMALTI_DEVICE_GPU);
	for (int i = 0; i < IN * OUT * TAPS; i++) {
		const int out = i / (IN * TAPS), in = i / TAPS % IN, tap = i % TAPS;
		CHECK(found[(out * TAPS + tap) * IN + in] == p.values[i], "channels last");
	}
	free((void *)(uintptr_t)found);
	drop(&p);
}

/* x·Wᵀ in double */
static double product(const float *x, const float *w, int64_t in)
{
	double sum = 0;
	for (int64_t i = 0; i < in; i++)
		sum += (double)x[i] * (double)w[i];
	return sum;
}

/* W [out, in] of `parts` stacked parts in different dtypes; the widened values in *w. Free both. */
static void *pack(int parts, int64_t in, int64_t out, enum smalti_dtype compute, float **w, uint64_t *state)
{
	const int64_t count = in * out / parts;
	struct parts p = given(SMALTI_WEIGHT_MATRIX, parts, (const int64_t[3]){count, count, count}, state);
	p.source.in = in, p.source.out = out, p.source.compute = compute;
	void *packed = form_of(&p.source, SMALTI_DEVICE_CPU);
	*w = p.values;
	p.values = NULL;
	drop(&p);
	return packed;
}

static void linear(void)
{
	enum { ROWS = 3, IN = 13, OUT = 12, GATES = 4, GATE_ROW = 2 };
	uint64_t state = 2;
	for (int parts = 1; parts <= 3; parts++) {
		float *w, *x = random_floats(ROWS * IN, &state), *bias = random_floats(OUT, &state);
		float *gates = random_floats(GATES * OUT, &state),
		      *before = random_floats(ROWS * OUT, &state);
		void *packed = pack(parts, IN, OUT, SMALTI_F32, &w, &state);
		float y[ROWS * OUT], gated[ROWS * OUT];
		memcpy(gated, before, sizeof(gated));
		RUN(matmul, (.x = x, .weight = packed, .bias = bias, .y = y), .rows = ROWS, .in = IN,
		    .out = OUT);
		RUN(matmul, (.x = x, .weight = packed, .bias = bias, .gate = gates, .y = gated), .rows = ROWS,
		    .in = IN, .out = OUT, .epilogue = SMALTI_EPILOGUE_GATE_ADD, .gate_row = GATE_ROW);
		for (int i = 0; i < ROWS * OUT; i++) {
			int column = i % OUT;
			double z = product(x + i / OUT * IN, w + column * IN, IN) + (double)bias[column];
			double gate = (double)gates[GATE_ROW * OUT + column];
			CHECK(fabs((double)y[i] - z) < 1e-5, "stacked parts");
			CHECK(fabs((double)gated[i] - ((double)before[i] + gate * z)) < 1e-5, "gate row");
		}
		free(w);
		free(x);
		free(bias);
		free(gates);
		free(before);
		free(packed);
	}
}

/* f32 activations are rounded to the dtype of the products, as ones of 16 bits are given. */
static void linear_of(enum smalti_dtype compute)
{
	enum { ROWS = 5, IN = 33, OUT = 7 };
	uint64_t state = 3;
	float *w, *x = random_floats(ROWS * IN, &state), y[ROWS * OUT], y_rounded[ROWS * OUT];
	uint16_t rounded[ROWS * IN];
	void *packed = pack(1, IN, OUT, compute, &w, &state);
	smalti_narrow(compute, x, ROWS * IN, rounded);
	RUN(matmul, (.x = x, .weight = packed, .y = y), .rows = ROWS, .in = IN, .out = OUT,
	    .x_dtype = SMALTI_F32, .compute = compute);
	RUN(matmul, (.x = rounded, .weight = packed, .y = y_rounded), .rows = ROWS, .in = IN, .out = OUT,
	    .x_dtype = compute, .compute = compute);
	CHECK(memcmp(y, y_rounded, sizeof(y)) == 0, "rounding on the way in");
	smalti_widen(compute, rounded, ROWS * IN, x);
	for (int i = 0; i < ROWS * OUT; i++) {
		const float *row = w + i % OUT * IN;
		double sum = 0;
		for (int j = 0; j < IN; j++)
			sum += (double)x[i / OUT * IN + j] * (double)smalti_round(compute, row[j]);
		CHECK(fabs((double)y[i] - sum) < 1e-4, smalti_dtype_name(compute));
	}
	free(w);
	free(x);
	free(packed);
}

static void linear_16_bits(void)
{
	linear_of(SMALTI_F16);
	linear_of(SMALTI_BF16);
}

/* As the packed ones, from each part's own dtype. */
static void linear_raw(void)
{
	enum { ROWS = 3, IN = 13, OUT = 12, GATES = 4, GATE_ROW = 2 };
	uint64_t state = 20;
	for (int parts = 1; parts <= 3; parts++) {
		float *w = random_floats(IN * OUT, &state), *x = random_floats(ROWS * IN, &state);
		float *gates = random_floats(GATES * OUT, &state), *bias = random_floats(OUT, &state);
		float *before = random_floats(ROWS * OUT, &state), y[ROWS * OUT], gated[ROWS * OUT];
		struct misaligned part[3] = {{NULL, NULL}};
		for (int i = 0; i < parts; i++)
			part[i] = kernel_misalign(dtypes[i], w + i * (OUT / parts) * IN, OUT / parts * IN);
		const struct matmul_arguments plain = {.rows = ROWS, .in = IN, .out = OUT};
		const struct matmul_arguments gate = {.rows = ROWS,
						      .in = IN,
						      .out = OUT,
						      .epilogue = SMALTI_EPILOGUE_GATE_ADD,
						      .gate_row = GATE_ROW};
		const int64_t each = OUT / parts;
		memcpy(gated, before, sizeof(gated));
		RUN(matmul_raw,
		    (.x = x, .part0 = part[0].data, .part1 = part[1].data, .part2 = part[2].data,
		     .bias = bias, .y = y),
		    .matmul = plain, .dtype = {dtypes[0], dtypes[1], dtypes[2]},
		    .part_out = {each, each, each});
		RUN(matmul_raw,
		    (.x = x, .part0 = part[0].data, .part1 = part[1].data, .part2 = part[2].data,
		     .bias = bias, .gate = gates, .y = gated),
		    .matmul = gate, .dtype = {dtypes[0], dtypes[1], dtypes[2]},
		    .part_out = {each, each, each});
		for (int i = 0; i < ROWS * OUT; i++) {
			int column = i % OUT;
			double z = product(x + i / OUT * IN, w + column * IN, IN) + (double)bias[column];
			double factor = (double)gates[GATE_ROW * OUT + column];
			CHECK(fabs((double)y[i] - z) < 1e-5, "raw parts");
			CHECK(fabs((double)gated[i] - ((double)before[i] + factor * z)) < 1e-5, "gate row");
		}
		for (int i = 0; i < 3; i++)
			free(part[i].block);
		free(w);
		free(x);
		free(gates);
		free(bias);
		free(before);
	}
}

/* By the library: of one to three parts in one dtype, rounded to another, with results that are added or
 * converted. */
static void linear_dense_of(const int shape[3], int parts, enum smalti_dtype from, enum smalti_dtype compute,
			    enum smalti_dtype result, bool add)
{
	const int rows = shape[0], in = shape[1], out = shape[2];
	const int one = parts == 1 ? out : out / 2, two = parts == 2 ? out - one : (out - one) / 3;
	uint64_t state = 21;
	float *w = random_floats(in * out, &state), *x = random_floats(rows * in, &state);
	float *bias = random_floats(out, &state), *y = random_floats(rows * out, &state);
	float *before = smalti_calloc(rows * out, sizeof(*before), NULL);
	char *weight = smalti_calloc(in * out, sizeof(float), NULL);
	const int64_t row = in * smalti_dtype_bytes(from);
	memcpy(before, y, (size_t)(rows * out) * sizeof(*before));
	smalti_kernels()->convert(in * out, SMALTI_F32, w, from, weight);
	smalti_kernels()->convert(in * out, from, weight, SMALTI_F32, w);
	RUN(matmul_raw,
	    (.x = x, .part0 = weight, .part1 = parts > 1 ? weight + one * row : NULL,
	     .part2 = parts > 2 ? weight + (one + two) * row : NULL, .bias = bias, .y = y),
	    .matmul = {.rows = rows,
		       .in = in,
		       .out = out,
		       .compute = compute,
		       .result = result,
		       .epilogue = add ? SMALTI_EPILOGUE_ADD : SMALTI_EPILOGUE_NONE},
	    .dtype = {from, from, from}, .part_out = {one, two, out - one - two}, .dense = true);
	float *found = smalti_calloc(rows * out, sizeof(*found), NULL);
	smalti_kernels()->convert(rows * out, result, y, SMALTI_F32, found);
	for (int i = 0; i < rows * out; i++) {
		double z = (double)bias[i % out] + (add ? (double)before[i] : 0), size = 1 + fabs(z);
		for (int j = 0; j < in; j++) {
			const double term = (double)smalti_round(compute, x[i / out * in + j]) *
					    (double)smalti_round(compute, w[i % out * in + j]);
			z += term;
			size += fabs(term);
		}
		const double step = result == SMALTI_F32 ? 1e-6 : result == SMALTI_F16 ? 1e-3 : 8e-3;
		CHECK(fabs((double)found[i] - z) <= 1e-6 * size + step * fabs(z), smalti_dtype_name(compute));
	}
	free(w), free(x), free(bias), free(y), free(before), free(weight), free(found);
}

static void linear_dense(void)
{
	static const struct {
		int shape[3], parts;
	} cases[] = {{{1, 1, 1}, 1},     {{3, 13, 12}, 3}, {{67, 129, 31}, 1}, {{67, 129, 31}, 2},
		     {{67, 129, 31}, 3}, {{5, 1, 40}, 2},  {{64, 64, 64}, 1},  {{64, 64, 96}, 3}};
	static const enum smalti_dtype types[] = {SMALTI_F32, SMALTI_F16, SMALTI_BF16};
	for (size_t i = 0; i < COUNT_OF(cases) * COUNT_OF(types) * COUNT_OF(types); i++) {
		const enum smalti_dtype from = types[i % COUNT_OF(types)];
		const enum smalti_dtype compute = types[i / COUNT_OF(types) % COUNT_OF(types)];
		const int *shape = cases[i / COUNT_OF(types) / COUNT_OF(types)].shape;
		const int parts = cases[i / COUNT_OF(types) / COUNT_OF(types)].parts;
		linear_dense_of(shape, parts, from, compute, SMALTI_F32, true);
		linear_dense_of(shape, parts, from, compute, SMALTI_F32, false);
		linear_dense_of(shape, parts, from, compute, compute, false);
	}
}

/* Attention of blocks of queries on blocks of keys, with a bias by distance in the whole sequence. */

enum { TOKENS = 11, HEADS = 2, HEAD_DIM = 5, WIDTH = HEADS * HEAD_DIM, BIAS = 2 * TOKENS - 1 };

static const float attention_scale = 0.4f;

static void naive_attention(const float *q, const float *kv, const float *bias, double *y, double *lse)
{
	for (int i = 0; i < TOKENS; i++)
		for (int h = 0; h < HEADS; h++) {
			double weight[TOKENS], total = 0;
			for (int j = 0; j < TOKENS; j++) {
				weight[j] = exp((double)attention_scale *
						    product(q + i * WIDTH + h * HEAD_DIM,
							    kv + j * 2 * WIDTH + h * HEAD_DIM, HEAD_DIM) +
						(double)bias[h * BIAS + j - i + TOKENS - 1]);
				total += weight[j];
			}
			lse[h * TOKENS + i] = log2(total);
			for (int d = 0; d < HEAD_DIM; d++) {
				double sum = 0;
				for (int j = 0; j < TOKENS; j++)
					sum +=
					    weight[j] * (double)kv[j * 2 * WIDTH + WIDTH + h * HEAD_DIM + d];
				y[i * WIDTH + h * HEAD_DIM + d] = sum / total;
			}
		}
}

/* The next task's blocks of `block` keys, at most `max`, from a->first_key on; where they end. */
static int take_blocks(struct attention_arguments *a, const void **blocks, const float *kv, int block,
		       int max)
{
	int key = (int)a->first_key;
	for (int i = 0; i < SMALTI_MANY; i++) {
		const bool given = i < max && key < TOKENS;
		blocks[i] = given ? kv + key * 2 * WIDTH : NULL;
		a->keys[i] = !given ? 0 : key + block < TOKENS ? block : TOKENS - key;
		key += (int)a->keys[i];
	}
	return key;
}

/* All keys in blocks of `block`, `max` of them to a task, for the queries from `first` on. */
static void attend(const float *q, const float *kv, const float *bias, int first, int queries, int block,
		   int max, float *y, float *lse)
{
	float *state = fresh_floats(smalti_attention_state(queries, HEADS, HEAD_DIM));
	struct attention_arguments a = {.queries = queries,
					.heads = HEADS,
					.head_dim = HEAD_DIM,
					.scale = attention_scale,
					.bias_reach = TOKENS,
					.first_query = first};
	struct smalti_error error = SMALTI_NO_ERROR;
	for (int end; a.first_key < TOKENS; a.first_key = end) {
		struct attention_data data = {.q = q, .bias = bias, .state = state, .y = y, .lse = lse};
		end = take_blocks(&a, data.kv, kv, block, max);
		a.first = a.first_key == 0;
		a.last = end == TOKENS;
		SUCCEEDS(smalti_cpu_attention(&data, &a, &error), &error, "attention");
	}
	free(state);
}

static void attention(void)
{
	uint64_t state = 6;
	float *q = random_floats(TOKENS * WIDTH, &state), *kv = random_floats(TOKENS * 2 * WIDTH, &state);
	float *bias = random_floats(HEADS * BIAS, &state), y[TOKENS * WIDTH], lse[HEADS * TOKENS];
	double expected[TOKENS * WIDTH], expected_lse[HEADS * TOKENS], largest = 0;
	naive_attention(q, kv, bias, expected, expected_lse);
	for (int i = 0; i < (TOKENS + 1) / 2 * TOKENS; i++) {
		const int block = 1 + i % TOKENS, queries = 1 + i / TOKENS * 2;
		for (int first = 0; first < TOKENS; first += queries) {
			const int count = first + queries < TOKENS ? queries : TOKENS - first;
			attend(q + first * WIDTH, kv, bias, first, count, block, 1 + block % 3,
			       y + first * WIDTH, lse);
			for (int j = 0; j < HEADS * count; j++)
				largest =
				    fmax(largest, fabs((double)lse[j] -
						       expected_lse[j / count * TOKENS + first + j % count]));
		}
		for (int j = 0; j < TOKENS * WIDTH; j++)
			largest = fmax(largest, fabs((double)y[j] - expected[j]));
	}
	CHECK(largest < 1e-5, "attention in blocks");
	free(q);
	free(kv);
	free(bias);
}

/* Every band of tokens gets the columns and rows of its own patches. */
static void patch_embed(void)
{
	enum { COLUMNS = 3, ROWS = 4, IN = 2, DIM = 8, HALF = DIM / 2 };
	uint64_t state = 7;
	float *w, *x = random_floats(COLUMNS * ROWS * IN, &state), *bias = random_floats(DIM, &state);
	float positions[(COLUMNS + ROWS) * HALF], expected[(COLUMNS + ROWS) * HALF], y[COLUMNS * ROWS * DIM];
	void *packed = pack(1, IN, DIM, SMALTI_F32, &w, &state);
	RUN(positions, (.table = positions), .columns = COLUMNS, .rows = ROWS, .dim = DIM, .base = 3,
	    .interpolation_scale = 0.5);
	smalti_positions(COLUMNS, ROWS, DIM, 3, 0.5, expected);
	CHECK(memcmp(positions, expected, sizeof(expected)) == 0, "positions");
	for (int64_t band = 1; band <= COLUMNS * ROWS; band++) {
		for (int64_t first = 0; first < COLUMNS * ROWS; first += band) {
			int64_t left = COLUMNS * ROWS - first;
			RUN(patch_embed,
			    (.x = x + first * IN, .weight = packed, .bias = bias, .positions = positions,
			     .y = y + first * DIM),
			    .rows = left < band ? left : band, .in = IN, .out = DIM, .first = first,
			    .columns = COLUMNS, .input_scale = 0.25f);
		}
		double largest = 0;
		for (int i = 0; i < COLUMNS * ROWS * DIM; i++) {
			int n = i / DIM, d = i % DIM;
			int row = d < HALF ? n % COLUMNS : COLUMNS + n / COLUMNS;
			double z = 0.25 * product(x + n * IN, w + d * IN, IN) + (double)bias[d] +
				   (double)positions[row * HALF + d % HALF];
			largest = fmax(largest, fabs((double)y[i] - z));
		}
		CHECK(largest < 1e-5, "patch_embed");
	}
	free(w);
	free(x);
	free(bias);
	free(packed);
}

static const struct test tests[] = {
    {"table", table},
    {"weights: vectors", vectors},
    {"weights: bias", bias},
    {"weights: plain matrix", plain_matrix},
    {"weights: plain kernel", plain_kernel},
    {"linear: stacked parts, gate row", linear},
    {"linear: bf16", linear_16_bits},
    {"linear: raw parts", linear_raw},
    {"linear: by the library", linear_dense},
    {"attention in blocks", attention},
    {"patch_embed", patch_embed},
};

TEST_MAIN("codelets", tests)
