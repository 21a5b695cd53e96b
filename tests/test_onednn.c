/* SPDX-License-Identifier: Apache-2.0 */
/* What oneDNN picks for the shapes of real models: never its reference code, which is right and a
 * hundred times slower. */
#include "base/base.h"
#include "harness.h"
#include "kernels/conv.h"
#include "kernels/isa.h"
#include "kernels/matmul.h"

#include <dnnl.h>
#include <fcntl.h>
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

static void no_reference_code(void)
{
	if (smalti_isa() < SMALTI_ISA_AVX2)
		return;
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

static const struct test tests[] = {
    {"no reference code", no_reference_code},
};

TEST_MAIN("oneDNN", tests)
