/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* A body of multipart/form-data (RFC 7578) in memory, which begins with its delimiter, as clients send it. */
struct smalti_form {
	const char *at, *end;
	const char *delimiter; /* "--boundary" */
	size_t length;         /* of the delimiter */
};

struct smalti_form_part {
	char name[64];
	const char *data;
	size_t length;
};

int smalti_form_open(struct smalti_form *form, const char *body, size_t length, struct smalti_error *error);
/* Reads the next part: 1, 0 behind the last, or -1. */
int smalti_form_next(struct smalti_form *form, struct smalti_form_part *part, struct smalti_error *error);
