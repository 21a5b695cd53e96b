/* SPDX-License-Identifier: Apache-2.0 */
#include "image/source.h"

#include <string.h>

int64_t smalti_source_read(struct smalti_source *source, void *to, int64_t bytes)
{
	if (source->file)
		return (int64_t)fread(to, 1, (size_t)bytes, source->file);
	const int64_t got = bytes < source->left ? bytes : source->left;
	if (got > 0)
		memcpy(to, source->data, (size_t)got);
	source->data += got;
	source->left -= got;
	return got;
}

bool smalti_source_failed(const struct smalti_source *source)
{
	return source->file && ferror(source->file);
}
