/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "jobs/quantize.h"

/* Writes the text encoder or the transformer of the directory `source` to a directory that exists, and adds
 * to the result. */
int smalti_quantize_component(const char *source, const char *directory, const char *variant,
			      enum smalti_quantization quantization, struct smalti_quantize_result *result,
			      struct smalti_error *error);
