/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_DIGEST_H
#define SMALTI_JOBS_DIGEST_H

#include "checkpoint/checkpoint.h"

enum { SMALTI_DIGEST_LENGTH = 32 }; /* hexadecimal digits */

/* Identifies models at little cost: XXH3 over whole small files (an absent one differs from an empty
 * one) and over each tensor's name, type, shape and first bytes: training changes all weights, and reading
 * gigabytes at every start would take longer than the work. */
int smalti_digest(const char *const *files, int file_count, const struct smalti_checkpoint *const *weights,
		  int weight_count, char digest[SMALTI_DIGEST_LENGTH + 1], struct smalti_error *error);

#endif
