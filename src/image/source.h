/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_IMAGE_SOURCE_H
#define SMALTI_IMAGE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The bytes of a file in their order, from its stream or from memory that has all of them. The C library
 * could make a stream of memory; but it keeps a list of its streams that it goes through when it closes one,
 * and of images many are open at a time. */
struct smalti_source {
	FILE *file;          /* the owner's; NULL: memory */
	const uint8_t *data; /* what is left of it */
	int64_t left;
};

/* How many there were; less than asked for at the end, or after a failure. */
int64_t smalti_source_read(struct smalti_source *source, void *to, int64_t bytes);
/* The stream has failed, and errno says why. */
bool smalti_source_failed(const struct smalti_source *source);

#endif
