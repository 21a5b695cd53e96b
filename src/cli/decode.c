/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/decode.h"

#include "base/alloc.h"
#include "base/error.h"
#include "checkpoint/latents.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "image/image_writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct decode {
	const struct smalti_decode_options *options;
	struct smalti_vae_command run;
	const char *path; /* of the latents */
	char *stem;       /* its name, without directory and suffix: names of images in a directory */
	struct smalti_latents *latents;
	int64_t first, count; /* of those that are decoded */
	struct smalti_output output;
	enum smalti_image_encoding encoding;
};

static int check(const struct smalti_decode_options *o, int count, char *const *paths,
		 struct smalti_error *error)
{
	if (count != 1)
		return smalti_fail(error, SMALTI_EINVAL, "expected one file of latents, found %d", count);
	if (strcmp(paths[0], "-") == 0)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "latents are not read from the standard input: they are mapped, not copied; "
		    "name a file");
	if (o->vae.plan)
		return 0;
	if (!o->output || !*o->output)
		return smalti_fail(error, SMALTI_EINVAL, "no place for the image: give -o IMAGE");
	return smalti_check_stdout(o->output, o->vae.json, "--json", error);
}

/* "rings" of "images/rings.safetensors" */
static char *stem_of(const char *path, struct smalti_error *error)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
	return smalti_format(error, "%.*s", (int)(dot && dot > name ? dot - name : (ptrdiff_t)strlen(name)),
			     name);
}

/* Which of the latents. */
static int choose(struct decode *d, struct smalti_error *error)
{
	const struct smalti_latents_info *info = smalti_latents_info(d->latents);
	d->count = info->count;
	if (!d->options->has_index)
		return 0;
	if (d->options->index >= info->count)
		return smalti_fail(error, SMALTI_EINVAL, "--index: expected 0 to %" PRId64 ", found %" PRId64,
				   info->count - 1, d->options->index);
	d->first = d->options->index;
	d->count = 1;
	return 0;
}

static int open_output(struct decode *d, struct smalti_error *error)
{
	const struct smalti_decode_options *o = d->options;
	const int format =
	    smalti_format_of(o->output, o->has_format, o->format, smalti_image_suffixes, error);
	if (format < 0)
		return -1;
	d->encoding = (enum smalti_image_encoding)format;
	return smalti_output_open(&d->output, o->output, smalti_image_suffixes[format], d->count, error);
}

/* Latents and outputs: before StarPU is started for nothing. */
static int open_files(struct decode *d, struct smalti_error *error)
{
	d->latents = smalti_latents_open(d->path, d->options->key, error);
	d->stem = stem_of(d->path, error);
	if (!d->latents || !d->stem || choose(d, error) < 0)
		return -1;
	return d->options->vae.plan ? 0 : open_output(d, error);
}

static int write_rows(void *run, int64_t first, int64_t count, const void *rgb, struct smalti_error *error)
{
	return smalti_image_write_rows(((struct smalti_vae_command *)run)->image, first, count, rgb, error);
}

/* From numbers in memory to a complete file. */
static int make_file(struct decode *d, const float *latents, const char *path, struct smalti_error *error)
{
	static const struct smalti_image_text text = {"Software", PACKAGE_STRING};
	const struct smalti_image_format format = {.encoding = d->encoding,
						   .width = d->run.request.width,
						   .height = d->run.request.height,
						   .depth = d->options->bits ? 16 : 8,
						   .texts = &text,
						   .text_count = 1};
	const struct smalti_vae_decoding decoding = {
	    .request = d->run.request,
	    .latents = latents,
	    .raw = d->options->raw || smalti_latents_info(d->latents)->raw,
	    .samples = d->options->bits ? SMALTI_SAMPLES_U16 : SMALTI_SAMPLES_U8,
	    .rows = write_rows};
	struct smalti_image_writer *writer = smalti_image_create(path, &format, error);
	if (!writer)
		return -1;
	d->run.image = writer;
	if (smalti_vae_decode_image(d->run.vae, &decoding, error) == 0 &&
	    smalti_image_finish(writer, error) == 0)
		return smalti_image_commit(writer, error);
	smalti_image_abort(writer);
	return -1;
}

static int decode_item(struct decode *d, int64_t index, float *latents, const char *path,
		       struct smalti_error *error)
{
	if (smalti_latents_read(d->latents, index, latents, error) == 0 &&
	    make_file(d, latents, path, error) == 0)
		return 0;
	if (error->code == SMALTI_EINVAL) /* about the latents, not about the image's file */
		smalti_error_prefix(error, "%s", d->path);
	return -1;
}

static void decode_all(struct decode *d, float *latents)
{
	const struct smalti_latents_info *info = smalti_latents_info(d->latents);
	smalti_vae_command_begin(&d->run, d->count);
	for (int64_t index = d->first; smalti_vae_command_next(&d->run); index++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		char *path = smalti_output_image(&d->output, d->stem, index, info->count, &error);
		const int status = path ? decode_item(d, index, latents, path, &error) : -1;
		smalti_vae_command_add(&d->run, path ? path : d->options->output, status < 0 ? &error : NULL);
		free(path);
	}
}

static int check_channels(const struct decode *d, struct smalti_error *error)
{
	const int64_t expected = d->run.info.latent_channels;
	const int64_t found = smalti_latents_info(d->latents)->channels;
	if (expected == found)
		return 0;
	return smalti_fail(error, SMALTI_EUNSUPPORTED,
			   "%s: latents of %" PRId64 " channels are not this VAE's, which have %" PRId64,
			   d->path, found, expected);
}

static enum smalti_exit run(struct decode *d)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	if (open_files(d, &error) < 0 || smalti_vae_command_open(&d->run, &error) < 0 ||
	    check_channels(d, &error) < 0)
		return smalti_command_fail(d->run.command, &error);
	const struct smalti_latents_info *info = smalti_latents_info(d->latents);
	d->run.request.height = d->run.info.latent_pixels * info->height;
	d->run.request.width = d->run.info.latent_pixels * info->width;
	if (d->options->vae.plan)
		return smalti_vae_command_plan(&d->run, smalti_vae_estimate_decoding, d->path, &error) < 0
			   ? smalti_command_fail(d->run.command, &error)
			   : SMALTI_EXIT_OK;
	float *latents = smalti_calloc(info->channels * info->height * info->width, sizeof(*latents), &error);
	if (!latents)
		return smalti_command_fail(d->run.command, &error);
	decode_all(d, latents);
	free(latents);
	return smalti_vae_command_end(&d->run, d->options->output);
}

enum smalti_exit smalti_decode_run(void *options, int count, char **operands)
{
	const struct smalti_decode_options *o = options;
	struct decode d = {
	    .options = o,
	    .path = operands[0],
	    .run = {.command = &smalti_decode_command, .settings = &o->vae, .doing = "decoding"},
	};
	struct smalti_error error = SMALTI_NO_ERROR;
	if (check(o, count, operands, &error) < 0)
		return smalti_command_fail(d.run.command, &error);
	smalti_signals_catch();
	const enum smalti_exit status = smalti_vae_command_close(&d.run, run(&d));
	smalti_output_close(&d.output);
	smalti_latents_close(d.latents);
	free(d.stem);
	return status;
}
