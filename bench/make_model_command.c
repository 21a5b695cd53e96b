/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench.h"
#include "bench/make_model.h"
#include "bench/weights.h"
#include "cli/progress.h"
#include "cli/signals.h"

#include <stdio.h>
#include <string.h>

struct make_model_options {
	int geometry, dtype;
	const char *only;
	int64_t t5_layers, shard_bytes;
	bool hollow, quiet;
};

static const struct make_model_options defaults = {
    .geometry = -1,
    .dtype = SMALTI_F16,
    .t5_layers = 0,
    .shard_bytes = SMALTI_SHARD_BYTES,
};

static const char *const dtypes[] = {
    [SMALTI_F32] = "f32", [SMALTI_F16] = "f16", [SMALTI_BF16] = "bf16", NULL};

#define TYPE struct make_model_options

static const struct smalti_option rows[] = {
    {SMALTI_CHOICE(TYPE, geometry), "geometry", 'g', "NAME", "shapes of the weights",
     .choices = smalti_geometry_names},
    {SMALTI_CHOICE(TYPE, dtype), "dtype", 'd', "TYPE", "data type of the weights", .choices = dtypes},
    {SMALTI_STRING(TYPE, only), "only", 0, "PARTS", "write only these of t5,dit,vae"},
    {SMALTI_INT64(TYPE, t5_layers), "t5-layers", 0, "N", "number of T5 layers; 0: all", .minimum = 0,
     .maximum = 24},
    {SMALTI_BYTES(TYPE, shard_bytes), "shard-size", 0, "BYTES",
     "split weight files that are larger; default 10 GB", .minimum = 1, .maximum = INT64_MAX},
    {SMALTI_FLAG(TYPE, hollow), "hollow", 0, NULL,
     "leave the weights out: holes in the files, which are read as zeros and take no place on the disk"},
    {SMALTI_FLAG(TYPE, quiet), "quiet", 'q', NULL, "show no progress"},
};

static const struct smalti_example examples[] = {
    {"The whole of PixArt-Sigma at 512 pixels, 11 GB", "smalti-bench make-model -g sigma-512 model"},
    {"With two layers of the text encoder, 2.5 GB",
     "smalti-bench make-model -g sigma-512 --t5-layers 2 model"},
    {"The transformer alone", "smalti-bench make-model -g sigma-2k --only dit model"},
    {NULL, NULL},
};

static enum smalti_exit run(void *values, int count, char **operands);

const struct smalti_command smalti_bench_make_model_command = {
    .name = "smalti-bench make-model",
    .summary = "write a model of a published geometry with weights by formula",
    .operands = "DIR",
    .description =
	"Writes a model in diffusers' layout whose tensors have the names and shapes of a published model. "
	"Weights are pseudo-random, the same on every machine, and keep activations in range: it computes "
	"at the speed of the real one, and paints noise. The tokenizer and the scheduler are those of the "
	"embedded model.\n\n"
	"DIR is made unless it is there, and must not hold a model. It gets the whole or nothing.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run,
};

/* Parses "t5,vae". */
static int parse_parts(const char *text, bool with[SMALTI_COMPONENTS], struct smalti_error *error)
{
	static const char *const names[SMALTI_COMPONENTS] = {
	    [SMALTI_TEXT_ENCODER] = "t5", [SMALTI_TRANSFORMER] = "dit", [SMALTI_VAE] = "vae"};
	for (int c = 0; c < SMALTI_COMPONENTS; c++)
		with[c] = !text;
	for (const char *part = text; part;) {
		const size_t length = strcspn(part, ",");
		int c = 0;
		while (c < SMALTI_COMPONENTS &&
		       (strlen(names[c]) != length || strncmp(part, names[c], length) != 0))
			c++;
		if (c == SMALTI_COMPONENTS)
			return smalti_fail(error, SMALTI_EINVAL,
					   "--only: '%.*s' is none of t5, dit and vae, separated by commas",
					   length < 40 ? (int)length : 40, part);
		with[c] = true;
		part = part[length] ? part + length + 1 : NULL;
	}
	return 0;
}

static int show(void *user, int64_t done, int64_t total)
{
	const int64_t megabyte = 1000000;
	smalti_progress_update(user, done / megabyte, total / megabyte);
	return smalti_signals_caught() != NULL;
}

static enum smalti_exit fail(const struct smalti_error *error)
{
	if (error->code != SMALTI_ECANCELLED)
		return smalti_command_fail(&smalti_bench_make_model_command, error);
	fprintf(stderr, "smalti-bench make-model: stopped by %s, nothing was made\n",
		smalti_signals_caught());
	return SMALTI_EXIT_FAILED;
}

static enum smalti_exit run(void *values, int count, char **operands)
{
	const struct make_model_options *options = values;
	struct smalti_error error = SMALTI_NO_ERROR;
	if (options->geometry < 0)
		return smalti_usage_error(&smalti_bench_make_model_command, "--geometry is missing");
	if (count != 1)
		return smalti_usage_error(&smalti_bench_make_model_command, "one directory was expected");
	struct smalti_progress progress;
	struct smalti_make_model_options wanted = {
	    .directory = operands[0],
	    .geometry = (enum smalti_geometry)options->geometry,
	    .dtype = (enum smalti_dtype)options->dtype,
	    .t5_layers = options->t5_layers,
	    .shard_bytes = options->shard_bytes,
	    .hollow = options->hollow,
	    .progress = show,
	    .user = &progress,
	};
	if (parse_parts(options->only, wanted.with, &error))
		return fail(&error);
	smalti_signals_catch();
	smalti_progress_begin(&progress, stderr, "MB", options->quiet);
	int status = smalti_make_model(&wanted, &error);
	if (!status)
		smalti_progress_end(&progress);
	return status ? fail(&error) : SMALTI_EXIT_OK;
}
