/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/quantize.h"
#include "cli/command.h"
#include "cli/common_rows.h"
#include "cli/numbers.h"

#define TYPE struct quantize_options

struct quantize_options {
	int type; /* enum smalti_quantization */
	const char *variant;
	bool quiet;
};

static const struct quantize_options defaults = {.quiet = false};

static const struct smalti_option rows[] = {
    {SMALTI_CHOICE(TYPE, type), "type", 't', "TYPE",
     "what weights become: int8, rows of integers with a scale each; fp8, e4m3 with a scale for each matrix",
     .choices = smalti_quantizations},
    SMALTI_VARIANT_ROW(TYPE, variant),
    {SMALTI_FLAG(TYPE, quiet), "quiet", 'q', NULL, "print errors only"},
};

static const struct smalti_example examples[] = {
    {"Make a model of a quarter of the size, and use it",
     "smalti quantize PixArt-Sigma-XL-2-512-MS sigma-int8 && smalti generate -m sigma-int8 -p 'a "
     "lighthouse'"},
    {"The text encoder alone, which has most of the weights",
     "smalti quantize PixArt-Sigma-XL-2-512-MS/text_encoder text-int8 && smalti generate -m "
     "PixArt-Sigma-XL-2-512-MS --text-encoder text-int8 -p 'a lighthouse'"},
    {NULL, NULL},
};

static enum smalti_exit run(void *values, int count, char **operands)
{
	const struct quantize_options *options = values;
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_quantize_result result;
	char before[SMALTI_NUMBER], after[SMALTI_NUMBER];
	if (count != 2)
		return smalti_usage_error(&smalti_quantize_command,
					  "expected two directories, SOURCE and TARGET, found %d", count);
	if (smalti_quantize(operands[0], operands[1], options->variant,
			    (enum smalti_quantization)options->type, &result, &error) < 0) {
		fprintf(stderr, "smalti quantize: %s\n", error.message);
		return SMALTI_EXIT_FAILED;
	}
	if (!options->quiet)
		printf("%s: %" PRId64 " matrices in %s, %s instead of %s\n", operands[1], result.matrices,
		       smalti_quantizations[options->type], smalti_number_bytes((double)result.after, after),
		       smalti_number_bytes((double)result.before, before));
	return smalti_finish_stdout();
}

const struct smalti_command smalti_quantize_command = {
    .name = "smalti quantize",
    .summary = "write a model's weights in 8 bits",
    .operands = "SOURCE TARGET",
    .description = "Reads the directory of a text encoder, of a transformer, or of a pipeline with both, and "
		   "writes a new "
		   "one, whose matrices have 8 bits for a weight: about a quarter of the size in f32. Norms, "
		   "biases, the "
		   "text encoder's last product of a layer (wo) and what of the transformer lies outside its "
		   "blocks keep "
		   "their type, since errors there cost most; an embedding of F32 becomes F16. A pipeline's "
		   "other components "
		   "are copied. The new directory appears complete or not at all.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run,
};
