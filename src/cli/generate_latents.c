/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/latents.h"
#include "cli/generate.h"

#include <xxhash.h>

static int read_all(struct smalti_start *start, const struct smalti_latents *latents,
		    struct smalti_error *error)
{
	const struct smalti_latents_info *info = smalti_latents_info(latents);
	const int64_t shape[] = {info->count, info->channels, info->height, info->width};
	const int64_t each = info->channels * info->height * info->width;
	memcpy(start->shape, shape, sizeof(shape));
	start->count = info->count * each;
	start->values = smalti_calloc(start->count, sizeof(float), error);
	if (!start->values)
		return -1;
	for (int64_t i = 0; i < info->count; i++)
		if (smalti_latents_read(latents, i, start->values + i * each, error) < 0)
			return -1;
	snprintf(start->digest, sizeof(start->digest), "%016" PRIx64,
		 XXH3_64bits(start->values, (size_t)start->count * sizeof(float)));
	return 0;
}

int smalti_start_read(struct smalti_start *start, const char *path, struct smalti_error *error)
{
	*start = (struct smalti_start){0};
	SCOPED(smalti_latents_close) struct smalti_latents *latents = smalti_latents_open(path, NULL, error);
	int status = latents ? read_all(start, latents, error) : -1;
	if (!status && smalti_latents_info(latents)->raw)
		status =
		    smalti_fail(error, SMALTI_EFORMAT,
				"%s: expected a tensor \"latents\", found a mean and a std: make latents of "
				"the image with smalti encode --sample",
				path);
	return status;
}

int smalti_start_apply(const struct smalti_start *start, const struct smalti_model_info *model,
		       struct smalti_request *request, struct smalti_error *error)
{
	const int64_t *found = start->shape;
	if (request->resolution_binning)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "latents: they have their size, resolution binning chooses another; give one of both");
	if (!request->width)
		request->width = found[3] * model->latent_pixels;
	if (!request->height)
		request->height = found[2] * model->latent_pixels;
	const int64_t expected[] = {
	    request->images, model->latent_channels,
	    smalti_round_up(request->height, model->size_multiple) / model->latent_pixels,
	    smalti_round_up(request->width, model->size_multiple) / model->latent_pixels};
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
