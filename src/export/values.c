/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "export/export.h"

#include <stdlib.h>

enum { PIECE = 4096 };

static int check_finite(const float *wide, const uint16_t *narrow, int64_t count, struct smalti_error *error)
{
	for (int64_t i = 0; i < count; i++)
		if ((narrow[i] & 0x7c00) == 0x7c00)
			return smalti_fail(error, SMALTI_ECORRUPT,
					   "its features hold %g, which float16 has not", (double)wide[i]);
	return 0;
}

int smalti_export_values(const struct smalti_export_run *run, const void *values, int64_t count,
			 enum smalti_dtype to, smalti_export_sink *sink, void *user,
			 struct smalti_error *error)
{
	const int64_t size = smalti_dtype_bytes(run->dtype);
	if (to == run->dtype)
		return sink(user, values, count * size, error);
	for (int64_t first = 0; first < count; first += PIECE) {
		float wide[PIECE];
		uint16_t narrow[PIECE];
		const int64_t piece = count - first < PIECE ? count - first : PIECE;
		smalti_widen(run->dtype, (const char *)values + first * size, piece, wide);
		if (to != SMALTI_F32)
			smalti_narrow(to, wide, piece, narrow);
		if (to == SMALTI_F16 && check_finite(wide, narrow, piece, error))
			return -1;
		const void *data = to == SMALTI_F32 ? (const void *)wide : narrow;
		if (sink(user, data, piece * smalti_dtype_bytes(to), error))
			return -1;
	}
	return 0;
}
