/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/npy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever the bytes, they are refused, or the array is the end of them and as large as its shape says. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tensor_view view;
	const int status = smalti_npy_parse(data, (int64_t)size, &view, &error);
	if ((status == 0) != (error.code == SMALTI_OK))
		abort();
	if (status < 0)
		return 0;
	int64_t count = 1;
	for (int i = 0; i < view.rank; i++)
		count *= view.shape[i];
	if (view.bytes != count * (view.usable ? smalti_dtype_bytes(view.dtype) : 8) ||
	    (const uint8_t *)view.data + view.bytes != data + size)
		abort();
	return 0;
}
