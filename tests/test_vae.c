/* SPDX-License-Identifier: Apache-2.0
 *
 * The VAE alone, through the public API: equal to the reference's, in any form and bands, and it fails
 * cleanly. */
#include "golden.h"
#include "harness.h"
#include "kernels/kernels.h"
#include "kernels/layout.h"
#include "stage.h"
#include "vae_image.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct smalti_session *session;

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
	struct smalti_vae *vae = open_test_vae(session, test_model("tesserae"));
	struct smalti_safetensors *file = golden_open("golden/vae_decode.safetensors");
	int number = 0;
	for (const struct smalti_tensor_view *z; (z = golden_tensor(file, "vae_decode", number, ".z"));
	     number++) {
		const struct smalti_tensor_view *out = golden_tensor(file, "vae_decode", number, ".out");
		struct vae_image found = new_vae_image(out->shape[2], out->shape[3], 4);
		float *latents = golden_values(z), *expected = interleaved(out);
		struct smalti_vae_decoding decoding = vae_decoding_of(latents, &found);
		decoding.raw = true;
		decoding.request.tile_rows = number % 4;
		SUCCEEDS(smalti_vae_decode_image(vae, &decoding, &error), &error, "decode");
		CHECK(found.next == found.height, "all rows");
		golden_near((float *)(void *)found.samples, expected, found.height * found.width * 3, 5e-5,
			    z->name);
		free(latents);
		free(expected);
		free(found.samples);
	}
	CHECK(number > 0 && 2 * number == file->count, "every case was seen");
	smalti_safetensors_close(file);
	smalti_vae_close(vae);
}

static void golden_encodings(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae *vae =
	    open_test_vae(session, test_model("tesserae/vae")); /* its own directory does as well */
	struct smalti_safetensors *file = golden_open("golden/vae_encode.safetensors");
	int number = 0;
	for (const struct smalti_tensor_view *u8;
	     (u8 = golden_tensor(file, "vae_encode", number, ".image_u8")); number++) {
		const struct smalti_tensor_view *out = golden_tensor(file, "vae_encode", number, ".mean_std");
		const int64_t half = out->bytes / (2 * (int64_t)sizeof(float));
		struct vae_image image = new_vae_image(u8->shape[0], u8->shape[1], 4);
		float *expected = golden_values(out), *found = malloc((size_t)out->bytes);
		smalti_from_u8(u8->bytes, u8->data, (float *)(void *)image.samples);
		const struct smalti_vae_encoding encoding = {.request = {.height = image.height,
									 .width = image.width,
									 .tile_rows = number % 3,
									 .user = &image,
									 .on_progress = check_vae_progress},
							     .rows = give_vae_rows,
							     .mean = found,
							     .std = found + half};
		SUCCEEDS(smalti_vae_encode_image(vae, &encoding, &error), &error, "encode");
		CHECK(image.next == image.height, "all rows");
		golden_near(found, expected, 2 * half, 5e-5, u8->name);
		free(expected);
		free(found);
		free(image.samples);
	}
	CHECK(number > 0 && 2 * number == file->count, "every case was seen");
	smalti_safetensors_close(file);
	smalti_vae_close(vae);
}

static void forms_of_a_image(void)
{
	struct smalti_vae *vae = open_test_vae(session, NULL);
	struct smalti_vae_info info;
	smalti_vae_info(vae, &info);
	CHECK(info.latent_channels == 4 && info.latent_pixels == 8 && info.scaling_factor == 0.607718,
	      "info");
	float scaled[VAE_VALUES], raw[VAE_VALUES];
	test_fill(raw, VAE_VALUES, 0.7, 0.2);
	for (int i = 0; i < VAE_VALUES; i++)
		scaled[i] = (float)info.scaling_factor * raw[i];
	struct vae_image whole = decoded_vae_image(vae, scaled, 4, false, 0),
			 bytes = decoded_vae_image(vae, scaled, 1, false, 0);
	struct vae_image halves = decoded_vae_image(vae, scaled, 2, false, 0),
			 unscaled = decoded_vae_image(vae, raw, 4, true, 0);
	struct vae_image bands = decoded_vae_image(vae, scaled, 4, false, 1);
	const float *x = (float *)(void *)whole.samples;
	static uint8_t u8[VAE_SAMPLES];
	static uint16_t u16[VAE_SAMPLES];
	smalti_kernels()->to_u8(VAE_SAMPLES, x, u8);
	smalti_kernels()->to_u16(VAE_SAMPLES, x, u16);
	CHECK(memcmp(u8, bytes.samples, sizeof(u8)) == 0, "8 bits");
	CHECK(memcmp(u16, halves.samples, sizeof(u16)) == 0, "16 bits");
	golden_near((float *)(void *)unscaled.samples, x, VAE_SAMPLES, 1e-5, "raw latents");
	golden_near((float *)(void *)bands.samples, x, VAE_SAMPLES, 1e-5, "bands of one row");
	CHECK(memcmp(bands.samples, whole.samples, VAE_SAMPLES * sizeof(float)) != 0, "the bands are used");
	free(whole.samples);
	free(bytes.samples);
	free(halves.samples);
	free(unscaled.samples);
	free(bands.samples);
	smalti_vae_close(vae);
}

static void bad_latents(void)
{
	static const struct {
		int64_t height, width, tile_rows, at;
		float value;
		const char *words[2];
	} cases[] = {
	    {0, 8 * VAE_WIDTH, 0, -1, 0, {"height", "found 0"}},
	    {8 * VAE_HEIGHT, -1, 0, -1, 0, {"width", "found -1"}},
	    {8 * VAE_HEIGHT, INT64_MAX, 0, -1, 0, {"width", "multiple of 8 up to 131072"}},
	    {8 * VAE_HEIGHT, 8 * VAE_WIDTH, -1, -1, 0, {"tile rows", "found -1"}},
	    {8 * VAE_HEIGHT, 8 * VAE_WIDTH, 0, 0, NAN, {"nan", "[0, 0, 0]"}},
	    {8 * VAE_HEIGHT, 8 * VAE_WIDTH, 0, VAE_VALUES - 1, INFINITY, {"inf", "[3, 5, 5]"}},
	    {8 * VAE_HEIGHT, 8 * VAE_WIDTH, 0, VAE_WIDTH + 2, -INFINITY, {"-inf", "[0, 1, 2]"}},
	};
	struct smalti_vae *vae = open_test_vae(session, NULL);
	for (size_t k = 0; k < COUNT(cases); k++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		float latents[VAE_VALUES] = {0};
		struct vae_image image = new_vae_image(8 * VAE_HEIGHT, 8 * VAE_WIDTH, 1);
		struct smalti_vae_decoding decoding = vae_decoding_of(latents, &image);
		decoding.request.height = cases[k].height;
		decoding.request.width = cases[k].width;
		decoding.request.tile_rows = cases[k].tile_rows;
		if (cases[k].at >= 0)
			latents[cases[k].at] = cases[k].value;
		FAILS(smalti_vae_decode_image(vae, &decoding, &error), &error, SMALTI_EINVAL,
		      cases[k].words[0], cases[k].words[0], cases[k].words[1]);
		CHECK(image.next == 0, "no row");
		free(image.samples);
	}
	smalti_vae_close(vae);
}

static int encode(struct smalti_vae *vae, int64_t height, int64_t width, struct vae_image *image,
		  struct smalti_error *error)
{
	static float mean[4 * 4], std[4 * 4];
	const struct smalti_vae_encoding encoding = {
	    .request = {.height = height, .width = width, .user = image},
	    .rows = give_vae_rows,
	    .mean = mean,
	    .std = std};
	image->next = 0;
	return smalti_vae_encode_image(vae, &encoding, error);
}

static void bad_images(void)
{
	static const struct {
		int64_t height, width;
		const char *word;
	} cases[] = {{0, 8, "height"}, {8, 4, "width"}, {12, 8, "multiple of 8"}, {8, 1 << 18, "width"}};
	struct smalti_vae *vae = open_test_vae(session, NULL);
	struct vae_image image = new_vae_image(16, 16, 4);
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
	struct smalti_vae *vae = open_test_vae(session, NULL);
	struct smalti_error error = SMALTI_NO_ERROR, cancelled = SMALTI_NO_ERROR, later = SMALTI_NO_ERROR;
	struct vae_image image = new_vae_image(8 * SIDE, 8 * SIDE, 1);
	const struct smalti_vae_decoding decoding = vae_decoding_of(latents, &image);
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
	struct smalti_vae *vae = open_test_vae(session, NULL);
	struct vae_image image = new_vae_image(8 * SIDE, 8 * SIDE, 1);
	const struct smalti_vae_decoding decoding = vae_decoding_of(latents, &image);
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
	struct smalti_vae *vae = open_test_vae(session, NULL);
	const int64_t side = LATENT * 8;
	const struct smalti_vae_request request = {.height = side, .width = side};
	struct smalti_vae_estimate estimate;
	SUCCEEDS(smalti_vae_estimate_decoding(vae, &request, &estimate, &error), &error, "decoding");
	estimate_is(&estimate, side, "decoding");
	smalti_vae_estimate_free(&estimate);
	SUCCEEDS(smalti_vae_estimate_encoding(vae, &request, &estimate, &error), &error, "encoding");
	estimate_is(&estimate, side, "encoding");
	smalti_vae_estimate_free(&estimate);
	const struct smalti_vae_request nothing = {.height = 0, .width = side};
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
    {"bad latents", bad_latents},
    {"bad images", bad_images},
    {"failing sinks and cancelling", failing_sinks_and_cancelling},
    {"watching", watching},
    {"estimates", estimates},
    {"missing models", missing_models},
};

TEST_PROGRAM()
{
	session = stage_session(NULL, 0);
	int status = test_main("the VAE alone", tests, COUNT(tests));
	struct smalti_error error = SMALTI_NO_ERROR;
	return smalti_session_close(session, &error) < 0 ? 1 : status;
}
