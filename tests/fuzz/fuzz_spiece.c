/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "tokenizer/sentencepiece_shim.h"
#include "tokenizer/spiece.h"

#include <stdlib.h>
#include <string.h>

/* Whatever the model, it is refused, or SentencePiece opens it or says why not, and it encodes. */
FUZZER(data, size)
{
	static const char text[] = "A \xef\xac\x81ne, r\xc3\xa9 st\xc3\xa4r\t\xe2\x91\xa0 \xff\x00 z";
	uint8_t *model = malloc(size + 1);
	memcpy(model, data, size);
	size_t length = size;
	struct smalti_sentencepiece *opened = NULL;
	if (smalti_spiece_sanitize(model, &length, NULL) == 0)
		opened = smalti_sentencepiece_open(model, length, NULL);
	int32_t ids[64];
	int64_t count = 0;
	if (opened && smalti_sentencepiece_encode(opened, text, sizeof(text) - 1, 64, ids, &count, NULL) == 0)
		for (int64_t i = 0; i < count; i++)
			if (ids[i] < 0 || ids[i] >= smalti_sentencepiece_count(opened))
				abort();
	smalti_sentencepiece_close(opened);
	free(model);
	return 0;
}
