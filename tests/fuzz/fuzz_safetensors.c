/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "checkpoint/safetensors.h"

#include <stdlib.h>

/* Whatever the bytes, every view lies inside them and holds what its shape says. */
static void check(const struct smalti_tensor_view *view, const uint8_t *data, size_t size)
{
	const volatile uint8_t *bytes = view->data;
	if (bytes < data || view->bytes < 0 || bytes + view->bytes > data + size)
		abort();
	int64_t count = 1;
	for (int i = 0; i < view->rank; i++)
		count *= view->shape[i];
	if (view->usable && count * smalti_dtype_bytes(view->dtype) != view->bytes)
		abort();
	if (view->bytes)
		(void)bytes[0], (void)bytes[view->bytes - 1];
}

FUZZER(data, size)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_safetensors *file = smalti_safetensors_parse(data, (int64_t)size, &error);
	if (!file != (error.code != SMALTI_OK))
		abort();
	for (int64_t i = 0; file && i < file->count; i++) {
		const struct smalti_tensor_view *view = &file->tensors[i];
		if (smalti_safetensors_find(file, view->name) != view)
			abort();
		check(view, data, size);
	}
	smalti_safetensors_close(file);
	return 0;
}
