/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_TESTS_CODELET_CASE_H
#define SMALTI_TESTS_CODELET_CASE_H

#include "codelets/codelets.h"
#include "harness.h"
#include "kernel_case.h"

#include <stdlib.h>

/* For tests that call a codelet's CPU wrapper on arrays, without StarPU. */

/* CALL(matmul, (.x = x, .y = y), .rows = 3, …) is its status; RUN asserts that it is 0. */
#define CALL(op, buffers, error, ...)                                                                        \
	smalti_cpu_##op(&(const struct op##_data){SMALTI_LIST_ buffers},                                     \
			&(const struct op##_arguments){__VA_ARGS__}, (error))
#define RUN(op, buffers, ...)                                                                                \
	do {                                                                                                 \
		struct smalti_error run_error = SMALTI_NO_ERROR;                                             \
		int run_status = CALL(op, buffers, &run_error, __VA_ARGS__);                                 \
		SUCCEEDS(run_status, &run_error, #op);                                                       \
	} while (0)

static inline float *fresh_floats(int64_t count)
{
	float *values = malloc((size_t)(count ? count : 1) * sizeof(*values));
	if (!values)
		abort();
	return values;
}

static inline float *random_floats(int64_t count, uint64_t *state)
{
	float *values = fresh_floats(count);
	for (int64_t i = 0; i < count; i++)
		values[i] = test_random(state);
	return values;
}

#endif
