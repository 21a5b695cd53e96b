/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* The forms that are written: rows of int8 (X.weight, X.weight_scale), and fp8 e4m3 with one scale for each
 * matrix (X.scale_weight, the marker scaled_fp8). */
enum smalti_quantization { SMALTI_QUANTIZE_INT8, SMALTI_QUANTIZE_FP8 };
/* Their names: "int8", "fp8", ended by NULL. */
extern const char *const smalti_quantizations[];

struct smalti_quantize_result {
	int64_t matrices;      /* that have 8 bits now */
	int64_t before, after; /* bytes of all tensors */
};

/* Writes the text encoder or the transformer of the directory `source`, or a pipeline with both, to the
 * directory `target`, which must not exist: its matrices in 8 bits, all else as it is, but T5's embedding in
 * F16. What is sensitive stays: norms, biases and T5's wo; of the transformer everything outside its blocks.
 * A pipeline's other components are copied. The directory appears complete or not at all. */
int smalti_quantize(const char *source, const char *target, const char *variant,
		    enum smalti_quantization quantization, struct smalti_quantize_result *result,
		    struct smalti_error *error);
