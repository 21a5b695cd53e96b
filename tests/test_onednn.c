/* SPDX-License-Identifier: Apache-2.0 */
/* What oneDNN picks for the shapes of real models: never its reference code, which is right and a
 * hundred times slower; and the same layouts in every thread. */
#include "base/base.h"
#include "harness.h"
#include "kernel_case.h"
#include "kernels/conv.h"
#include "kernels/cpu/onednn.h"
#include "kernels/isa.h"
#include "kernels/matmul.h"

#include <dlfcn.h>
#include <dnnl.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *zeros(int64_t bytes)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	void *memory = bytes < 0 ? NULL : smalti_calloc(bytes, 1, &error);
	if (!memory)
		abort();
	return memory;
}

static void run_matmul(struct smalti_matmul matmul)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	void *packed = zeros(smalti_matmul_packed_bytes(matmul.in, matmul.out, matmul.compute, &error));
	void *x = zeros(matmul.rows * matmul.in * 4), *y = zeros(matmul.rows * matmul.out * 4);
	void *operand = zeros(matmul.rows * matmul.out * 4);
	float *bias = zeros(matmul.out * 4);
	SUCCEEDS(smalti_matmul(&matmul, x, packed, bias, operand, y, &error), &error, "matmul");
	free(packed);
	free(x);
	free(y);
	free(operand);
	free(bias);
}

static void run_matmuls(void)
{
	static const struct {
		int64_t rows, in, out;
	} shapes[] = {{1, 256, 1152},   {7, 1152, 32},   {64, 144, 432}, {200, 16, 1152},
		      {64, 1152, 4608}, {3, 4608, 1152}, {77, 72, 5}};
	for (int s = 0; s < COUNT(shapes); s++)
		for (int kind = 0; kind < 4 * SMALTI_EPILOGUES; kind++) {
			struct smalti_matmul matmul = {shapes[s].rows,
						       shapes[s].in,
						       shapes[s].out,
						       kind & 1 ? SMALTI_BF16 : SMALTI_F32,
						       kind & 2 ? SMALTI_BF16 : SMALTI_F32,
						       (enum smalti_epilogue)(kind / 4)};
			bool added = matmul.epilogue == SMALTI_EPILOGUE_ADD ||
				     matmul.epilogue == SMALTI_EPILOGUE_GATE_ADD;
			if (!added || matmul.result == SMALTI_F32)
				run_matmul(matmul);
		}
}

static void run_conv(struct smalti_conv conv)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	void *packed = zeros(smalti_conv_packed_bytes(conv.in, conv.out, conv.stride, conv.compute, &error));
	void *x = zeros((2 * conv.rows + 2) * conv.width * conv.in * 4);
	float *y = zeros(conv.rows * conv.width * conv.out * 4), *bias = zeros(conv.out * 4);
	SUCCEEDS(smalti_conv(&conv, x, packed, bias, y, &error), &error, "convolution");
	free(packed);
	free(x);
	free(y);
	free(bias);
}

static void run_convs(void)
{
	static const struct {
		int64_t in, out;
	} channels[] = {{3, 32},  {4, 512}, {8, 16},  {5, 5},    {13, 17},
			{64, 64}, {128, 3}, {512, 8}, {256, 512}};
	for (int c = 0; c < COUNT(channels); c++)
		for (int kind = 0; kind < 8; kind++)
			run_conv((struct smalti_conv){3, 18, channels[c].in, channels[c].out,
						      kind & 1 ? 2 : 1, kind & 2 ? SMALTI_BF16 : SMALTI_F32,
						      kind & 4});
}

/* Widths from 1 on: what oneDNN prefers changes with them. */
static void run_widths(void)
{
	static const int64_t channels[][2] = {{4, 64}, {64, 64}, {64, 32}, {32, 16}, {16, 3}, {128, 128}};
	for (int c = 0; c < COUNT(channels); c++)
		for (int64_t width = 1; width <= 30; width++)
			run_conv((struct smalti_conv){1 + width % 3, width, channels[c][0], channels[c][1], 1,
						      SMALTI_F32, width % 2});
}

/* Counts the primitives in oneDNN's report of what it ran, and those that are reference code. */
static void count(const char *path, int *ran, int *reference)
{
	char line[1024];
	FILE *report = fopen(path, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(report);
	while (fgets(line, sizeof(line), report)) {
		*ran += strstr(line, ",exec,") != NULL;
		if (strstr(line, ",exec,") && strstr(line, ",ref")) {
			++*reference;
			fputs(line, stderr);
		}
	}
	fclose(report);
}

extern void omp_set_num_threads(int count);

/* In the place of OpenMP's: counts what oneDNN asks and gets another number than 1. */
static _Atomic int asked, told_of_more;

__attribute__((visibility("default"))) int omp_get_max_threads(void)
{
	Dl_info caller;
	int (*original)(void);
	*(void **)&original = dlsym(RTLD_NEXT, "omp_get_max_threads");
	const int count = original();
	if (dladdr(__builtin_return_address(0), &caller) && strstr(caller.dli_fname, "dnnl")) {
		asked++;
		told_of_more += count != 1;
	}
	return count;
}

/* A weight that is reserved, packed and multiplied with in threads of their own. */
struct in_threads {
	struct smalti_matmul matmul;
	struct smalti_conv conv;
	int threads; /* that the thread gives OpenMP before it begins */
	float *weight, *y;
	struct smalti_packed matrix, kernel;
	void *x;
	void (*stage)(struct in_threads *in);
};

static void reserve_forms(struct in_threads *in)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_matmul *m = &in->matmul;
	const struct smalti_conv *c = &in->conv;
	in->matrix.bytes = smalti_matmul_packed_bytes(m->in, m->out, m->compute, &error);
	in->kernel.bytes = smalti_conv_packed_bytes(c->in, c->out, c->stride, c->compute, &error);
	in->matrix.data = zeros(in->matrix.bytes);
	in->kernel.data = zeros(in->kernel.bytes);
}

static void pack_forms(struct in_threads *in)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_matmul *m = &in->matmul;
	const struct smalti_conv *c = &in->conv;
	const struct smalti_weight_part part = {in->weight, SMALTI_F32, m->out};
	SUCCEEDS(smalti_matmul_pack(m->in, m->out, m->compute, &part, 1, in->matrix, &error), &error,
		 "matrix");
	SUCCEEDS(smalti_conv_pack(c->in, c->out, c->stride, c->compute, in->weight, SMALTI_F32, in->kernel,
				  &error),
		 &error, "kernel");
	in->matrix.bytes--;
	in->kernel.bytes--;
	FAILS(smalti_matmul_pack(m->in, m->out, m->compute, &part, 1, in->matrix, &error), &error,
	      SMALTI_EINVAL, "a byte too few", "reserved");
	FAILS(smalti_conv_pack(c->in, c->out, c->stride, c->compute, in->weight, SMALTI_F32, in->kernel,
			       &error),
	      &error, SMALTI_EINVAL, "a byte too few", "reserved");
}

static void multiply(struct in_threads *in)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t products = in->matmul.rows * in->matmul.out;
	SUCCEEDS(smalti_matmul(&in->matmul, in->x, in->matrix.data, NULL, NULL, in->y, &error), &error,
		 "matmul");
	float *bias = zeros(in->conv.out * 4);
	SUCCEEDS(smalti_conv(&in->conv, in->x, in->kernel.data, bias, in->y + products, &error), &error,
		 "convolution");
	free(bias);
}

static void *with_threads(void *user)
{
	struct in_threads *in = user;
	omp_set_num_threads(in->threads);
	in->stage(in);
	CU_ASSERT_EQUAL(omp_get_max_threads(), in->threads); /* the caller's own number comes back */
	return NULL;
}

static void run_stage(struct in_threads *in, void (*stage)(struct in_threads *), int threads)
{
	pthread_t thread;
	in->stage = stage;
	in->threads = threads;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, with_threads, in), 0);
	pthread_join(thread, NULL);
}

/* 1 everywhere gives the reference: each stage in a thread with another number gives its bits. */
static void compare_threads(int64_t in_width, int64_t out_width, enum smalti_dtype compute)
{
	static const int threads[][3] = {{1, 1, 1},  {16, 1, 1},  {1, 16, 1},
					 {1, 1, 16}, {64, 16, 9}, {9, 64, 64}};
	const int64_t rows = 7, conv_in = 64, conv_out = 48, width = 6;
	const int64_t results = rows * out_width + rows * width * conv_out;
	float *reference = zeros(results * 4);
	for (int t = 0; t < COUNT(threads); t++) {
		struct in_threads in = {
		    .matmul = {rows, in_width, out_width, compute, SMALTI_F32, SMALTI_EPILOGUE_NONE},
		    .conv = {rows, width, conv_in, conv_out, 1, compute, false}};
		int64_t weights = in_width * out_width, inputs = rows * in_width;
		weights = weights > conv_in * conv_out * 9 ? weights : conv_in * conv_out * 9;
		inputs = inputs > (rows + 2) * width * conv_in ? inputs : (rows + 2) * width * conv_in;
		uint64_t state = 3;
		in.weight = kernel_random(weights, SMALTI_F32, &state);
		float *values = kernel_random(inputs, compute, &state);
		in.x = kernel_given(values, inputs, compute);
		free(values);
		in.y = zeros(results * 4);
		run_stage(&in, reserve_forms, threads[t][0]);
		run_stage(&in, pack_forms, threads[t][1]);
		run_stage(&in, multiply, threads[t][2]);
		if (t == 0)
			memcpy(reference, in.y, (size_t)results * 4);
		CU_ASSERT_EQUAL(memcmp(reference, in.y, (size_t)results * 4), 0);
		free(in.weight);
		free(in.x);
		free(in.y);
		free(in.matrix.data);
		free(in.kernel.data);
	}
	free(reference);
}

static void threads_agree(void)
{
	static const int64_t shapes[][2] = {{256, 144}, {64, 64}, {512, 512}, {77, 5}, {1152, 1152}};
	for (int s = 0; s < COUNT(shapes); s++)
		for (int compute = 0; compute < 3; compute++)
			compare_threads(
			    shapes[s][0], shapes[s][1],
			    (const enum smalti_dtype[]){SMALTI_F32, SMALTI_BF16, SMALTI_F16}[compute]);
	CU_ASSERT(asked > 0);
	CU_ASSERT_EQUAL(told_of_more, 0);
}

static void no_reference_code(void)
{
	if (smalti_isa() < SMALTI_ISA_AVX2) {
		test_skip("the CPU has no AVX2, for which oneDNN has reference code alone");
		return;
	}
	const char *path = test_file("report");
	fflush(stdout);
	int terminal = dup(STDOUT_FILENO), report = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CU_ASSERT_FATAL(terminal >= 0 && report >= 0 && dup2(report, STDOUT_FILENO) >= 0);
	dnnl_set_verbose(1);
	run_matmuls();
	run_convs();
	run_widths();
	dnnl_set_verbose(0);
	fflush(stdout);
	dup2(terminal, STDOUT_FILENO);
	close(terminal);
	close(report);
	int ran = 0, reference = 0;
	count(path, &ran, &reference);
	CU_ASSERT(ran > 0);
	CU_ASSERT_EQUAL(reference, 0);
}

/* A product of one row, described by two layouts of the row that are equal to oneDNN. */
struct row_product {
	int64_t inner, columns;
	int64_t own, other; /* from a row to the next, if there were more */
	dnnl_primitive_t made;
};

static dnnl_status_t describe_row(const struct row_product *p, int64_t stride, dnnl_engine_t engine,
				  dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *description)
{
	const dnnl_dims_t x_dims = {1, p->inner}, x_strides = {stride, 1}, w_dims = {p->inner, p->columns},
			  w_strides = {p->columns, 1}, y_dims = {1, p->columns}, y_strides = {p->columns, 1};
	smalti_layout x = NULL, w = NULL, y = NULL;
	dnnl_status_t status = smalti_layout_by_strides(&x, 2, x_dims, dnnl_f32, x_strides);
	if (!status)
		status = smalti_layout_by_strides(&w, 2, w_dims, dnnl_f32, w_strides);
	if (!status)
		status = smalti_layout_by_strides(&y, 2, y_dims, dnnl_f32, y_strides);
	if (!status)
		status = smalti_onednn_matmul(description, engine, x, w, NULL, y, attributes);
	smalti_layout_free(x);
	smalti_layout_free(w);
	smalti_layout_free(y);
	return status;
}

/* Describes the product, then makes the other one, as another thread may between a description and its
 * primitive. */
static int describe_both(const void *context, dnnl_engine_t engine, dnnl_primitive_attr_t attributes,
			 dnnl_primitive_desc_t *description, struct smalti_error *error)
{
	struct row_product *p = (struct row_product *)(uintptr_t)context;
	dnnl_primitive_desc_t other = NULL;
	dnnl_status_t status = describe_row(p, p->own, engine, attributes, description);
	if (!status)
		status = describe_row(p, p->other, engine, attributes, &other);
	if (!status)
		status = dnnl_primitive_create(&p->made, other);
	if (other)
		dnnl_primitive_desc_destroy(other);
	return smalti_onednn_check(status, "no such product", error);
}

static void equal_descriptions_share_a_primitive(void)
{
	enum { COLUMNS = 32, MAX_INNER = 64 };
	static const int64_t strides[] = {1, 32, 64, 4096};
	float x[MAX_INNER], y[COLUMNS];
	float *w = zeros(MAX_INNER * COLUMNS * (int64_t)sizeof(*w));
	struct row_product p = {.inner = 32, .columns = COLUMNS};
	test_fill(x, MAX_INNER, 0.7, 0.1);
	test_fill(w, MAX_INNER * COLUMNS, 0.3, 0.2);
	for (int own = 0; own < COUNT(strides); own++)
		for (int other = 0; other < COUNT(strides); other++) {
			struct smalti_error error = SMALTI_NO_ERROR;
			p.own = strides[own], p.other = strides[other], p.made = NULL;
			const struct smalti_onednn_key key = {{'t', p.inner, own, other}};
			const struct smalti_onednn_argument arguments[] = {
			    {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}};
			SUCCEEDS(
			    smalti_onednn_run(&key, describe_both, &p, arguments, COUNT(arguments), &error),
			    &error, "a row");
			for (int column = 0; column < COLUMNS; column++) {
				double sum = 0;
				for (int64_t k = 0; k < p.inner; k++)
					sum += (double)x[k] * (double)w[k * COLUMNS + column];
				CHECK(fabs(sum - (double)y[column]) < 1e-5, "a sum");
			}
			if (p.made)
				dnnl_primitive_destroy(p.made);
			p.inner++; /* oneDNN has no such product yet */
		}
	free(w);
}

static const struct test tests[] = {
    {"no reference code", no_reference_code},
    {"threads with unlike numbers of threads agree", threads_agree},
    {"equal descriptions share a primitive", equal_descriptions_share_a_primitive},
};

TEST_MAIN("oneDNN", tests)
