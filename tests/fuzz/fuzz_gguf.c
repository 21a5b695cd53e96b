/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "checkpoint/gguf.h"
#include "checkpoint/gguf_names.h"

#include <stdlib.h>

enum { MOST_VALUES = 1 << 16 };

/* Whatever the bytes, every view lies inside them, and its values can be read. */
static void check(const struct smalti_tensor_view *view, const uint8_t *data, size_t size)
{
	const uint8_t *bytes = view->data;
	if (bytes < data || view->bytes < 0 || bytes + view->bytes > data + size)
		abort();
	const int64_t elements = smalti_tensor_elements(view);
	if (!view->bytes || (!view->usable && !view->coding) || elements > MOST_VALUES)
		return;
	if (smalti_tensor_row_bytes(view, view->shape[0]) != view->bytes)
		abort();
	float *values = malloc((size_t)elements * sizeof(*values));
	if (!values)
		abort();
	smalti_tensor_values(view, 0, view->shape[0], values);
	free(values);
}

FUZZER(data, size)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_gguf *file = smalti_gguf_parse(data, (int64_t)size, &error);
	if (!file != (error.code != SMALTI_OK))
		abort();
	for (int64_t i = 0; file && i < file->count; i++) {
		char present[SMALTI_GGUF_NAME];
		smalti_gguf_t5_name(file->tensors[i].name, present);
		check(&file->tensors[i], data, size);
	}
	smalti_gguf_close(file);
	return 0;
}
