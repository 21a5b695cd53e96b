/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* libsentencepiece (C++) behind C; no exception leaves it. The model must have passed
 * smalti_spiece_sanitize(). */
struct smalti_sentencepiece;

struct smalti_sentencepiece *smalti_sentencepiece_open(const void *model, size_t length,
						       struct smalti_error *error);
void smalti_sentencepiece_close(struct smalti_sentencepiece *model);

int32_t smalti_sentencepiece_count(const struct smalti_sentencepiece *model);
/* Returns -1 if it is no piece of the model. */
int32_t smalti_sentencepiece_id(const struct smalti_sentencepiece *model, const char *piece);

/* Writes the first `capacity` ids of the text, and their number into *count. Reentrant. */
int smalti_sentencepiece_encode(const struct smalti_sentencepiece *model, const char *text, size_t length,
				int64_t capacity, int32_t *ids, int64_t *count, struct smalti_error *error);

#ifdef __cplusplus
}
#endif
