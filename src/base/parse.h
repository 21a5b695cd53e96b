/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Functions that parse numbers written by people. The whole text must be the number: no blanks, nothing after
 * it, no hexadecimal; independent of the locale. Errors are SMALTI_EINVAL: "expected ..., found '...'". */

/* Texts of a repeatable option in their order; they belong to argv, the array to the option. */
struct smalti_string_list {
	const char **items;
	int count;
};

struct smalti_size {
	int64_t width, height;
};

int smalti_parse_int64(const char *text, int64_t minimum, int64_t maximum, int64_t *value,
		       struct smalti_error *error);

/* Parses a random seed: -2^63 to 2^64-1; a negative one stands for itself plus 2^64, as in PyTorch. */
int smalti_parse_seed(const char *text, uint64_t *value, struct smalti_error *error);

/* Parses a finite decimal number. */
int smalti_parse_double(const char *text, double minimum, double maximum, double *value,
			struct smalti_error *error);

/* Parses `count` such numbers of 0 or more, `separator` between them. */
int smalti_parse_numbers(const char *text, char separator, int count, double *values,
			 struct smalti_error *error);

/* Parses an amount of memory: a whole number, then B or nothing, K, M, G or T (binary multiples). */
int smalti_parse_bytes(const char *text, int64_t minimum, int64_t maximum, int64_t *value,
		       struct smalti_error *error);

/* Parses WxH in pixels, both in the range. */
int smalti_parse_size(const char *text, int64_t minimum, int64_t maximum, struct smalti_size *value,
		      struct smalti_error *error);
