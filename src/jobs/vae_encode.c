/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "jobs/vae.h"
#include "samplers/noise.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int check(const struct smalti_vae *vae, const struct smalti_vae_encoding *e,
		 struct smalti_error *error)
{
	if (smalti_check_given(vae, "VAE", error) < 0 || smalti_check_given(e, "encoding", error) < 0 ||
	    smalti_vae_request_check(vae, &e->request, error) < 0 ||
	    smalti_check_given((const void *)(intptr_t)e->rows, "the encoding's function 'rows'", error) <
		0 ||
	    smalti_check_given(e->mean, "place for the mean", error) < 0)
		return -1;
	return smalti_check_given(e->std, "place for the standard deviation", error);
}

static int read_rows(void *user, int64_t first, int64_t rows, int64_t width, float *pixels,
		     struct smalti_error *error)
{
	const struct smalti_vae_encoding *e = user;
	if (e->rows(e->request.user, first, rows, pixels, error))
		return -1;
	for (int64_t i = 0; i < rows * width * 3; i++)
		if (!isfinite(pixels[i]))
			return smalti_fail(error, SMALTI_EINVAL,
					   "image: expected finite values, found %g in row %" PRId64
					   ", column %" PRId64,
					   (double)pixels[i], first + i / (width * 3), i / 3 % width);
	return 0;
}

/* The encoder's planes: means, then deviations. */
static int deliver_planes(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	const struct smalti_vae_encoding *e = user;
	if (smalti_check_made(count, values, "VAE", error) < 0)
		return -1;
	const size_t half = (size_t)count / 2;
	memcpy(e->mean, values, half * sizeof(float));
	memcpy(e->std, values + half, half * sizeof(float));
	return 0;
}

static void insert(struct smalti_vae_net *net, struct smalti_task_group *task_group,
		   const struct smalti_vae_plan *plan, void *encoding)
{
	const struct smalti_vae_encoding *e = encoding;
	const int64_t factor = smalti_vae_factor(&net->config);
	struct smalti_tile *planes = smalti_vae_encode(net, task_group, plan, read_rows, encoding);
	smalti_insert(deliver, task_group, (.x = planes),
		      .count = 2 * net->config.latent_channels * (e->request.height / factor) *
			       (e->request.width / factor),
		      .sink = deliver_planes, .user = encoding);
	smalti_tile_release(planes);
}

int smalti_vae_encode_image(struct smalti_vae *vae, const struct smalti_vae_encoding *encoding,
			    struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (check(vae, encoding, error) < 0)
		return -1;
	struct smalti_vae_encoding e = *encoding;
	return smalti_vae_request_run(vae, SMALTI_VAE_ENCODE, &e.request, insert, &e, error);
}

void smalti_vae_sample(const struct smalti_vae *vae, int64_t count, int64_t plane, const float *mean,
		       const float *std, uint64_t seed, float *latents)
{
	struct smalti_generator generator;
	smalti_generator_seed(&generator, seed);
	smalti_randn(&generator, SMALTI_F32, count, latents);
	for (int64_t i = 0; i < count; i++) {
		const struct smalti_latent_scale channel =
		    smalti_vae_latent_scale(&vae->config, i / plane % vae->config.latent_channels);
		latents[i] = (float)channel.inverse * (mean[i] + std[i] * latents[i] - (float)channel.shift);
	}
}
