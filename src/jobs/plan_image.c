/* SPDX-License-Identifier: Apache-2.0 */
/* Image to image and inpainting (docs/reference.md 4.6). */
#include "jobs/plan_image.h"
#include "jobs/plan.h"
#include "jobs/resizer.h"

#include <math.h>

enum { CHANNELS = 3, WHITE = 128 /* the darkest grey that is white */ };

static const double default_strength = 0.8;

static int check_given_size(int64_t width, int64_t height, const char *what, struct smalti_error *error)
{
	if (width >= 1 && width <= SMALTI_SIDE_MAX && height >= 1 && height <= SMALTI_SIDE_MAX)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL, "%s: expected sides of 1 to %d pixels, found %lldx%lld",
			   what, SMALTI_SIDE_MAX, (long long)width, (long long)height);
}

/* Refuses what is of an image without one. */
static int check_absent(const struct smalti_request *r, struct smalti_error *error)
{
	const char *what = r->mask            ? "mask"
			   : r->keep_original ? "keep_original"
			   : r->strength != 0 ? "strength"
			   : r->posterior     ? "posterior"
					      : NULL;
	return what ? smalti_fail(error, SMALTI_EINVAL, "%s: needs an image, and none is given", what) : 0;
}

int smalti_plan_image_check(struct smalti_request *r, struct smalti_error *error)
{
	if (!r->image)
		return check_absent(r, error);
	if (check_given_size(r->image_width, r->image_height, "image", error) < 0 ||
	    (r->mask && check_given_size(r->mask_width, r->mask_height, "mask", error) < 0) ||
	    smalti_check_range((int)r->posterior, 0, SMALTI_POSTERIOR_MEAN, "posterior", error) < 0)
		return -1;
	if (!(r->strength >= 0 && r->strength <= 1))
		return smalti_fail(error, SMALTI_EINVAL,
				   "strength: expected a number above 0 and up to 1, found %g", r->strength);
	if (r->latents)
		return smalti_fail(error, SMALTI_EINVAL, "image and latents exclude each other");
	if (r->keep_original && !r->mask)
		return smalti_fail(error, SMALTI_EINVAL, "keep_original: needs a mask, and none is given");
	if (r->strength == 0)
		r->strength = r->mask ? 1 : default_strength;
	return 0;
}

/* The source of a resizer: rows of `channels` bytes a pixel, 3 or 1. */
struct pixels {
	const unsigned char *rows;
	int64_t width, channels;
};

static int read_rows(void *user, int64_t first, int64_t count, uint8_t *rgb, struct smalti_error *error)
{
	const struct pixels *from = user;
	const unsigned char *x = from->rows + first * from->width * from->channels;
	(void)error;
	for (int64_t i = 0; i < count * from->width; i++)
		for (int64_t c = 0; c < CHANNELS; c++)
			rgb[i * CHANNELS + c] = x[i * from->channels + (from->channels > 1 ? c : 0)];
	return 0;
}

/* Returns the pixels as RGB in the size that is made. */
static unsigned char *resize(const struct smalti_plan *plan, struct pixels from, int64_t height,
			     struct smalti_error *error)
{
	const struct smalti_fit fit = smalti_fit_stretch(plan->made_height, plan->made_width);
	unsigned char *rgb = smalti_calloc(plan->made_height, plan->made_width * CHANNELS, error);
	struct smalti_resizer *resizer =
	    rgb ? smalti_resizer_open(height, from.width, &fit, SMALTI_FILTER_LANCZOS, read_rows, &from,
				      error)
		: NULL;
	if (!resizer || smalti_resizer_rows(resizer, 0, plan->made_height, rgb, error) < 0) {
		free(rgb);
		rgb = NULL;
	}
	smalti_resizer_close(resizer);
	return rgb;
}

/* Makes both masks. A latent takes the first of its pixels. */
static int make_masks(struct smalti_plan *plan, struct smalti_error *error)
{
	const struct smalti_request *r = &plan->request;
	struct smalti_plan_image *image = plan->image;
	const int64_t factor = smalti_model_factor(plan->model), width = plan->made_width;
	const int64_t channels = plan->model->denoiser->in_channels;
	const int64_t plane = plan->latent_height * plan->latent_width;
	unsigned char *rgb = resize(plan, (struct pixels){r->mask, r->mask_width, 1}, r->mask_height, error);
	image->mask = rgb;
	image->latent_mask = rgb ? smalti_calloc(channels * plane, sizeof(float), error) : NULL;
	if (!image->latent_mask)
		return -1;
	for (int64_t i = 0; i < plan->made_height * width; i++)
		rgb[i] = rgb[i * CHANNELS] >= WHITE ? UINT8_MAX : 0;
	for (int64_t i = 0; i < channels * plane; i++) {
		const int64_t row = i % plane / plan->latent_width, column = i % plan->latent_width;
		image->latent_mask[i] = rgb[row * factor * width + column * factor] ? 1 : 0;
	}
	return 0;
}

/* Checks the sizes: pixels that are cropped away later have no image. */
static int check_sizes(const struct smalti_plan *plan, struct smalti_error *error)
{
	const struct smalti_request *r = &plan->request;
	struct smalti_model_info info;
	smalti_model_info(plan->model, &info);
	const int64_t multiple = info.size_multiple;
	if (plan->made_width % multiple || plan->made_height % multiple)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "an image to begin with: expected a width and height that are multiples of "
		    "%lld, found %lldx%lld",
		    (long long)multiple, (long long)plan->made_width, (long long)plan->made_height);
	if (r->keep_original && (plan->made_width != r->width || plan->made_height != r->height))
		return smalti_fail(error, SMALTI_EINVAL,
				   "keep_original: with resolution binning the image of %lldx%lld is made as "
				   "%lldx%lld, so that no pixel is kept; give one of both",
				   (long long)r->width, (long long)r->height, (long long)plan->made_width,
				   (long long)plan->made_height);
	return 0;
}

/* Makes the request's pictures the plan's: who made the request may free them. */
static void keep_pictures(struct smalti_plan *plan)
{
	struct smalti_request *r = &plan->request;
	r->image = plan->image->rgb;
	r->mask = plan->image->mask;
	r->image_width = r->mask_width = plan->made_width;
	r->image_height = r->mask_height = plan->made_height;
}

int smalti_plan_image_make(struct smalti_plan *plan, struct smalti_error *error)
{
	const struct smalti_request *r = &plan->request;
	if (!r->image)
		return 0;
	if (!plan->model->encoder)
		return smalti_fail(error, plan->model->no_encoder.code, "an image to begin with: %s",
				   plan->model->no_encoder.message);
	if (check_sizes(plan, error) < 0)
		return -1;
	plan->image = smalti_calloc(1, sizeof(*plan->image), error);
	if (!plan->image)
		return -1;
	plan->image->rgb =
	    resize(plan, (struct pixels){r->image, r->image_width, CHANNELS}, r->image_height, error);
	if (!plan->image->rgb || (r->mask && make_masks(plan, error) < 0))
		return -1;
	keep_pictures(plan);
	return 0;
}

void smalti_plan_image_free(struct smalti_plan_image *image)
{
	if (!image)
		return;
	free(image->rgb);
	free(image->mask);
	free(image->latent_mask);
	smalti_vae_plan_free(&image->encoding);
	free(image);
}

int64_t smalti_plan_image_bytes(const struct smalti_plan *plan)
{
	const int64_t masks = plan->image->mask ? CHANNELS : 0;
	return (CHANNELS + masks) * plan->made_height * plan->made_width +
	       smalti_weights_bytes(plan->model->encoder->weights);
}

void smalti_plan_image_keep(const struct smalti_plan *plan, int64_t row, unsigned char *rgb)
{
	const struct smalti_plan_image *image = plan->image;
	const int64_t width = plan->made_width;
	for (int64_t i = row * width; i < (row + 1) * width; i++, rgb += CHANNELS)
		if (!image->mask[i])
			memcpy(rgb, image->rgb + i * CHANNELS, CHANNELS);
}
