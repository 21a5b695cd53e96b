/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/safetensors.h"

/* Files of reference outputs, whose tensors are named KIND.NUMBER or KIND.NUMBER.PART. */

/* Opens a path under tests/data. */
struct smalti_safetensors *golden_open(const char *path);
/* Returns NULL if there is none. `part` is "" or begins with a dot. */
const struct smalti_tensor_view *golden_tensor(const struct smalti_safetensors *file, const char *kind,
					       int number, const char *part);
/* Returns f32 values for free(). */
float *golden_values(const struct smalti_tensor_view *view);
/* Allows `tolerance` of the largest value. */
void golden_near(const float *found, const float *expected, int64_t count, double tolerance,
		 const char *what);
