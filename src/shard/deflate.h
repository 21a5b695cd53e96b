/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* What HDF5's shuffle and DEFLATE filters make of chunks of values, and their way back, in a third of the
 * time: by libdeflate, without HDF5. */

/* Its DEFLATE level: the others take much longer over features and hardly save more. */
enum { SMALTI_DEFLATE_LEVEL = 1 };
enum { SMALTI_WITHOUT_DEFLATE = 2 }; /* the second filter's bit */

struct smalti_deflater;
/* NULL with an error. */
struct smalti_deflater *smalti_deflater_open(struct smalti_error *error);
void smalti_deflater_close(struct smalti_deflater *deflater);

struct smalti_deflated {
	const void *data; /* the deflater's own, until the next call */
	int64_t bytes;
	uint32_t mask; /* HDF5's filter mask: where DEFLATE gains nothing, it was left out, and the bytes stay
			  as many */
};
/* `bytes` of elements of `size` bytes; what is no whole element at their end stays there. */
int smalti_deflate(struct smalti_deflater *deflater, const void *values, int64_t bytes, int64_t size,
		   struct smalti_deflated *deflated, struct smalti_error *error);

struct smalti_inflater;
struct smalti_inflater *smalti_inflater_open(struct smalti_error *error);
void smalti_inflater_close(struct smalti_inflater *inflater);
/* The values; ECORRUPT where that many bytes do not come of it. */
int smalti_inflate(struct smalti_inflater *inflater, const struct smalti_deflated *deflated, void *values,
		   int64_t bytes, int64_t size, struct smalti_error *error);
