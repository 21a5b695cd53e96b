/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/npy.h"
#include "checkpoint/safetensors.h"
#include "cli/output.h"
#include "cli/ranks.h"
#include "cli/signals.h"
#include "cli/vae_command.h"
#include "jobs/input_image.h"
#include "ranks/ranks.h"

enum smalti_latents_format { SMALTI_LATENTS_SAFETENSORS, SMALTI_LATENTS_NPY };

/* The options of `smalti encode`; strings belong to argv. */
struct smalti_encode_options {
	struct smalti_vae_settings vae;
	const char *output;
	bool has_format, has_seed, sample;
	int format; /* enum smalti_latents_format */
	uint64_t seed;
};

#define TYPE struct smalti_encode_options

static const char *const formats[] = {"safetensors", "npy", NULL};

static const char *const suffixes[] = {".safetensors", ".npy", NULL};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Latents")},
    {SMALTI_FLAG(TYPE, sample), "sample", 0, NULL,
     "also draw latents, mean + std x noise, scaled for the diffusion model"},
    {SMALTI_SEED(TYPE, seed), "seed", 0, "N",
     "seed of the noise, drawn as torch does, from -2^63 to 2^64-1; default 0", SMALTI_GIVEN(TYPE, has_seed)},

    {SMALTI_GROUP("Output")},
    {SMALTI_STRING(TYPE, output), "output", 'o', "FILE", "file for the latents, or - for standard output"},
    {SMALTI_CHOICE(TYPE, format), "format", 0, "TYPE",
     "file format; default: by the file name's suffix, .safetensors or .npy", .choices = formats,
     SMALTI_GIVEN(TYPE, has_format)},
    SMALTI_VAE_REPORT_ROWS,

    SMALTI_VAE_ROWS,
};

static const struct smalti_encode_options defaults = {.vae = {SMALTI_VAE_DEFAULTS}};

static const struct smalti_example examples[] = {
    {"Encode a photograph", "smalti encode photo.jpg -o photo.safetensors"},
    {"Encode several images of the same size into one file",
     "smalti encode frames/*.png -o frames.safetensors"},
    {"Draw latents for a diffusion model", "smalti encode photo.jpg --sample --seed 3 -o photo.npy"},
    {NULL, NULL},
};

/* The largest image that is read: a header can claim any size. */
static const struct smalti_image_limits limits = {.pixels = INT64_C(1) << 34, .bytes = INT64_C(1) << 31};

struct encode {
	const struct smalti_encode_options *options;
	struct smalti_vae_command run;
	char *const *paths;
	int64_t count;
	int64_t values; /* latents of an image */
	float *mean, *std, *latents;
	struct smalti_output output;
	char *path; /* of the latents */
	int format; /* enum smalti_latents_format */
};

static int check(const struct smalti_encode_options *o, int count, char *const *paths,
		 struct smalti_error *error)
{
	if (count == 0)
		return smalti_fail(error, SMALTI_EINVAL, "nothing to encode: name an image");
	if (!o->vae.plan && (!o->output || !*o->output))
		return smalti_fail(error, SMALTI_EINVAL, "no place for the latents: give -o FILE");
	if (o->has_seed && !o->sample)
		return smalti_fail(error, SMALTI_EINVAL,
				   "--seed: is of the noise of --sample, which is missing");
	for (int i = 0; i < count; i++)
		if (strcmp(paths[i], "-") == 0)
			return smalti_fail(error, SMALTI_EINVAL,
					   "images are not read from the standard input: their sizes are "
					   "looked at before; name a file");
	return o->vae.plan ? 0 : smalti_check_stdout(o->output, o->vae.json, "--json", error);
}

/* Opens an image and checks its size against the first one's; NULL with an error. */
static struct smalti_input_image *open_image(struct encode *e, int64_t index, struct smalti_error *error)
{
	const struct smalti_input_options options = {
	    .fit = SMALTI_FIT_CROP, .multiple = e->run.info.latent_pixels, .limits = limits};
	struct smalti_input_image *image = smalti_input_image_open(e->paths[index], NULL, 0, &options, error);
	if (!image)
		return NULL;
	const struct smalti_input_info *info = smalti_input_image_info(image);
	struct smalti_vae_request *first = &e->run.request;
	if (index == 0) {
		first->width = info->width;
		first->height = info->height;
	}
	if (info->width == first->width && info->height == first->height)
		return image;
	smalti_fail(error, SMALTI_EUNSUPPORTED,
		    "%s: %" PRId64 "x%" PRId64 " pixels, but %s: %" PRId64 "x%" PRId64
		    "; one file holds images of one size: encode them one by one",
		    e->paths[index], info->width, info->height, e->paths[0], first->width, first->height);
	smalti_input_image_close(image);
	return NULL;
}

static void tell_cropping(const char *path, const struct smalti_input_info *info)
{
	if (info->width != info->original_width || info->height != info->original_height)
		fprintf(stderr,
			"smalti encode: %s: cropped from %" PRId64 "x%" PRId64 " to %" PRId64 "x%" PRId64
			" pixels\n",
			path, info->original_width, info->original_height, info->width, info->height);
}

/* Checks before the work that all images are there and of one size. */
static int look_at_images(struct encode *e, struct smalti_error *error)
{
	for (int64_t i = 0; i < e->count; i++) {
		struct smalti_input_image *image = open_image(e, i, error);
		if (!image)
			return -1;
		if (!e->options->vae.quiet)
			tell_cropping(e->paths[i], smalti_input_image_info(image));
		smalti_input_image_close(image);
	}
	return 0;
}

static int allocate(struct encode *e, struct smalti_error *error)
{
	const int64_t factor = e->run.info.latent_pixels;
	e->values =
	    e->run.info.latent_channels * (e->run.request.height / factor) * (e->run.request.width / factor);
	int64_t all = e->values;
	if (!smalti_multiply(&all, e->count))
		return smalti_fail(error, SMALTI_ENOMEM, "too many images");
	e->mean = smalti_calloc(all, sizeof(float), error);
	e->std = smalti_calloc(all, sizeof(float), error);
	if (e->options->sample)
		e->latents = smalti_calloc(all, sizeof(float), error);
	return e->mean && e->std && (e->latents || !e->options->sample) ? 0 : -1;
}

static int read_rows(void *run, int64_t first, int64_t count, float *rgb, struct smalti_error *error)
{
	return smalti_input_image_rows(((struct smalti_vae_command *)run)->image, first, count, rgb, error);
}

static int encode_image(struct encode *e, int64_t index, struct smalti_error *error)
{
	struct smalti_input_image *image = open_image(e, index, error);
	if (!image)
		return -1;
	e->run.image = image;
	const struct smalti_vae_encoding encoding = {.request = e->run.request,
						     .rows = read_rows,
						     .mean = e->mean + index * e->values,
						     .std = e->std + index * e->values};
	const int status = smalti_vae_encode_image(e->run.vae, &encoding, error);
	smalti_input_image_close(image);
	return status;
}

static void shape_of(const struct encode *e, struct smalti_tensor_view *view)
{
	const int64_t factor = e->run.info.latent_pixels;
	const int64_t shape[] = {e->count, e->run.info.latent_channels, e->run.request.height / factor,
				 e->run.request.width / factor};
	const int first = e->count > 1 ? 0 : 1;
	view->dtype = SMALTI_F32;
	view->rank = 4 - first;
	memcpy(view->shape, shape + first, (size_t)view->rank * sizeof(*shape));
}

static int write_latents(const struct encode *e, struct smalti_error *error)
{
	struct smalti_tensor_view views[] = {{.name = "mean", .data = e->mean},
					     {.name = "std", .data = e->std},
					     {.name = "latents", .data = e->latents}};
	for (int i = 0; i < 3; i++)
		shape_of(e, &views[i]);
	if (e->format == SMALTI_LATENTS_NPY)
		return smalti_npy_write(e->path, &views[e->latents ? 2 : 0], error);
	return smalti_safetensors_write(e->path, views, e->latents ? 3 : 2, error);
}

/* Counts the images that were made as failed, too: without the one file they are lost. */
static int lose(struct encode *e)
{
	e->run.report.failed += e->run.report.made;
	e->run.report.made = 0;
	return -1;
}

static int encode_all(struct encode *e)
{
	while (smalti_vae_command_next(&e->run)) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const int64_t index = e->run.report.made;
		const int status = encode_image(e, index, &error);
		smalti_vae_command_add(&e->run, e->paths[index], status < 0 ? &error : NULL);
		if (status < 0)
			return lose(e);
	}
	return e->run.report.made == e->count ? 0 : -1;
}

static enum smalti_exit encode_and_write(struct encode *e)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	smalti_vae_command_begin(&e->run, e->count);
	if (encode_all(e) < 0)
		return smalti_vae_command_end(&e->run, e->path);
	if (e->latents)
		smalti_vae_sample(e->run.vae, e->count * e->values, e->values / e->run.info.latent_channels,
				  e->mean, e->std, e->options->seed, e->latents);
	if (write_latents(e, &error) < 0) {
		smalti_image_report_error(&e->run.report, error.message);
		lose(e);
	} else if (e->format == SMALTI_LATENTS_NPY && !e->latents) {
		smalti_image_report_warning(&e->run.report,
					    "an .npy file names nothing: decode these means with --raw");
	}
	return smalti_vae_command_end(&e->run, e->path);
}

/* Opens the latents' file and decides its format before StarPU starts. */
static int open_output(void *user, struct smalti_error *error)
{
	struct encode *e = user;
	const struct smalti_encode_options *o = e->options;
	if (o->vae.plan)
		return 0;
	if (smalti_names_directory(o->output))
		return smalti_fail(error, SMALTI_EINVAL, "-o %s: is a directory; name a file", o->output);
	e->format = smalti_format_of(o->output, o->has_format, o->format, suffixes, error);
	if (e->format < 0 || smalti_output_open(&e->output, o->output, "", 1, error) < 0)
		return -1;
	e->path = smalti_output_image(&e->output, "", 0, 1, error);
	return e->path ? 0 : -1;
}

static enum smalti_exit run(struct encode *e)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const bool plan = e->options->vae.plan;
	if (check(e->options, e->count, e->paths, &error) < 0)
		return smalti_command_fail(e->run.command, &error);
	if (smalti_vae_command_open(&e->run, open_output, e, &error) < 0)
		return smalti_command_ranks_fail(e->run.command, &error);
	if (smalti_ranks_own() > 0)
		return smalti_vae_command_follow(&e->run);
	if (look_at_images(e, &error) < 0 ||
	    (plan ? smalti_vae_command_plan(&e->run, smalti_vae_estimate_encoding, e->paths[0], &error)
		  : allocate(e, &error)) < 0)
		return smalti_command_fail(e->run.command, &error);
	return plan ? SMALTI_EXIT_OK : encode_and_write(e);
}

static enum smalti_exit run_command(void *options, int count, char **operands)
{
	const struct smalti_encode_options *o = options;
	struct encode e = {
	    .options = o,
	    .paths = operands,
	    .count = count,
	    .run = {.command = &smalti_encode_command, .settings = &o->vae, .doing = "encoding"},
	};
	smalti_signals_catch();
	const enum smalti_exit status = smalti_vae_command_close(&e.run, run(&e));
	smalti_output_close(&e.output);
	free(e.path);
	free(e.mean);
	free(e.std);
	free(e.latents);
	return status;
}

const struct smalti_command smalti_encode_command = {
    .name = "smalti encode",
    .summary = "encode images to latents",
    .operands = "IMAGE...",
    .description =
	"Encodes images with the VAE's encoder to the mean and standard deviation of their latents. The "
	"result is exact at any size. Images are JPEG, PNG or WebP files; their EXIF orientation is applied, "
	"transparency is dropped, and sides that are not a multiple of the VAE's factor (8) are cropped "
	"equally at both ends.\n\nA safetensors file contains the tensors \"mean\" and \"std\" [channels, "
	"height, width], unscaled as in features, and \"latents\" with --sample; for several images, which "
	"must have the same size, [images, channels, height, width]. An .npy file contains one array: the "
	"means, or the latents with --sample.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run_command,
};
