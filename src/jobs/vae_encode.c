/* SPDX-License-Identifier: Apache-2.0 */
#include "base/argument.h"
#include "jobs/vae.h"
#include "jobs/vae_estimate.h"
#include "samplers/noise.h"
#include "smalti/generate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int check_side(const char *name, int64_t pixels, int64_t factor, struct smalti_error *error)
{
	if (pixels >= factor && pixels <= SMALTI_SIDE_MAX && pixels % factor == 0)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "%s of the image: expected a multiple of %" PRId64 " up to %d, found %" PRId64,
			   name, factor, SMALTI_SIDE_MAX, pixels);
}

static int check(const struct smalti_vae *vae, const struct smalti_vae_encoding *e,
		 struct smalti_error *error)
{
	if (smalti_check_given(vae, "VAE", error) < 0 || smalti_check_given(e, "encoding", error) < 0)
		return -1;
	const int64_t factor = smalti_vae_factor(&vae->config);
	return check_side("height", e->height, factor, error) < 0 ||
		       check_side("width", e->width, factor, error) < 0
		   ? -1
		   : smalti_check_range(e->tile_rows, 0, INT64_MAX, "tile rows", error);
}

static int check_ends(const struct smalti_vae_encoding *e, struct smalti_error *error)
{
	return smalti_check_given((const void *)(intptr_t)e->rows, "the encoding's function 'rows'", error) <
			   0 ||
		       smalti_check_given(e->mean, "place for the mean", error) < 0 ||
		       smalti_check_given(e->std, "place for the standard deviation", error) < 0
		   ? -1
		   : 0;
}

static int read_rows(void *user, int64_t first, int64_t rows, int64_t width, float *pixels,
		     struct smalti_error *error)
{
	const struct smalti_vae_encoding *e = user;
	if (e->rows(e->user, first, rows, pixels, error))
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

static void insert(const struct smalti_vae_job *job, struct smalti_task_group *task_group,
		   const struct smalti_vae_plan *plan)
{
	const struct smalti_vae_request *request = &job->request;
	struct smalti_tile *planes = smalti_vae_encode(request->net, task_group, plan, read_rows, job->what);
	smalti_insert(deliver, task_group, (.x = planes),
		      .count = 2 * job->vae->config.latent_channels * request->height * request->width,
		      .sink = deliver_planes, .user = job->what);
	smalti_tile_release(planes);
}

static int make_request(struct smalti_vae *vae, const struct smalti_vae_encoding *e,
			struct smalti_vae_request *request, struct smalti_error *error)
{
	if (check(vae, e, error) < 0)
		return -1;
	const int64_t factor = smalti_vae_factor(&vae->config);
	*request = (struct smalti_vae_request){.session = vae->session,
					       .net = smalti_vae_open_net(vae, SMALTI_VAE_ENCODE, error),
					       .height = e->height / factor,
					       .width = e->width / factor,
					       .tile_rows = e->tile_rows,
					       .scratch = e->scratch,
					       .store_bf16 = e->store_bf16};
	return request->net ? 0 : -1;
}

int smalti_vae_encode_image(struct smalti_vae *vae, const struct smalti_vae_encoding *encoding,
			    struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct smalti_vae_job job = {.vae = vae, .insert = insert};
	if (make_request(vae, encoding, &job.request, error) < 0 || check_ends(encoding, error) < 0)
		return -1;
	struct smalti_vae_encoding e = *encoding;
	job.on_progress = e.on_progress;
	job.user = e.user;
	job.what = &e;
	return smalti_vae_job_run(&job, error);
}

int smalti_vae_estimate_encoding(struct smalti_vae *vae, const struct smalti_vae_encoding *encoding,
				 struct smalti_vae_estimate *estimate, struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct smalti_vae_request request;
	if (smalti_check_given(estimate, "estimate", error) < 0 ||
	    make_request(vae, encoding, &request, error) < 0)
		return -1;
	return smalti_vae_request_estimate(&request, estimate, error);
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
