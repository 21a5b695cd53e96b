/* SPDX-License-Identifier: Apache-2.0 */
#include "base/argument.h"
#include "jobs/vae.h"
#include "jobs/vae_estimate.h"
#include "kernels/elementwise.h"
#include "kernels/scratch.h"
#include "smalti/generate.h"

static int check(const struct smalti_vae *vae, const struct smalti_vae_decoding *d,
		 struct smalti_error *error)
{
	if (smalti_check_given(vae, "VAE", error) < 0 || smalti_check_given(d, "decoding", error) < 0)
		return -1;
	const int64_t factor = smalti_vae_factor(&vae->config), most = SMALTI_SIDE_MAX / factor;
	return smalti_check_range(d->height, 1, most, "height of the latents", error) < 0 ||
		       smalti_check_range(d->width, 1, most, "width of the latents", error) < 0 ||
		       smalti_check_range(d->tile_rows, 0, INT64_MAX, "tile rows", error) < 0 ||
		       smalti_check_range((int)d->samples, 0, SMALTI_SAMPLES_F32, "samples", error) < 0
		   ? -1
		   : 0;
}

static int check_latents(const struct smalti_vae *vae, const struct smalti_vae_decoding *d,
			 struct smalti_error *error)
{
	if (smalti_check_given(d->latents, "latents", error) < 0 ||
	    smalti_check_given((const void *)(intptr_t)d->rows, "the decoding's function 'rows'", error) < 0)
		return -1;
	return smalti_check_planes(d->latents, vae->config.latent_channels, d->height, d->width, error);
}

/* A band of finished rows, as the caller wants it. */
static int deliver_rows(void *user, int64_t first, int64_t rows, int64_t width, const float *pixels,
			struct smalti_error *error)
{
	static const int64_t sizes[] = {[SMALTI_SAMPLES_U8] = 1, [SMALTI_SAMPLES_U16] = 2};
	const struct smalti_vae_decoding *d = user;
	const int64_t count = rows * width * 3;
	if (smalti_check_made(count, pixels, "VAE", error) < 0)
		return -1;
	if (d->samples == SMALTI_SAMPLES_F32)
		return d->rows(d->user, first, rows, pixels, error);
	void *rgb = smalti_scratch(SMALTI_SCRATCH_ROWS, count * sizes[d->samples], error);
	if (!rgb)
		return -1;
	if (d->samples == SMALTI_SAMPLES_U8)
		smalti_to_u8(count, pixels, rgb);
	else
		smalti_to_u16(count, pixels, rgb);
	return d->rows(d->user, first, rows, rgb, error);
}

static void insert(const struct smalti_vae_job *job, struct smalti_task_group *task_group,
		   const struct smalti_vae_plan *plan)
{
	struct smalti_vae_decoding *d = job->what;
	const int64_t rows = job->vae->config.latent_channels * d->height;
	struct smalti_tile *latents =
	    smalti_tile_upload(task_group, rows, d->width * (int64_t)sizeof(float), d->latents);
	smalti_vae_decode(job->request.net, task_group, latents, d->raw, plan, deliver_rows, d);
	smalti_tile_release(latents);
}

static int make_request(struct smalti_vae *vae, const struct smalti_vae_decoding *d,
			struct smalti_vae_request *request, struct smalti_error *error)
{
	if (check(vae, d, error) < 0)
		return -1;
	*request = (struct smalti_vae_request){.session = vae->session,
					       .net = smalti_vae_open_net(vae, SMALTI_VAE_DECODE, error),
					       .height = d->height,
					       .width = d->width,
					       .tile_rows = d->tile_rows,
					       .scratch = d->scratch,
					       .store_bf16 = d->store_bf16};
	return request->net ? 0 : -1;
}

int smalti_vae_decode_image(struct smalti_vae *vae, const struct smalti_vae_decoding *decoding,
			    struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct smalti_vae_job job = {.vae = vae, .insert = insert};
	if (make_request(vae, decoding, &job.request, error) < 0 || check_latents(vae, decoding, error) < 0)
		return -1;
	struct smalti_vae_decoding d = *decoding;
	job.on_progress = d.on_progress;
	job.user = d.user;
	job.what = &d;
	return smalti_vae_job_run(&job, error);
}

int smalti_vae_estimate_decoding(struct smalti_vae *vae, const struct smalti_vae_decoding *decoding,
				 struct smalti_vae_estimate *estimate, struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct smalti_vae_request request;
	if (smalti_check_given(estimate, "estimate", error) < 0 ||
	    make_request(vae, decoding, &request, error) < 0)
		return -1;
	return smalti_vae_request_estimate(&request, estimate, error);
}
