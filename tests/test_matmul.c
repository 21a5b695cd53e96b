/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "kernel_case.h"
#include "kernels/scratch.h"
#include "matmul_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	int64_t rows, in, out;
} shapes[] = {
    {1, 1, 1},     {1, 16, 32},    {7, 16, 7},    {3, 1, 17},    {13, 17, 19}, {64, 144, 432}, {61, 145, 97},
    {200, 72, 32}, {5, 1152, 144}, {1, 333, 257}, {67, 32, 129}, {33, 257, 1}, {9, 2100, 200},
};

/* One case: the operands as f32 values that `compute` and `result` represent exactly, and as given. */
struct operands {
	struct smalti_matmul matmul;
	float *x, *w, *bias, *operand, *y;
	void *x_given, *operand_given, *packed;
	double *expected;
};

static void compute_expected(struct operands *o)
{
	const struct smalti_matmul *m = &o->matmul;
	for (int64_t row = 0; row < m->rows; row++)
		for (int64_t column = 0; column < m->out; column++) {
			double z = o->bias ? (double)o->bias[column] : 0;
			for (int64_t k = 0; k < m->in; k++)
				z += (double)o->x[row * m->in + k] * (double)o->w[column * m->in + k];
			const int64_t at = row * m->out + column;
			const bool gated = m->epilogue == SMALTI_EPILOGUE_GATE_ADD;
			o->expected[at] = matmul_finish(m->epilogue, z, (double)o->y[at],
							(double)o->operand[gated ? column : at]);
		}
}

static struct operands make(struct smalti_matmul matmul, bool bias)
{
	uint64_t state = 1;
	int64_t y_count = matmul.rows * matmul.out;
	struct operands o = {.matmul = matmul};
	o.x = kernel_random(matmul.rows * matmul.in, matmul.compute, &state);
	o.w = kernel_random(matmul.in * matmul.out, matmul.compute, &state);
	o.bias = bias ? kernel_random(matmul.out, SMALTI_F32, &state) : NULL;
	o.operand = kernel_random(y_count, matmul.result, &state);
	o.y = kernel_random(y_count, matmul.result, &state);
	o.x_given = kernel_given(o.x, matmul.rows * matmul.in, matmul.compute);
	o.operand_given = kernel_given(o.operand, y_count, matmul.result);
	o.expected = kernel_array(y_count, sizeof(double));
	compute_expected(&o);

	struct smalti_error error = SMALTI_NO_ERROR;
	int64_t bytes = smalti_matmul_packed_bytes(matmul.in, matmul.out, matmul.compute, &error);
	SUCCEEDS(bytes < 0 ? -1 : 0, &error, "packed bytes");
	o.packed = kernel_array(bytes, 1);
	struct smalti_weight_part part = {o.w, SMALTI_F32, matmul.out};
	SUCCEEDS(smalti_matmul_pack(matmul.in, matmul.out, matmul.compute, &part, 1,
				    (struct smalti_packed){o.packed, bytes}, &error),
		 &error, "pack");
	return o;
}

static void drop(struct operands *o)
{
	free(o->x);
	free(o->w);
	free(o->bias);
	free(o->operand);
	free(o->y);
	free(o->x_given);
	free(o->operand_given);
	free(o->expected);
	free(o->packed);
}

/* A new result, starting from the values of y that some epilogues add to. */
static void *run(const struct operands *o, const char *what)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	void *y = kernel_given(o->y, o->matmul.rows * o->matmul.out, o->matmul.result);
	bool has_operand =
	    o->matmul.epilogue == SMALTI_EPILOGUE_GATE_ADD || o->matmul.epilogue == SMALTI_EPILOGUE_MULTIPLY;
	SUCCEEDS(smalti_matmul(&o->matmul, o->x_given, o->packed, o->bias,
			       has_operand ? o->operand_given : NULL, y, &error),
		 &error, what);
	return y;
}

static void check_case(struct smalti_matmul matmul, bool bias)
{
	char what[160];
	snprintf(what, sizeof(what), "%lldx%lldx%lld %s->%s %s%s", (long long)matmul.rows,
		 (long long)matmul.in, (long long)matmul.out, smalti_dtype_name(matmul.compute),
		 smalti_dtype_name(matmul.result), epilogue_names[matmul.epilogue], bias ? " bias" : "");
	struct operands o = make(matmul, bias);
	void *y = run(&o, what), *again = run(&o, what);
	int64_t count = matmul.rows * matmul.out;
	CHECK(!memcmp(y, again, (size_t)(count * smalti_dtype_bytes(matmul.result))), what);
	float *wide = kernel_array(count, 4);
	smalti_widen(matmul.result, y, count, wide);
	struct kernel_error off = {0};
	for (int64_t i = 0; i < count; i++)
		kernel_compare(&off, (double)wide[i], o.expected[i]);
	kernel_check(&off, matmul_tolerance(&matmul), what);
	free(wide);
	free(y);
	free(again);
	drop(&o);
}

static void agrees_with_plain_sums(void)
{
	for (int s = 0; s < COUNT(shapes); s++)
		for (int d = 0; d < MATMUL_DTYPES; d++)
			for (int e = 0; e < SMALTI_EPILOGUES; e++) {
				if (!matmul_has((enum smalti_epilogue)e, matmul_dtypes[d].result))
					continue;
				struct smalti_matmul matmul = {
				    shapes[s].rows,          shapes[s].in,
				    shapes[s].out,           matmul_dtypes[d].compute,
				    matmul_dtypes[d].result, (enum smalti_epilogue)e};
				check_case(matmul, true);
				check_case(matmul, false);
			}
}

/* Parts of other dtypes at odd addresses stack to what one part of the same values gives. */
static void packs_stacked_parts(void)
{
	enum { IN = 4099, ROWS = 83 }; /* more than one panel */
	static const enum smalti_dtype part_dtypes[] = {SMALTI_F16, SMALTI_BF16, SMALTI_F32, SMALTI_F16};
	static const int64_t part_rows[] = {29, 41, 0, 13};
	for (enum smalti_dtype compute = SMALTI_F32; compute <= SMALTI_BF16; compute++) {
		uint64_t state = 7;
		float *w = kernel_random(IN * ROWS, SMALTI_F32, &state);
		struct smalti_weight_part parts[4];
		struct misaligned odd[4];
		for (int p = 0, row = 0; p < 4; row += (int)part_rows[p++]) {
			int64_t count = part_rows[p] * IN;
			odd[p] = kernel_misalign(part_dtypes[p], w + (int64_t)row * IN, count);
			parts[p] = (struct smalti_weight_part){odd[p].data, part_dtypes[p], part_rows[p]};
		}
		struct smalti_error error = SMALTI_NO_ERROR;
		int64_t bytes = smalti_matmul_packed_bytes(IN, ROWS, compute, &error);
		char *stacked = kernel_array(bytes, 1), *whole = kernel_array(bytes, 1);
		memset(stacked, 0x55, (size_t)bytes);
		memset(whole, 0xaa, (size_t)bytes);
		struct smalti_weight_part one = {w, SMALTI_F32, ROWS};
		SUCCEEDS(smalti_matmul_pack(IN, ROWS, compute, parts, 4,
					    (struct smalti_packed){stacked, bytes}, &error),
			 &error, "parts");
		SUCCEEDS(smalti_matmul_pack(IN, ROWS, compute, &one, 1, (struct smalti_packed){whole, bytes},
					    &error),
			 &error, "whole");
		CU_ASSERT_EQUAL(memcmp(stacked, whole, (size_t)bytes), 0);
		FAILS(smalti_matmul_pack(IN, ROWS + 1, compute, parts, 4,
					 (struct smalti_packed){stacked, bytes}, &error),
		      &error, SMALTI_EINVAL, "a row too few", "83", "84");
		for (int p = 0; p < 4; p++)
			free(odd[p].block);
		free(stacked);
		free(whole);
		free(w);
	}
}

/* Weights of more than one staged chunk: a column of W is picked out by a row of the identity. */
static void packs_in_chunks(void)
{
	enum { IN = 1031, OUT = 777 };
	struct smalti_matmul matmul = {3, IN, OUT, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE};
	struct operands o = make(matmul, false);
	static const int64_t picked[] = {0, 517, IN - 1};
	float *x = o.x_given;
	memset(x, 0, 3 * IN * sizeof(*x));
	for (int i = 0; i < 3; i++)
		x[i * IN + picked[i]] = 1;
	float *y = run(&o, "chunks");
	for (int i = 0; i < 3; i++)
		for (int64_t column = 0; column < OUT; column++)
			if (y[i * OUT + column] != o.w[column * IN + picked[i]])
				CU_FAIL("a weight is out of place");
	free(y);
	drop(&o);
}

static int call(const void *operands, void *y, struct smalti_error *error)
{
	const struct operands *o = operands;
	return smalti_matmul(&o->matmul, o->x_given, o->packed, o->bias, NULL, y, error);
}

/* Two threads at once give the bits of one; what they held is given back when they end. */
static void threads_agree(void)
{
	for (enum smalti_dtype compute = SMALTI_F32; compute <= SMALTI_BF16; compute++) {
		const enum smalti_dtype result = compute ? compute : SMALTI_BF16;
		struct smalti_matmul matmul = {61, 145, 97, compute, result, SMALTI_EPILOGUE_GELU};
		struct operands o = make(matmul, true);
		void *alone = run(&o, "alone");
		int64_t held = smalti_scratch_held();
		kernel_check_threads(call, &o, alone, (int64_t)61 * 97 * 2);
		CU_ASSERT_EQUAL(smalti_scratch_held(), held);
		free(alone);
		drop(&o);
	}
}

/* Operands at any multiple of 4 bytes give the same bits. */
static void alignment_does_not_matter(void)
{
	enum { ROWS = 37, IN = 65, OUT = 83 };
	struct smalti_matmul matmul = {ROWS, IN, OUT, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_SILU};
	struct operands o = make(matmul, true);
	void *y = run(&o, "aligned");
	float *x = kernel_array(ROWS * IN + 3, 4), *shifted = kernel_array(ROWS * OUT + 5, 4);
	memcpy(x + 3, o.x_given, sizeof(float) * ROWS * IN);
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_matmul(&matmul, x + 3, o.packed, o.bias, NULL, shifted + 5, &error), &error,
		 "shifted");
	CU_ASSERT_EQUAL(test_max_error(y, shifted + 5, ROWS * OUT), 0);
	free(x);
	free(shifted);
	free(y);
	drop(&o);
}

/* More shapes than a thread keeps, twice over. */
static void forgets_old_shapes(void)
{
	enum { SHAPES = 150, IN = 8, OUT = 8 };
	struct smalti_matmul matmul = {SHAPES, IN, OUT, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE};
	struct operands o = make(matmul, true);
	float *all = run(&o, "all");
	float *y = kernel_array(SHAPES * OUT, 4);
	for (int i = 0; i < 2 * SHAPES; i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		matmul.rows = i % SHAPES + 1;
		SUCCEEDS(smalti_matmul(&matmul, o.x_given, o.packed, o.bias, NULL, y, &error), &error,
			 "shape");
		CHECK(test_max_error(y, all, matmul.rows * OUT) < 1e-5, "shape");
	}
	free(y);
	free(all);
	drop(&o);
}

static void refuses_what_it_cannot_do(void)
{
	static const struct {
		struct smalti_matmul matmul;
		const char *word;
	} cases[] = {
	    {{-1, 4, 4, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE}, "-1 rows"},
	    {{1, 0, 4, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE}, "0 in"},
	    {{1, 4, INT64_MAX, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE}, "out"},
	    {{1, 4, 4, SMALTI_F16, SMALTI_F16, SMALTI_EPILOGUE_GATE_ADD}, "f16"},
	    {{1, 4, 4, SMALTI_F32, SMALTI_BF16, SMALTI_EPILOGUE_ADD}, "bf16"},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		FAILS(smalti_matmul(&cases[i].matmul, NULL, NULL, NULL, NULL, NULL, &error), &error,
		      SMALTI_EINVAL, cases[i].word, cases[i].word);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_matmul none = {0, 4, 4, SMALTI_F32, SMALTI_F32, SMALTI_EPILOGUE_NONE};
	SUCCEEDS(smalti_matmul(&none, NULL, NULL, NULL, NULL, NULL, &error), &error, "no rows");
	CU_ASSERT(smalti_matmul_packed_bytes(1000000, 1000000, SMALTI_F32, &error) >= 4000000000000);
}

static const struct test tests[] = {
    {"agrees with plain sums", agrees_with_plain_sums},
    {"packs stacked parts", packs_stacked_parts},
    {"packs in chunks", packs_in_chunks},
    {"threads agree", threads_agree},
    {"alignment does not matter", alignment_does_not_matter},
    {"forgets old shapes", forgets_old_shapes},
    {"refuses what it cannot do", refuses_what_it_cannot_do},
};

TEST_MAIN("matmul", tests)
