/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/latents.h"
#include "base/file.h"
#include "checkpoint/npy.h"

#include <math.h>

struct smalti_latents {
	char *path;
	struct smalti_map map;
	struct smalti_safetensors *tensors; /* NULL: an .npy file */
	struct smalti_tensor_view view;
	struct smalti_latents_info info;
};

static bool has_shape(const struct smalti_tensor_view *view)
{
	return view->rank == 3 || view->rank == 4;
}

/* Writes names and shapes of the first tensors, for a message. */
static void list(const struct smalti_safetensors *tensors, char text[512])
{
	enum { LISTED = 6 };
	const int64_t count = tensors->count;
	snprintf(text, 512, count ? "" : "none");
	for (int64_t i = 0; i < count && i < LISTED; i++) {
		const struct smalti_tensor_view *view = &tensors->tensors[i];
		smalti_append(text, 512, ", ", "%.40s", view->name);
		for (int axis = 0; axis < view->rank; axis++)
			smalti_append(text, 512, axis ? "," : " [", "%" PRId64 "%s", view->shape[axis],
				      axis + 1 == view->rank ? "]" : "");
	}
	if (count > LISTED)
		smalti_append(text, 512, " and ", "%" PRId64 " more", count - LISTED);
}

/* Returns the "mean" of smalti encode; NULL: it did not write the file. */
static const struct smalti_tensor_view *find_mean(const struct smalti_safetensors *tensors)
{
	const struct smalti_tensor_view *mean = smalti_safetensors_find(tensors, "mean");
	const struct smalti_tensor_view *std = smalti_safetensors_find(tensors, "std");
	const bool alike = mean && std && mean->rank == std->rank &&
			   memcmp(mean->shape, std->shape, (size_t)mean->rank * sizeof(*mean->shape)) == 0;
	return alike ? mean : NULL;
}

static const struct smalti_tensor_view *choose(const struct smalti_safetensors *tensors, const char *key,
					       struct smalti_error *error)
{
	const struct smalti_tensor_view *chosen = smalti_safetensors_find(tensors, key ? key : "latents");
	if (!chosen && !key)
		chosen = find_mean(tensors);
	int64_t candidates = 0;
	for (int64_t i = 0; i < tensors->count && !chosen && !key; i++)
		candidates += has_shape(&tensors->tensors[i]);
	for (int64_t i = 0; i < tensors->count && !chosen && candidates == 1; i++)
		if (has_shape(&tensors->tensors[i]))
			chosen = &tensors->tensors[i];
	if (chosen)
		return chosen;
	char found[512];
	list(tensors, found);
	if (key)
		smalti_fail(error, SMALTI_EFORMAT, "expected a tensor \"%.60s\", found: %s", key, found);
	else
		smalti_fail(
		    error, SMALTI_EFORMAT,
		    "expected a tensor \"latents\", or a single one of 3 or 4 axes, found: %s; choose "
		    "one by its name",
		    found);
	return NULL;
}

static int find_view(struct smalti_latents *self, const char *key, struct smalti_error *error)
{
	if (smalti_is_npy(self->map.data, self->map.size)) {
		if (key)
			return smalti_fail(error, SMALTI_EINVAL,
					   "the array of an .npy file has no name, \"%.60s\" was asked for",
					   key);
		return smalti_npy_parse(self->map.data, self->map.size, &self->view, error);
	}
	self->tensors = smalti_safetensors_parse(self->map.data, self->map.size, error);
	const struct smalti_tensor_view *view = self->tensors ? choose(self->tensors, key, error) : NULL;
	if (view) {
		self->view = *view;
		self->info.raw = view == find_mean(self->tensors);
	}
	return view ? 0 : -1;
}

static bool is_f64(const struct smalti_tensor_view *view)
{
	return strcmp(view->stored, "F64") == 0;
}

static int check_view(struct smalti_latents *self, struct smalti_error *error)
{
	const struct smalti_tensor_view *view = &self->view;
	if (!view->usable && !is_f64(view))
		return smalti_fail(error, SMALTI_EUNSUPPORTED, "expected F32, F16, BF16 or F64, found %s",
				   view->stored);
	if (!has_shape(view))
		return smalti_fail(error, SMALTI_EFORMAT,
				   "expected [channels, height, width] or [images, channels, height, width], "
				   "found %d axes",
				   view->rank);
	const int64_t *shape = view->shape + view->rank - 3;
	self->info = (struct smalti_latents_info){view->rank == 4 ? view->shape[0] : 1, shape[0], shape[1],
						  shape[2], self->info.raw};
	return view->bytes ? 0 : smalti_fail(error, SMALTI_EFORMAT, "an axis is 0");
}

static int open_latents(struct smalti_latents *self, const char *key, struct smalti_error *error)
{
	if (find_view(self, key, error) == 0) {
		if (check_view(self, error) == 0)
			return 0;
		if (self->view.name[0])
			smalti_error_prefix(error, "%.200s", self->view.name);
	}
	smalti_error_prefix(error, "%s", self->path);
	return -1;
}

struct smalti_latents *smalti_latents_open(const char *path, const char *key, struct smalti_error *error)
{
	struct smalti_latents *self = smalti_calloc(1, sizeof(*self), error);
	if (!self)
		return NULL;
	self->path = smalti_format(error, "%s", path);
	int status = self->path ? smalti_map_open(&self->map, path, error) : -1;
	if (status == 0)
		status = open_latents(self, key, error);
	if (smalti_map_check(&self->map, error) == 0 && status == 0)
		return self;
	smalti_latents_close(self);
	return NULL;
}

const struct smalti_latents_info *smalti_latents_info(const struct smalti_latents *self)
{
	return &self->info;
}

static void narrow_f64(const char *from, int64_t count, float *to)
{
	for (int64_t i = 0; i < count; i++) {
		double value;
		memcpy(&value, from + i * (int64_t)sizeof(value), sizeof(value));
		to[i] = (float)value;
	}
}

static int check_finite(const struct smalti_latents *self, int64_t index, const float *planes, int64_t count,
			struct smalti_error *error)
{
	int64_t i = 0;
	while (i < count && isfinite(planes[i]))
		i++;
	if (i == count)
		return 0;
	const int64_t width = self->info.width, height = self->info.height;
	return smalti_fail(error, SMALTI_EFORMAT,
			   "%s: item %" PRId64 ", channel %" PRId64 ", row %" PRId64 ", column %" PRId64
			   ": a finite number was expected, found %g",
			   self->path, index, i / (height * width), i / width % height, i % width,
			   (double)planes[i]);
}

int smalti_latents_read(const struct smalti_latents *self, int64_t index, float *planes,
			struct smalti_error *error)
{
	const struct smalti_latents_info *info = &self->info;
	if (index < 0 || index >= info->count)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: item %" PRId64 " of %" PRId64 " was asked for; the first is 0",
				   self->path, index, info->count);
	const int64_t bytes = self->view.bytes / info->count;
	const char *from = (const char *)self->view.data + index * bytes;
	const int64_t count = info->channels * info->height * info->width;
	if (is_f64(&self->view))
		narrow_f64(from, count, planes);
	else
		smalti_widen(self->view.dtype, from, count, planes);
	const int status = check_finite(self, index, planes, count, error);
	return smalti_map_check(&self->map, error) < 0 ? -1 : status;
}

void smalti_latents_close(struct smalti_latents *self)
{
	if (!self)
		return;
	smalti_safetensors_close(self->tensors);
	smalti_map_close(&self->map);
	free(self->path);
	free(self);
}
