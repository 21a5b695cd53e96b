/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_BASE_ARGUMENT_H
#define SMALTI_BASE_ARGUMENT_H

#include "base/error.h"

#include <stdint.h>

/* What public functions demand of their arguments: 0, or -1 with SMALTI_EINVAL, which names `what`. */

/* Neither it nor, of a text, its first byte is missing. */
int smalti_check_given(const void *pointer, const char *what, struct smalti_error *error);
int smalti_check_text(const char *text, const char *what, struct smalti_error *error);
/* least <= value <= most. Of an enum: 0 and its last name. */
int smalti_check_range(int64_t value, int64_t least, int64_t most, const char *what,
		       struct smalti_error *error);

#endif
