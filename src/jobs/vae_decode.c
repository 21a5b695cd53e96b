/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/precision.h"
#include "jobs/vae_follow.h"
#include "kernels/kernels.h"
#include "kernels/scratch.h"
#include "samplers/noise.h"

#include <math.h>

static int check(const struct smalti_vae *vae, const struct smalti_vae_decoding *d,
		 struct smalti_error *error)
{
	if (smalti_check_given(vae, "VAE", error) < 0 || smalti_check_given(d, "decoding", error) < 0 ||
	    smalti_vae_request_check(vae, &d->request, error) < 0 ||
	    smalti_check_range((int)d->samples, 0, SMALTI_SAMPLES_F32, "samples", error) < 0 ||
	    smalti_check_given(d->latents, "latents", error) < 0 ||
	    smalti_check_given((const void *)(intptr_t)d->rows, "the decoding's function 'rows'", error) < 0)
		return -1;
	const int64_t factor = smalti_vae_factor(&vae->config);
	return smalti_check_planes(d->latents, vae->config.latent_channels, d->request.height / factor,
				   d->request.width / factor, error);
}

/* A request that is run, and the dtype in which its VAE computes. */
struct decoding {
	struct smalti_vae_decoding given;
	enum smalti_dtype compute;
	int64_t latents; /* how many values */
};
struct encoding {
	struct smalti_vae_encoding given;
	enum smalti_dtype compute;
};

/* Delivers a band of finished rows in the caller's format. */
static int deliver_rows(void *user, int64_t first, int64_t rows, int64_t width, const float *pixels,
			struct smalti_error *error)
{
	static const int64_t sizes[] = {[SMALTI_SAMPLES_U8] = 1, [SMALTI_SAMPLES_U16] = 2};
	const struct decoding *decoding = user;
	const struct smalti_vae_decoding *d = &decoding->given;
	const int64_t count = rows * width * 3;
	const struct smalti_maker maker = {"VAE", decoding->compute, d->latents, decoding->latents};
	if (smalti_precision_check_made(count, pixels, &maker, error) < 0)
		return -1;
	if (d->samples == SMALTI_SAMPLES_F32)
		return d->rows(d->request.user, first, rows, pixels, error);
	void *rgb = smalti_scratch(SMALTI_SCRATCH_ROWS, count * sizes[d->samples], error);
	if (!rgb)
		return -1;
	if (d->samples == SMALTI_SAMPLES_U8)
		smalti_kernels()->to_u8(count, pixels, rgb);
	else
		smalti_kernels()->to_u16(count, pixels, rgb);
	return d->rows(d->request.user, first, rows, rgb, error);
}

static void insert(struct smalti_vae_net *net, struct smalti_task_group *task_group,
		   const struct smalti_vae_plan *plan, void *decoding)
{
	const struct smalti_vae_decoding *d = &((const struct decoding *)decoding)->given;
	const int64_t factor = smalti_vae_factor(&net->config);
	struct smalti_tile *latents =
	    smalti_tile_upload_there(task_group, net->config.latent_channels * (d->request.height / factor),
				     d->request.width / factor * (int64_t)sizeof(float), d->latents);
	smalti_vae_decode(net, task_group, latents, d->raw, plan, deliver_rows, decoding);
	smalti_tile_release(latents);
}

static int decode(struct smalti_vae *vae, const struct smalti_vae_decoding *decoding,
		  struct smalti_error *error)
{
	const int64_t factor = smalti_vae_factor(&vae->config);
	struct decoding d = {*decoding, vae->compute,
			     vae->config.latent_channels * (decoding->request.height / factor) *
				 (decoding->request.width / factor)};
	return smalti_vae_request_run(vae, SMALTI_VAE_DECODE, &d.given.request, insert, &d, error);
}

int smalti_vae_decode_image(struct smalti_vae *vae, const struct smalti_vae_decoding *decoding,
			    struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (check(vae, decoding, error) < 0)
		return -1;
	smalti_vae_broadcast_request(&decoding->request, SMALTI_VAE_DECODE, decoding->raw);
	return decode(vae, decoding, error);
}

void smalti_vae_follow_decoding(struct smalti_vae *vae, const struct smalti_vae_broadcast *message)
{
	const struct smalti_vae_decoding decoding = {.request = message->request, .raw = message->raw};
	struct smalti_error error = SMALTI_NO_ERROR; /* which rank 0 hears of */
	decode(vae, &decoding, &error);
}

static int check_encoding(const struct smalti_vae *vae, const struct smalti_vae_encoding *e,
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
	const struct smalti_vae_encoding *e = &((const struct encoding *)user)->given;
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

/* Delivers the encoder's planes: means, then deviations. */
static int deliver_planes(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	const struct encoding *encoding = user;
	const struct smalti_vae_encoding *e = &encoding->given;
	const struct smalti_maker maker = {.model = "VAE", .compute = encoding->compute};
	if (smalti_precision_check_made(count, values, &maker, error) < 0)
		return -1;
	const size_t half = (size_t)count / 2;
	memcpy(e->mean, values, half * sizeof(float));
	memcpy(e->std, values + half, half * sizeof(float));
	return 0;
}

static void insert_encoding(struct smalti_vae_net *net, struct smalti_task_group *task_group,
			    const struct smalti_vae_plan *plan, void *encoding)
{
	const struct smalti_vae_encoding *e = &((const struct encoding *)encoding)->given;
	const int64_t factor = smalti_vae_factor(&net->config);
	struct smalti_tile *planes = smalti_vae_encode(net, task_group, plan, read_rows, encoding);
	smalti_insert(deliver, task_group, (.x = planes),
		      .count = 2 * net->config.latent_channels * (e->request.height / factor) *
			       (e->request.width / factor),
		      .sink = deliver_planes, .user = encoding);
	smalti_tile_release(planes);
}

static int encode(struct smalti_vae *vae, const struct smalti_vae_encoding *encoding,
		  struct smalti_error *error)
{
	struct encoding e = {*encoding, vae->compute};
	return smalti_vae_request_run(vae, SMALTI_VAE_ENCODE, &e.given.request, insert_encoding, &e, error);
}

int smalti_vae_encode_image(struct smalti_vae *vae, const struct smalti_vae_encoding *encoding,
			    struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (check_encoding(vae, encoding, error) < 0)
		return -1;
	smalti_vae_broadcast_request(&encoding->request, SMALTI_VAE_ENCODE, false);
	return encode(vae, encoding, error);
}

void smalti_vae_follow_encoding(struct smalti_vae *vae, const struct smalti_vae_broadcast *message)
{
	const struct smalti_vae_encoding encoding = {.request = message->request};
	struct smalti_error error = SMALTI_NO_ERROR; /* which rank 0 hears of */
	encode(vae, &encoding, &error);
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
