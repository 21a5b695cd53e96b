/* SPDX-License-Identifier: Apache-2.0
 *
 * The VAE alone, through the public API: equal to the reference's, in any form and bands, and it fails
 * cleanly. */
#include "embedded.h"
#include "golden.h"
#include "harness.h"
#include "kernels/elementwise.h"
#include "kernels/layout.h"
#include "samplers/noise.h"
#include "smalti/generate.h"
#include "smalti/vae.h"
#include "stage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct smalti_session *session;

static struct smalti_vae *open_vae(const char *directory)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae_options options;
	smalti_vae_defaults(&options);
	options.directory = directory;
	struct smalti_vae *vae = smalti_vae_open(session, &options, &error);
	SUCCEEDS(vae ? 0 : -1, &error, directory);
	return vae;
}

/* An image as it comes, or as it is read: [height, width, 3] samples of `size` bytes. */
struct image {
	int64_t height, width, size, next;
	char *samples;
	int watched;
	double share;
	int64_t refuse, cancel; /* from this row on; -1: never */
	struct smalti_vae *vae;
};

static struct image new_image(int64_t height, int64_t width, int64_t size)
{
	struct image image = {.height = height, .width = width, .size = size, .refuse = -1, .cancel = -1};
	image.samples = malloc((size_t)(height * width * 3 * size));
	return image;
}

static int take(void *user, int64_t first, int64_t count, const void *rgb, struct smalti_error *error)
{
	struct image *to = user;
	const int64_t row = to->width * 3 * to->size;
	if (first != to->next || first + count > to->height)
		return smalti_fail(error, SMALTI_EINVAL, "rows out of order");
	if (to->refuse >= 0 && first + count > to->refuse)
		return smalti_fail(error, SMALTI_EIO, "refused");
	if (to->cancel >= 0 && first + count > to->cancel)
		smalti_vae_cancel(to->vae);
	memcpy(to->samples + first * row, rgb, (size_t)(count * row));
	to->next = first + count;
	return 0;
}

static int give(void *user, int64_t first, int64_t count, float *rgb, struct smalti_error *error)
{
	struct image *from = user;
	const int64_t row = from->width * 3;
	if (first != from->next || first + count > from->height)
		return smalti_fail(error, SMALTI_EINVAL, "rows out of order");
	if (from->refuse >= 0 && first + count > from->refuse)
		return smalti_fail(error, SMALTI_EIO, "refused");
	memcpy(rgb, from->samples + first * row * (int64_t)sizeof(*rgb),
	       (size_t)(count * row) * sizeof(*rgb));
	from->next = first + count;
	return 0;
}

static void on_progress(void *user, double share)
{
	struct image *image = user;
	CHECK(share >= image->share && share <= 1, "the share grows");
	image->share = share;
	image->watched++;
}

static struct smalti_vae_decoding decoding_of(const float *latents, struct image *to)
{
	static const enum smalti_samples kinds[] = {
	    [1] = SMALTI_SAMPLES_U8, [2] = SMALTI_SAMPLES_U16, [4] = SMALTI_SAMPLES_F32};
	return (struct smalti_vae_decoding){.latents = latents,
					    .height = to->height / 8,
					    .width = to->width / 8,
					    .samples = kinds[to->size],
					    .user = to,
					    .rows = take,
					    .on_progress = on_progress};
}

/* [3, height, width] as [height, width, 3]. */
static float *interleaved(const struct smalti_tensor_view *planes)
{
	const int64_t pixels = planes->shape[2] * planes->shape[3];
	float *rgb = malloc((size_t)planes->bytes), *values = malloc((size_t)planes->bytes);
	memcpy(values, planes->data, (size_t)planes->bytes);
	for (int64_t i = 0; i < pixels; i++)
		for (int64_t c = 0; c < 3; c++)
			rgb[i * 3 + c] = values[c * pixels + i];
	free(values);
	return rgb;
}

static void golden_decodings(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae *vae = open_vae(test_model("tesserae"));
	struct smalti_safetensors *file = golden_open("golden/vae_decode.safetensors");
	int number = 0;
	for (const struct smalti_tensor_view *z; (z = golden_tensor(file, "vae_decode", number, ".z"));
	     number++) {
		const struct smalti_tensor_view *out = golden_tensor(file, "vae_decode", number, ".out");
		struct image found = new_image(out->shape[2], out->shape[3], 4);
		float *latents = golden_values(z), *expected = interleaved(out);
		struct smalti_vae_decoding decoding = decoding_of(latents, &found);
		decoding.raw = true;
		decoding.tile_rows = number % 4;
		SUCCEEDS(smalti_vae_decode_image(vae, &decoding, &error), &error, "decode");
		CHECK(found.next == found.height, "all rows");
		golden_near((float *)(void *)found.samples, expected, found.height * found.width * 3, 5e-5,
			    z->name);
		free(latents);
		free(expected);
		free(found.samples);
	}
	CHECK(number > 0 && 2 * number == smalti_safetensors_count(file), "every case was seen");
	smalti_safetensors_close(file);
	smalti_vae_close(vae);
}

static void golden_encodings(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae *vae = open_vae(test_model("tesserae/vae")); /* its own directory does as well */
	struct smalti_safetensors *file = golden_open("golden/vae_encode.safetensors");
	int number = 0;
	for (const struct smalti_tensor_view *u8;
	     (u8 = golden_tensor(file, "vae_encode", number, ".image_u8")); number++) {
		const struct smalti_tensor_view *out = golden_tensor(file, "vae_encode", number, ".mean_std");
		const int64_t half = out->bytes / (2 * (int64_t)sizeof(float));
		struct image image = new_image(u8->shape[0], u8->shape[1], 4);
		float *expected = golden_values(out), *found = malloc((size_t)out->bytes);
		smalti_from_u8(u8->bytes, u8->data, (float *)(void *)image.samples);
		const struct smalti_vae_encoding encoding = {.height = image.height,
							     .width = image.width,
							     .tile_rows = number % 3,
							     .user = &image,
							     .rows = give,
							     .on_progress = on_progress,
							     .mean = found,
							     .std = found + half};
		SUCCEEDS(smalti_vae_encode_image(vae, &encoding, &error), &error, "encode");
		CHECK(image.next == image.height, "all rows");
		golden_near(found, expected, 2 * half, 5e-5, u8->name);
		free(expected);
		free(found);
		free(image.samples);
	}
	CHECK(number > 0 && 2 * number == smalti_safetensors_count(file), "every case was seen");
	smalti_safetensors_close(file);
	smalti_vae_close(vae);
}

enum { HEIGHT = 6, WIDTH = 6, VALUES = 4 * HEIGHT * WIDTH, SAMPLES = 64 * HEIGHT * WIDTH * 3 };

static struct image decoded(struct smalti_vae *vae, const float *latents, int64_t size, bool raw,
			    int64_t tile_rows)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct image found = new_image(8 * HEIGHT, 8 * WIDTH, size);
	struct smalti_vae_decoding decoding = decoding_of(latents, &found);
	decoding.raw = raw;
	decoding.tile_rows = tile_rows;
	SUCCEEDS(smalti_vae_decode_image(vae, &decoding, &error), &error, "decode");
	CHECK(found.next == found.height, "all rows");
	return found;
}

static void forms_of_a_image(void)
{
	struct smalti_vae *vae = open_vae(NULL);
	struct smalti_vae_info info;
	smalti_vae_info(vae, &info);
	CHECK(info.latent_channels == 4 && info.latent_pixels == 8 && info.scaling_factor == 0.607718,
	      "info");
	float scaled[VALUES], raw[VALUES];
	test_fill(raw, VALUES, 0.7, 0.2);
	for (int i = 0; i < VALUES; i++)
		scaled[i] = (float)info.scaling_factor * raw[i];
	struct image whole = decoded(vae, scaled, 4, false, 0), bytes = decoded(vae, scaled, 1, false, 0);
	struct image halves = decoded(vae, scaled, 2, false, 0), unscaled = decoded(vae, raw, 4, true, 0);
	struct image bands = decoded(vae, scaled, 4, false, 1);
	const float *x = (float *)(void *)whole.samples;
	static uint8_t u8[SAMPLES];
	static uint16_t u16[SAMPLES];
	smalti_to_u8(SAMPLES, x, u8);
	smalti_to_u16(SAMPLES, x, u16);
	CHECK(memcmp(u8, bytes.samples, sizeof(u8)) == 0, "8 bits");
	CHECK(memcmp(u16, halves.samples, sizeof(u16)) == 0, "16 bits");
	golden_near((float *)(void *)unscaled.samples, x, SAMPLES, 1e-5, "raw latents");
	golden_near((float *)(void *)bands.samples, x, SAMPLES, 1e-5, "bands of one row");
	CHECK(memcmp(bands.samples, whole.samples, SAMPLES * sizeof(float)) != 0, "the bands are used");
	free(whole.samples);
	free(bytes.samples);
	free(halves.samples);
	free(unscaled.samples);
	free(bands.samples);
	smalti_vae_close(vae);
}

/* scaling_factor·(mean + std·torch.randn(count, generator=manual_seed(7))), by torch itself. */
static void samples_as_torch(void)
{
	static const struct {
		int count;
		float first, second, last;
	} cases[] = {{20, -0x1.b6bea6p-1f, -0x1.9606c2p-2f, 0x1.e10f3cp-2f},
		     {7, -0x1.4dfd48p-1f, -0x1.0d547ep-2f, -0x1.5d3816p-2f}};
	struct smalti_vae *vae = open_vae(NULL);
	for (size_t k = 0; k < COUNT(cases); k++) {
		float mean[20], std[20], latents[20];
		for (int i = 0; i < 20; i++) {
			mean[i] = 0.125f * (float)i - 1;
			std[i] = 0.5f + 0.0625f * (float)i;
		}
		smalti_vae_sample(vae, cases[k].count, 1, mean, std, 7, latents);
		CHECK(latents[0] == cases[k].first && latents[1] == cases[k].second &&
			  latents[cases[k].count - 1] == cases[k].last,
		      "the very bits");
	}
	smalti_vae_close(vae);
}

/* A VAE's directory with the embedded weights and other keys in its config.json. */
static const char *write_vae(const char *keys)
{
	static char command[2048];
	const char *directory = test_scratch();
	snprintf(
	    command, sizeof(command),
	    "cp '%s'/*.safetensors '%s' && sed '1a %s' < '%s'/config.json | grep -v null > '%s'/config.json",
	    test_model("tesserae/vae"), directory, keys, test_model("tesserae/vae"), directory);
	CHECK(system(command) == 0, command);
	return directory;
}

static const struct latent_case {
	const char *keys;
	float shift[4], factor[4]; /* model's = factor·(VAE's − shift) */
} latent_cases[] = {
    {"\"shift_factor\": 0.375,", {0.375f, 0.375f, 0.375f, 0.375f}, {1, 1, 1, 1}},
    {"\"latents_mean\": [0.5, -0.25, 0, 1], \"latents_std\": [0.5, 2, 1, 4],",
     {0.5f, -0.25f, 0, 1},
     {2, 0.5f, 1, 0.25f}},
};

/* The diffusion model's latents and the VAE's, both ways, against diffusers' formula spelled out. */
static void latents_with_statistics(void)
{
	static const float scaling = 0.607718f;
	for (size_t k = 0; k < COUNT(latent_cases); k++) {
		const struct latent_case *c = &latent_cases[k];
		struct smalti_vae *vae = open_vae(write_vae(c->keys));
		float mean[VALUES], std[VALUES], expected[VALUES], sampled[VALUES], noise[VALUES];
		test_fill(mean, VALUES, 0.7, 0.2);
		test_fill(std, VALUES, 0.3, 0.9);
		struct smalti_generator generator;
		smalti_generator_seed(&generator, 7);
		smalti_randn(&generator, SMALTI_F32, VALUES, noise);
		for (int i = 0; i < VALUES; i++) {
			const int channel = i / (HEIGHT * WIDTH);
			noise[i] = mean[i] + std[i] * noise[i];
			expected[i] = scaling * c->factor[channel] * (noise[i] - c->shift[channel]);
		}
		smalti_vae_sample(vae, VALUES, HEIGHT * WIDTH, mean, std, 7, sampled);
		golden_near(sampled, expected, VALUES, 1e-6, c->keys);
		struct image own = decoded(vae, noise, 4, true, 0),
			     models = decoded(vae, sampled, 4, false, 0);
		golden_near((float *)(void *)models.samples, (float *)(void *)own.samples, SAMPLES, 1e-5,
			    c->keys);
		free(own.samples);
		free(models.samples);
		smalti_vae_close(vae);
	}
}

/* What generating gives away: its latents, and the rows that it decodes of them. */
struct generated {
	float latents[VALUES];
	uint8_t rows[SAMPLES];
	int status;
};

static int keep_latents(void *user, const int64_t shape[3], const float *values, struct smalti_error *error)
{
	struct generated *to = user;
	(void)error;
	CHECK(shape[0] * shape[1] * shape[2] == VALUES, "the latents' extents");
	memcpy(to->latents, values, sizeof(to->latents));
	return 0;
}

static int keep_rows(void *user, int64_t first, int64_t count, const unsigned char *rgb,
		     struct smalti_error *error)
{
	struct generated *to = user;
	(void)error;
	memcpy(to->rows + first * 8 * WIDTH * 3, rgb, (size_t)(count * 8 * WIDTH * 3));
	return 0;
}

static void keep_status(void *user, int status, const struct smalti_error *error)
{
	(void)error;
	((struct generated *)user)->status = status;
}

/* An image is decoded as its latents are alone. */
static void generating_with_statistics(void)
{
	for (size_t k = 0; k < COUNT(latent_cases); k++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const char *directory = write_vae(latent_cases[k].keys);
		const struct smalti_model_options options = {.vae = directory};
		struct smalti_model *model = smalti_model_open(session, &options, &error);
		SUCCEEDS(model ? 0 : -1, &error, directory);
		struct smalti_batch *batch = smalti_batch_open(model, &error);
		struct smalti_request request;
		static struct generated found;
		found.status = -1;
		smalti_request_defaults(&request);
		request.prompt = "tree";
		request.width = 8 * WIDTH;
		request.height = 8 * HEIGHT;
		request.steps = 1;
		const struct smalti_image_callbacks image = {
		    .user = &found, .rows = keep_rows, .latents = keep_latents, .done = keep_status};
		SUCCEEDS(embedded_submit(model, batch, &request, 0, &image, &error), &error, "submit");
		smalti_batch_close(batch);
		smalti_model_close(model);
		CHECK(found.status == 0, "generated");
		struct smalti_vae *vae = open_vae(directory);
		struct image again = decoded(vae, found.latents, 1, false, 8);
		CHECK(memcmp(again.samples, found.rows, sizeof(found.rows)) == 0, latent_cases[k].keys);
		free(again.samples);
		smalti_vae_close(vae);
	}
}

static void bad_latents(void)
{
	static const struct {
		int64_t height, width, tile_rows, at;
		float value;
		const char *words[2];
	} cases[] = {
	    {0, WIDTH, 0, -1, 0, {"height", "found 0"}},
	    {HEIGHT, -1, 0, -1, 0, {"width", "found -1"}},
	    {HEIGHT, INT64_MAX, 0, -1, 0, {"width", "16384"}},
	    {HEIGHT, WIDTH, -1, -1, 0, {"tile rows", "found -1"}},
	    {HEIGHT, WIDTH, 0, 0, NAN, {"nan", "[0, 0, 0]"}},
	    {HEIGHT, WIDTH, 0, VALUES - 1, INFINITY, {"inf", "[3, 5, 5]"}},
	    {HEIGHT, WIDTH, 0, WIDTH + 2, -INFINITY, {"-inf", "[0, 1, 2]"}},
	};
	struct smalti_vae *vae = open_vae(NULL);
	for (size_t k = 0; k < COUNT(cases); k++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		float latents[VALUES] = {0};
		struct image image = new_image(8 * HEIGHT, 8 * WIDTH, 1);
		struct smalti_vae_decoding decoding = decoding_of(latents, &image);
		decoding.height = cases[k].height;
		decoding.width = cases[k].width;
		decoding.tile_rows = cases[k].tile_rows;
		if (cases[k].at >= 0)
			latents[cases[k].at] = cases[k].value;
		FAILS(smalti_vae_decode_image(vae, &decoding, &error), &error, SMALTI_EINVAL,
		      cases[k].words[0], cases[k].words[0], cases[k].words[1]);
		CHECK(image.next == 0, "no row");
		free(image.samples);
	}
	smalti_vae_close(vae);
}

static int encode(struct smalti_vae *vae, int64_t height, int64_t width, struct image *image,
		  struct smalti_error *error)
{
	static float mean[4 * 4], std[4 * 4];
	const struct smalti_vae_encoding encoding = {
	    .height = height, .width = width, .user = image, .rows = give, .mean = mean, .std = std};
	image->next = 0;
	return smalti_vae_encode_image(vae, &encoding, error);
}

static void bad_images(void)
{
	static const struct {
		int64_t height, width;
		const char *word;
	} cases[] = {{0, 8, "height"}, {8, 4, "width"}, {12, 8, "multiple of 8"}, {8, 1 << 18, "width"}};
	struct smalti_vae *vae = open_vae(NULL);
	struct image image = new_image(16, 16, 4);
	float *pixels = (float *)(void *)image.samples;
	test_fill(pixels, 16 * 16 * 3, 0.1, 0);
	for (size_t k = 0; k < COUNT(cases); k++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		FAILS(encode(vae, cases[k].height, cases[k].width, &image, &error), &error, SMALTI_EINVAL,
		      cases[k].word, cases[k].word);
	}
	struct smalti_error error = SMALTI_NO_ERROR, bad = SMALTI_NO_ERROR, again = SMALTI_NO_ERROR;
	image.refuse = 9;
	FAILS(encode(vae, 16, 16, &image, &error), &error, SMALTI_EIO, "source", "refused");
	image.refuse = -1;
	pixels[(3 * 16 + 5) * 3 + 1] = NAN;
	FAILS(encode(vae, 16, 16, &image, &bad), &bad, SMALTI_EINVAL, "NaN", "nan", "row 3", "column 5");
	pixels[(3 * 16 + 5) * 3 + 1] = 0;
	SUCCEEDS(encode(vae, 16, 16, &image, &again), &again, "the VAE is as good as before");
	free(image.samples);
	smalti_vae_close(vae);
}

static void failing_sinks_and_cancelling(void)
{
	enum { SIDE = 32 };
	static float latents[4 * SIDE * SIDE];
	struct smalti_vae *vae = open_vae(NULL);
	struct smalti_error error = SMALTI_NO_ERROR, cancelled = SMALTI_NO_ERROR, later = SMALTI_NO_ERROR;
	struct image image = new_image(8 * SIDE, 8 * SIDE, 1);
	const struct smalti_vae_decoding decoding = decoding_of(latents, &image);
	image.refuse = 100;
	FAILS(smalti_vae_decode_image(vae, &decoding, &error), &error, SMALTI_EIO, "sink", "refused");
	CHECK(image.next > 0 && image.next <= 100, "rows up to there");
	image.next = 0;
	image.share = 0;
	image.refuse = -1;
	image.vae = vae;
	image.cancel = 70;
	FAILS(smalti_vae_decode_image(vae, &decoding, &cancelled), &cancelled, SMALTI_ECANCELLED, "cancelled",
	      "cancelled");
	CHECK(image.next > 70 && image.next < image.height, "rows up to there");
	FAILS(smalti_vae_decode_image(vae, &decoding, &later), &later, SMALTI_ECANCELLED, "later",
	      "cancelled");
	free(image.samples);
	smalti_vae_close(vae);
}

/* Long enough that somebody is told. */
static void watching(void)
{
	enum { SIDE = 96 };
	static float latents[4 * SIDE * SIDE];
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae *vae = open_vae(NULL);
	struct image image = new_image(8 * SIDE, 8 * SIDE, 1);
	const struct smalti_vae_decoding decoding = decoding_of(latents, &image);
	SUCCEEDS(smalti_vae_decode_image(vae, &decoding, &error), &error, "decode");
	char text[64];
	snprintf(text, sizeof(text), "told %d times, at last %g", image.watched, image.share);
	CHECK(image.watched > 1 && image.share > 0.3, text);
	free(image.samples);
	smalti_vae_close(vae);
}

static void estimate_is(const struct smalti_vae_estimate *f, int64_t side, const char *what)
{
	CHECK(f->count >= 20 && f->tile_rows >= 1 && f->memory > 0 && f->scratch == 0, what);
	CHECK(f->flops >= f->min_flops && f->min_flops > 0, what);
	CHECK(f->seconds > 0 && f->seconds < 60, what);
	int64_t largest = 0;
	double flops = 0;
	for (int64_t i = 0; i < f->count; i++) {
		const struct smalti_vae_map *map = &f->maps[i];
		largest = map->width > largest ? map->width : largest;
		flops += (double)map->times * map->flops;
		CHECK(map->height == map->width && map->layer && map->storage, what);
	}
	CHECK(largest == side, what);
	CHECK(flops > 0.999 * f->flops && flops < 1.001 * f->flops, "the maps' arithmetic is all there is");
}

static void estimates(void)
{
	enum { LATENT = 24 };
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae *vae = open_vae(NULL);
	const int64_t side = LATENT * 8;
	const struct smalti_vae_decoding decoding = {.height = LATENT, .width = LATENT};
	const struct smalti_vae_encoding encoding = {.height = side, .width = side};
	struct smalti_vae_estimate estimate;
	SUCCEEDS(smalti_vae_estimate_decoding(vae, &decoding, &estimate, &error), &error, "decoding");
	estimate_is(&estimate, side, "decoding");
	smalti_vae_estimate_free(&estimate);
	SUCCEEDS(smalti_vae_estimate_encoding(vae, &encoding, &estimate, &error), &error, "encoding");
	estimate_is(&estimate, side, "encoding");
	smalti_vae_estimate_free(&estimate);
	const struct smalti_vae_decoding nothing = {.height = 0, .width = LATENT};
	FAILS(smalti_vae_estimate_decoding(vae, &nothing, &estimate, &error), &error, SMALTI_EINVAL,
	      "nothing", "height");
	smalti_vae_close(vae);
}

static void missing_models(void)
{
	static const struct {
		const char *directory, *word;
		enum smalti_code code;
	} cases[] = {
	    {"tesserae/missing", "no such directory", SMALTI_EIO},
	    {"tesserae/tokenizer", "config.json", SMALTI_ENOENT},
	};
	for (int k = 0; k < COUNT(cases); k++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_vae_options options;
		smalti_vae_defaults(&options);
		options.directory = test_model(cases[k].directory);
		FAILS(smalti_vae_open(session, &options, &error) ? 0 : -1, &error, cases[k].code,
		      cases[k].directory, cases[k].directory, cases[k].word);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_vae_options options = {.directory = test_model("tesserae/transformer")};
	FAILS(smalti_vae_open(session, &options, &error) ? 0 : -1, &error, SMALTI_EUNSUPPORTED, "transformer",
	      "AutoencoderKL");
}

static const struct test tests[] = {
    {"golden decodings", golden_decodings},
    {"golden encodings", golden_encodings},
    {"the forms of an image", forms_of_a_image},
    {"samples as torch draws them", samples_as_torch},
    {"latents with statistics", latents_with_statistics},
    {"generating with statistics", generating_with_statistics},
    {"bad latents", bad_latents},
    {"bad images", bad_images},
    {"failing sinks and cancelling", failing_sinks_and_cancelling},
    {"watching", watching},
    {"forecasts", estimates},
    {"missing models", missing_models},
};

int main(void)
{
	session = stage_session(NULL, 0);
	int status = test_main("the VAE alone", tests, COUNT(tests));
	struct smalti_error error = SMALTI_NO_ERROR;
	return smalti_session_close(session, &error) < 0 ? 1 : status;
}
