/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "checkpoint/npy.h"

#include <stdlib.h>

/* Whatever the bytes, they are refused, or the array is the end of them and as large as its shape says. */
FUZZER(data, size)
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
