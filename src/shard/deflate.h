/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Do to chunks of values, and back, what HDF5's shuffle and DEFLATE filters do, in a third of the time: by
 * libdeflate, without HDF5. */

/* Its DEFLATE level: the others take much longer over features and hardly save more. */
enum { SMALTI_DEFLATE_LEVEL = 1 };
enum { SMALTI_WITHOUT_DEFLATE = 2 }; /* the second filter's bit */

/* Memory that grows with what it is asked for, and then loses what it held. Initialise with zeros. */
struct smalti_room {
	unsigned char *bytes;
	int64_t capacity;
};
int smalti_room_make(struct smalti_room *room, int64_t bytes, struct smalti_error *error);

/* What both ways need, made when it is needed first. Initialise with zeros. */
struct smalti_deflater {
	struct libdeflate_compressor *compressor;
	struct libdeflate_decompressor *decompressor;
	struct smalti_room shuffled, packed;
};
void smalti_deflater_free(struct smalti_deflater *deflater);

struct smalti_deflated {
	const void *data; /* the deflater's own, until the next call */
	int64_t bytes;
	uint32_t mask; /* HDF5's filter mask: where DEFLATE gains nothing, it was left out, and the bytes stay
			  as many */
};
/* Compresses `bytes` of elements of `size` bytes; what is no whole element at their end stays there. */
int smalti_deflate(struct smalti_deflater *deflater, const void *values, int64_t bytes, int64_t size,
		   struct smalti_deflated *deflated, struct smalti_error *error);

/* Makes the values again; ECORRUPT where that many bytes do not result. */
int smalti_inflate(struct smalti_deflater *deflater, const struct smalti_deflated *deflated, void *values,
		   int64_t bytes, int64_t size, struct smalti_error *error);
