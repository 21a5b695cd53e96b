/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/input_image.h"
#include "image/turned.h"
#include "jobs/resizer.h"
#include "kernels/layout.h"

static const struct smalti_image_limits default_limits = {.pixels = 1 << 28, .bytes = 1 << 30};

enum { CHANNELS = 3 };

struct smalti_input_image {
	struct smalti_input_options options;
	struct smalti_input_info info;
	char *name;
	struct smalti_image_reader *image;
	struct smalti_turned_image turned;
	struct smalti_resizer *resizer;
	uint8_t *row; /* of the result */
};

static int64_t largest_multiple(int64_t side, int64_t multiple)
{
	return multiple > 0 ? side / multiple * multiple : 0;
}

static int fit_crop(struct smalti_input_image *p, struct smalti_fit *fit, struct smalti_error *error)
{
	const struct smalti_input_info *info = &p->info;
	const int64_t multiple = p->options.multiple;
	*fit = smalti_fit_stretch(info->original_height, info->original_width);
	fit->crop_height = largest_multiple(fit->height, multiple);
	fit->crop_width = largest_multiple(fit->width, multiple);
	fit->top = (fit->height - fit->crop_height) / 2;
	fit->left = (fit->width - fit->crop_width) / 2;
	if (fit->crop_height > 0 && fit->crop_width > 0)
		return 0;
	return smalti_fail(error, SMALTI_EUNSUPPORTED,
			   "%s: an image of %" PRId64 "x%" PRId64
			   " pixels cannot be encoded: a latent stands for %" PRId64 "x%" PRId64,
			   p->name, info->original_width, info->original_height, multiple, multiple);
}

static int fit_bin(struct smalti_input_image *p, struct smalti_fit *fit, struct smalti_error *error)
{
	struct smalti_input_info *info = &p->info;
	const int64_t height = info->original_height, width = info->original_width;
	if (height > SMALTI_INPUT_SIDE_MAX || width > SMALTI_INPUT_SIDE_MAX)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%s: an image with sides of 1 to %d pixels was expected, found %" PRId64
				   "x%" PRId64 "; scale it down",
				   p->name, SMALTI_INPUT_SIDE_MAX, width, height);
	if (smalti_bins_nearest(p->options.image_size, SMALTI_BINS_TRAINING, height, width, &info->bin,
				error) < 0)
		return -1;
	if (p->options.fit == SMALTI_FIT_COVER)
		return smalti_fit_cover(height, width, info->bin.height, info->bin.width, fit, error);
	*fit = smalti_fit_stretch(info->bin.height, info->bin.width);
	return 0;
}

/* Returns the filter that the reference chooses (docs/reference.md 6.4, 6.6). */
static enum smalti_filter filter_of(int64_t image_size)
{
	return image_size >= 2048 ? SMALTI_FILTER_LANCZOS : SMALTI_FILTER_BICUBIC;
}

static int open_rows(struct smalti_input_image *p, struct smalti_error *error)
{
	struct smalti_fit fit;
	smalti_turned_open(&p->turned, p->image,
			   p->options.stored_orientation ? 1 : smalti_image_info(p->image)->orientation);
	p->info.original_height = p->turned.height;
	p->info.original_width = p->turned.width;
	const bool crop = p->options.fit == SMALTI_FIT_CROP;
	if ((crop ? fit_crop(p, &fit, error) : fit_bin(p, &fit, error)) < 0)
		return -1;
	p->info.height = fit.crop_height;
	p->info.width = fit.crop_width;
	p->resizer =
	    smalti_resizer_open(p->turned.height, p->turned.width, &fit, filter_of(p->options.image_size),
				smalti_turned_rows, &p->turned, error);
	p->row = smalti_calloc(fit.crop_width, CHANNELS, error);
	return p->resizer && p->row ? 0 : -1;
}

struct smalti_input_image *smalti_input_image_open(const char *name, const void *data, int64_t bytes,
						   const struct smalti_input_options *options,
						   struct smalti_error *error)
{
	struct smalti_input_image *p = smalti_calloc(1, sizeof(*p), error);
	if (!p)
		return NULL;
	p->options = *options;
	if (!p->options.limits.pixels)
		p->options.limits = default_limits;
	p->name = smalti_format(error, "%s", name);
	if (p->name)
		p->image = data ? smalti_image_open_memory(name, data, bytes, &p->options.limits, error)
				: smalti_image_open(name, &p->options.limits, error);
	if (p->image && open_rows(p, error) == 0)
		return p;
	smalti_input_image_close(p);
	return NULL;
}

const struct smalti_input_info *smalti_input_image_info(const struct smalti_input_image *image)
{
	return &image->info;
}

int smalti_input_image_rows(struct smalti_input_image *p, int64_t first, int64_t count, float *rgb,
			    struct smalti_error *error)
{
	const int64_t values = CHANNELS * p->info.width;
	for (int64_t i = 0; i < count; i++) {
		if (smalti_resizer_rows(p->resizer, first + i, 1, p->row, error) < 0)
			return -1;
		smalti_from_u8(values, p->row, rgb + i * values);
	}
	return 0;
}

void smalti_input_image_close(struct smalti_input_image *p)
{
	if (!p)
		return;
	smalti_resizer_close(p->resizer);
	smalti_turned_close(&p->turned);
	smalti_image_close(p->image);
	free(p->name);
	free(p->row);
	free(p);
}
