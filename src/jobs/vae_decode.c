/* SPDX-License-Identifier: Apache-2.0 */
#include "base/argument.h"
#include "jobs/vae.h"
#include "jobs/vae_forecast.h"
#include "kernels/elementwise.h"
#include "kernels/scratch.h"
#include "smalti/generate.h"

static int open_decoder(struct smalti_vae *vae, struct smalti_error *error)
{
	if (!vae->decoder)
		vae->decoder =
		    smalti_vae_decoder_new(vae->weights, &vae->config, vae->checkpoint, vae->compute, error);
	return vae->decoder ? 0 : -1;
}

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

static int run(struct smalti_vae *vae, struct smalti_vae_decoding *d, const struct smalti_vae_plan *plan,
	       struct smalti_error *error)
{
	const int64_t rows = vae->config.latent_channels * d->height;
	struct smalti_vae_job job = {
	    .name = "decoding", .flops = plan->flops, .watch = d->watch, .user = d->user};
	if (smalti_vae_job_begin(&job, vae, error) < 0)
		return -1;
	struct smalti_tile *latents =
	    smalti_tile_upload(job.scope, rows, d->width * (int64_t)sizeof(float), d->latents);
	smalti_vae_decode(vae->decoder, job.scope, latents, d->raw, plan, deliver_rows, d);
	smalti_tile_release(latents);
	return smalti_vae_job_end(&job, error);
}

static struct smalti_vae_half half_of(const struct smalti_vae *vae, const struct smalti_vae_decoding *d)
{
	return (struct smalti_vae_half){.session = vae->session,
					.decoder = vae->decoder,
					.height = d->height,
					.width = d->width,
					.tile_rows = d->tile_rows,
					.scratch = d->scratch,
					.store_bf16 = d->store_bf16};
}

int smalti_vae_decode_picture(struct smalti_vae *vae, const struct smalti_vae_decoding *decoding,
			      struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct smalti_vae_plan plan;
	if (check(vae, decoding, error) < 0 || check_latents(vae, decoding, error) < 0 ||
	    open_decoder(vae, error) < 0)
		return -1;
	struct smalti_vae_decoding d = *decoding;
	const struct smalti_vae_half half = half_of(vae, &d);
	int status = smalti_vae_half_begin(&half, &plan, error);
	if (status == 0)
		status = run(vae, &d, &plan, error);
	smalti_vae_half_end(&plan);
	return status;
}

int smalti_vae_foresee_decoding(struct smalti_vae *vae, const struct smalti_vae_decoding *decoding,
				struct smalti_vae_forecast *forecast, struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (smalti_check_given(forecast, "forecast", error) < 0 || check(vae, decoding, error) < 0 ||
	    open_decoder(vae, error) < 0)
		return -1;
	const struct smalti_vae_half half = half_of(vae, decoding);
	return smalti_vae_half_foresee(&half, forecast, error);
}
