/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/latents.h"
#include "cli/output.h"
#include "cli/ranks.h"
#include "cli/signals.h"
#include "cli/vae_command.h"
#include "image/image_writer.h"
#include "ranks/ranks.h"

/* The options of `smalti decode`; strings belong to argv. */
struct smalti_decode_options {
	struct smalti_vae_settings vae;
	const char *output, *key;
	bool has_index, has_format, raw;
	int64_t index;
	int format; /* enum smalti_image_encoding */
	int bits;   /* 0: 8, 1: 16 */
};

#define TYPE struct smalti_decode_options

static const char *const formats[] = {"png", "ppm", NULL};
static const char *const depths[] = {"8", "16", NULL};

static const char *const suffixes[] = {".png", ".ppm", NULL};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Latents")},
    {SMALTI_STRING(TYPE, key), "key", 'k', "NAME",
     "name of the tensor in a safetensors file; default: \"latents\", else \"mean\" as written by smalti "
     "encode, else the only tensor"},
    {SMALTI_INT64(TYPE, index), "index", 'i', "N",
     "decode only image N of a batch, counted from 0; default: all", .minimum = 0, .maximum = INT64_MAX,
     SMALTI_GIVEN(TYPE, has_index)},
    {SMALTI_FLAG(TYPE, raw), "raw", 0, NULL,
     "take the latents as unscaled, as the VAE's encoder gives them; default for the \"mean\" of smalti "
     "encode; otherwise they are in the diffusion model's scale"},

    {SMALTI_GROUP("Output")},
    {SMALTI_STRING(TYPE, output), "output", 'o', "PATH",
     "write the image to this file, to standard output (-), or to a directory (existing, or ending in '/') "
     "as NAME.png or NAME-0.png, NAME-1.png, ...; NAME is the name of LATENTS without its suffix"},
    {SMALTI_CHOICE(TYPE, format), "format", 0, "TYPE",
     "file format; default: by the file name's suffix, .png or .ppm", .choices = formats,
     SMALTI_GIVEN(TYPE, has_format)},
    {SMALTI_CHOICE(TYPE, bits), "bits", 'b', "N", "bits per sample", .choices = depths},
    SMALTI_VAE_REPORT_ROWS,

    SMALTI_VAE_ROWS,
};

static const struct smalti_decode_options defaults = {.vae = {SMALTI_VAE_DEFAULTS}};

static const struct smalti_example examples[] = {
    {"Decode latents that smalti generate saved", "smalti decode star.safetensors -o star.png"},
    {"Decode a batch to images of 16 bits per sample", "smalti decode batch.npy --bits 16 -o images/"},
    {"Decode the result of smalti encode", "smalti decode photo.safetensors -o again.png"},
    {"Write the image to a pipe, with the VAE of another model",
     "smalti decode big.npy -m PixArt-Sigma-XL-2-512-MS --format ppm -o - | pnmtojpeg >big.jpg"},
    {"Show how an 8192x8192 image is decoded in 4 GB",
     "smalti decode latents-1024x1024.npy --memory-limit 4G --scratch /var/tmp --plan"},
    {NULL, NULL},
};

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

/* Returns "rings" of "images/rings.safetensors". */
static char *stem_of(const char *path, struct smalti_error *error)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
	return smalti_format(error, "%.*s", (int)(dot && dot > name ? dot - name : (ptrdiff_t)strlen(name)),
			     name);
}

/* Chooses the latents to decode. */
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
	const int format = smalti_format_of(o->output, o->has_format, o->format, suffixes, error);
	if (format < 0)
		return -1;
	d->encoding = (enum smalti_image_encoding)format;
	return smalti_output_open(&d->output, o->output, suffixes[format], d->count, error);
}

/* Opens latents and output before StarPU starts. */
static int open_files(void *user, struct smalti_error *error)
{
	struct decode *d = user;
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

/* Decodes the latents of one image into a complete file. */
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
		SCOPED(free)
		char *path = smalti_output_image(&d->output, d->stem, index, info->count, &error);
		const int status = path ? decode_item(d, index, latents, path, &error) : -1;
		smalti_vae_command_add(&d->run, path ? path : d->options->output, status < 0 ? &error : NULL);
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
	if (smalti_vae_command_open(&d->run, open_files, d, &error) < 0)
		return smalti_command_ranks_fail(d->run.command, &error);
	if (smalti_ranks_own() > 0)
		return smalti_vae_command_follow(&d->run);
	if (check_channels(d, &error) < 0)
		return smalti_command_fail(d->run.command, &error);
	const struct smalti_latents_info *info = smalti_latents_info(d->latents);
	d->run.request.height = d->run.info.latent_pixels * info->height;
	d->run.request.width = d->run.info.latent_pixels * info->width;
	if (d->options->vae.plan)
		return smalti_vae_command_plan(&d->run, smalti_vae_estimate_decoding, d->path, &error) < 0
			   ? smalti_command_fail(d->run.command, &error)
			   : SMALTI_EXIT_OK;
	SCOPED(free)
	float *latents = smalti_calloc(info->channels * info->height * info->width, sizeof(*latents), &error);
	if (!latents)
		return smalti_command_fail(d->run.command, &error);
	decode_all(d, latents);
	return smalti_vae_command_end(&d->run, d->options->output);
}

static enum smalti_exit run_command(void *options, int count, char **operands)
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

const struct smalti_command smalti_decode_command = {
    .name = "smalti decode",
    .summary = "decode latents to images",
    .operands = "LATENTS",
    .description = "Decodes latents [channels, height, width] or [images, channels, height, width] of a "
		   "safetensors or .npy file with the VAE's decoder. The result is exact at any size: "
		   "nothing is approximated by tiles. Rows are written as they are decoded, and the file "
		   "appears under its name when it is complete and stored safely on disk.\n\nSIGINT or "
		   "SIGTERM drop the image in progress; finished images remain.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run_command,
};
