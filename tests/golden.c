/* SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"

#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct smalti_safetensors *golden_open(const char *path)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_safetensors *file = smalti_safetensors_open(test_data(path), &error);
	SUCCEEDS(file ? 0 : -1, &error, path);
	return file;
}

const struct smalti_tensor_view *golden_tensor(const struct smalti_safetensors *file, const char *kind,
					       int number, const char *part)
{
	char name[64];
	snprintf(name, sizeof(name), "%s.%d%s", kind, number, part);
	return smalti_safetensors_find(file, name);
}

float *golden_values(const struct smalti_tensor_view *view)
{
	float *values = malloc((size_t)view->bytes);
	memcpy(values, view->data, (size_t)view->bytes);
	return values;
}

void golden_near(const float *found, const float *expected, int64_t count, double tolerance, const char *what)
{
	char text[96];
	const double relative = test_max_error(found, expected, count) / test_max_abs(expected, count);
	snprintf(text, sizeof(text), "%s: %.1e of the largest, %.0e allowed", what, relative, tolerance);
	CHECK(relative <= tolerance, text);
}
