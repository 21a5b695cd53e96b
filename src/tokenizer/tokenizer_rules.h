/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_TOKENIZER_TOKENIZER_RULES_H
#define SMALTI_TOKENIZER_TOKENIZER_RULES_H

#include "base/json.h"

/* What a tokenizer.json does with text before it is pieces, and with the pieces after it: checked to be what
 * SentencePiece does, but for what is kept here. */
struct smalti_tokenizer_rules {
	const char *charsmap; /* base64; belongs to the file */
	int32_t eos;          /* the id behind each text, 0 or more */
};

int smalti_tokenizer_rules_read(const cJSON *file, struct smalti_tokenizer_rules *rules,
				struct smalti_error *error);

/* Calls `read` with the object file[key]; its errors, and the one that it is no object, begin with the key.
 */
typedef int smalti_tokenizer_part(const cJSON *part, void *to, struct smalti_error *error);
int smalti_tokenizer_read_part(const cJSON *file, const char *key, smalti_tokenizer_part *read, void *to,
			       struct smalti_error *error);

/* That part[key] is `wanted`, or if it is not there that `otherwise` is. */
int smalti_tokenizer_expect(const cJSON *part, const char *key, bool wanted, bool otherwise,
			    struct smalti_error *error);

#endif
