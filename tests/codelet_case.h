/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codelets/codelets.h"
#include "graphs/weight_forms.h"
#include "harness.h"
#include "kernel_case.h"

#include <stdlib.h>

/* For tests that call a codelet's CPU wrapper on arrays, without StarPU. */

/* CALL(matmul, (.x = x, .y = y), .rows = 3, …) gives its status; RUN asserts that it is 0. */
#define CALL(op, buffers, error, ...)                                                                        \
	smalti_cpu_##op(&(const struct op##_data){SMALTI_LIST_ buffers},                                     \
			&(const struct op##_arguments){__VA_ARGS__}, (error))
#define RUN(op, buffers, ...)                                                                                \
	do {                                                                                                 \
		struct smalti_error run_error = SMALTI_NO_ERROR;                                             \
		int run_status = CALL(op, buffers, &run_error, __VA_ARGS__);                                 \
		SUCCEEDS(run_status, &run_error, #op);                                                       \
	} while (0)

/* Returns the form of a weight for a device's kernels. Free it. */
static inline void *form_of(const struct smalti_weight_source *source, enum smalti_device_kind device)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tile_forms forms;
	SUCCEEDS(smalti_weight_forms(source, &forms, &error), &error, "forms");
	void *form = aligned_alloc(64, (size_t)(forms.bytes[device] + 63) / 64 * 64);
	SUCCEEDS(forms.make(source, device, form, forms.bytes[device], &error), &error, "make");
	return form;
}

static inline struct smalti_tensor_view view_of(enum smalti_dtype dtype, const void *data, int64_t count)
{
	return (struct smalti_tensor_view){.dtype = dtype,
					   .rank = 1,
					   .shape = {count},
					   .data = data,
					   .bytes = count * smalti_dtype_bytes(dtype)};
}

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
