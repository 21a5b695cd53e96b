/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/layout.h"
#include "codelets/codelets.h"

int smalti_cpu_concat(const struct concat_data *data, const struct concat_arguments *a,
		      struct smalti_error *error)
{
	(void)error;
	memcpy(data->y, data->first, (size_t)a->first_bytes);
	memcpy((char *)data->y + a->first_bytes, data->second, (size_t)a->second_bytes);
	return 0;
}

int smalti_cpu_slice_columns(const struct slice_columns_data *data, const struct slice_columns_arguments *a,
			     struct smalti_error *error)
{
	(void)error;
	for (int64_t i = 0; i < a->rows * a->parts; i++)
		memcpy((char *)data->y + i * a->columns, (const char *)data->x + i * a->in + a->first,
		       (size_t)a->columns);
	return 0;
}

static struct smalti_patches patches_of(const struct patchify_arguments *a)
{
	return (struct smalti_patches){a->channels, a->height, a->width, a->patch,        a->left,
				       a->columns,  a->first,  a->rows,  a->channels_last};
}

int smalti_cpu_patchify(const struct patchify_data *data, const struct patchify_arguments *a,
			struct smalti_error *error)
{
	(void)error;
	const struct smalti_patches patches = patches_of(a);
	smalti_patchify(&patches, a->scale, data->planes, data->tokens);
	return 0;
}

int smalti_cpu_unpatchify(const struct unpatchify_data *data, const struct unpatchify_arguments *a,
			  struct smalti_error *error)
{
	(void)error;
	const struct smalti_patches patches = patches_of(a);
	smalti_unpatchify(&patches, a->scale, data->tokens, data->planes);
	return 0;
}

int smalti_copy_floats(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)error;
	memcpy(user, values, (size_t)count * sizeof(*values));
	return 0;
}
