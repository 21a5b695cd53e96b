/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/generate_latents.h"

#include "base/alloc.h"
#include "base/error.h"
#include "io/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const struct smalti_tensor_view *find(const struct smalti_safetensors *file, const char *path,
					     struct smalti_error *error)
{
	const struct smalti_tensor_view *view = smalti_safetensors_find(file, "latents");
	if (!view && smalti_safetensors_count(file) == 1)
		view = smalti_safetensors_at(file, 0);
	if (!view)
		smalti_fail(error, SMALTI_EFORMAT,
			    "%s: expected a tensor \"latents\", or a single one, found %" PRId64 " others",
			    path, smalti_safetensors_count(file));
	else if (!view->usable)
		smalti_fail(error, SMALTI_EUNSUPPORTED, "%s: %s: expected F32, F16 or BF16", path,
			    view->name);
	else if (view->rank != 3 && view->rank != 4)
		smalti_fail(error, SMALTI_EFORMAT,
			    "%s: %s: expected [channels, height, width] or [images, channels, height, "
			    "width], found %d axes",
			    path, view->name, view->rank);
	else
		return view;
	return NULL;
}

static int copy(struct smalti_start *start, const struct smalti_tensor_view *view, struct smalti_error *error)
{
	start->shape[0] = 1;
	for (int i = 0; i < view->rank; i++)
		start->shape[4 - view->rank + i] = view->shape[i];
	start->count = view->bytes / smalti_dtype_bytes(view->dtype);
	if (start->count == 0)
		return smalti_fail(error, SMALTI_EFORMAT, "%s: an axis is 0", view->name);
	start->values = smalti_calloc(start->count, sizeof(float), error);
	if (!start->values)
		return -1;
	smalti_widen(view->dtype, view->data, start->count, start->values);
	snprintf(start->digest, sizeof(start->digest), "%016" PRIx64,
		 XXH3_64bits(start->values, (size_t)start->count * sizeof(float)));
	return 0;
}

int smalti_start_read(struct smalti_start *start, const char *path, struct smalti_error *error)
{
	*start = (struct smalti_start){0};
	struct smalti_safetensors *file = smalti_safetensors_open(path, error);
	if (!file)
		return -1;
	const struct smalti_tensor_view *view = find(file, path, error);
	int status = view ? copy(start, view, error) : -1;
	if (view && status < 0)
		smalti_error_prefix(error, "%s", path);
	smalti_safetensors_close(file);
	return status;
}

static int64_t round_up(int64_t value, int64_t multiple)
{
	return (value + multiple - 1) / multiple * multiple;
}

int smalti_start_apply(const struct smalti_start *start, const struct smalti_model_info *model,
		       struct smalti_request *request, struct smalti_error *error)
{
	const int64_t *found = start->shape;
	if (!request->width)
		request->width = found[3] * model->latent_pixels;
	if (!request->height)
		request->height = found[2] * model->latent_pixels;
	const int64_t expected[] = {request->images, model->latent_channels,
				    round_up(request->height, model->size_multiple) / model->latent_pixels,
				    round_up(request->width, model->size_multiple) / model->latent_pixels};
	if (memcmp(expected, found, sizeof(expected)) != 0)
		return smalti_fail(error, SMALTI_EINVAL,
				   "latents: expected %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64
				   " values for %" PRId64 " of %" PRId64 "x%" PRId64 " pixels, found %" PRId64
				   "x%" PRId64 "x%" PRId64 "x%" PRId64,
				   expected[0], expected[1], expected[2], expected[3], request->images,
				   request->width, request->height, found[0], found[1], found[2], found[3]);
	request->latents = start->values;
	request->latents_count = start->count;
	return 0;
}

void smalti_start_free(struct smalti_start *start)
{
	free(start->values);
	start->values = NULL;
}
