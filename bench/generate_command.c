/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/images.h"
#include "bench/report.h"
#include "cli/common_rows.h"

#include <math.h>
#include <stdio.h>

struct generate_options {
	struct smalti_bench_options bench;
	const char *model, *variant, *prompt, *scheduler, *strategy, *shares;
	bool has_size;
	struct smalti_size size;
	int64_t steps, tile_tokens, tile_rows;
	struct smalti_session_options session;
	double guidance;
	enum smalti_precision precision;
};

#define TYPE struct generate_options

static const struct generate_options defaults = {
    .bench = {.repeats = 3},
    .prompt =
	"a watercolour of a lighthouse on a cliff above a stormy sea at dusk, gulls around its lantern, "
	"a small red boat on the waves below, long shadows and warm light",
    .steps = 20,
    .guidance = 4.5,
    .session = SMALTI_SESSION_DEFAULTS,
};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Images")},
    {SMALTI_SIZE(TYPE, size.width, size.height), "size", 's', "WxH",
     "width and height in pixels; default: the model's", .minimum = SMALTI_SIDE_MIN,
     .maximum = SMALTI_SIDE_MAX, SMALTI_GIVEN(TYPE, has_size)},
    {SMALTI_INT64(TYPE, steps), "steps", 0, "N", "number of denoising steps", .minimum = 1,
     .maximum = SMALTI_STEPS_MAX},
    {SMALTI_DOUBLE(TYPE, guidance), "guidance", 'g', "X",
     "classifier-free guidance scale; 1 or less uses one branch instead of two", .real_minimum = 0,
     .real_maximum = 1000},
    {SMALTI_STRING(TYPE, scheduler), "scheduler", 0, "NAME", "diffusion scheduler; default: the model's"},
    {SMALTI_STRING(TYPE, prompt), "prompt", 'p', "TEXT", "prompt; a number is appended for each image"},
    {SMALTI_GROUP("Model")},
    SMALTI_MODEL_ROW(TYPE, model),
    SMALTI_VARIANT_ROW(TYPE, variant),
    SMALTI_PRECISION_ROW(TYPE, precision),
    {SMALTI_GROUP("Machine")},
    SMALTI_WORKER_ROWS(TYPE),
    SMALTI_REPRODUCIBLE_ROW(TYPE),
    SMALTI_POLICY_ROW(TYPE),
    SMALTI_MEMORY_ROW(TYPE),
    SMALTI_TILE_TOKENS_ROW(TYPE, tile_tokens),
    SMALTI_TILE_ROWS_ROW(TYPE, tile_rows),
    SMALTI_TOKEN_SHARES_ROW(TYPE, shares),
    SMALTI_STRATEGY_ROW(TYPE, strategy),
    {SMALTI_GROUP("Measuring")},
    SMALTI_BENCH_ROWS(TYPE),
};

static const struct smalti_example examples[] = {
    {"The embedded model at its own size", "smalti-bench generate"},
    {"Another model, four steps", "smalti-bench generate -m model --size 512x512 --steps 4 --precision bf16"},
    {"What a number of workers changes",
     "smalti-bench generate --cpus 1 -o one.jsonl && smalti-bench generate --compare one.jsonl"},
    {NULL, NULL},
};

static enum smalti_exit run(void *values, int count, char **operands);

const struct smalti_command smalti_bench_generate_command = {
    .name = "smalti-bench generate",
    .summary = "time whole images and the share of each stage",
    .operands = "",
    .description =
	"Makes images one after the other, from prompt to pixels, and writes none. The first one makes the "
	"weights' packed form, and the empty negative prompt is encoded with it; the median of the others "
	"counts. \"text\", \"denoise\" and \"decode\" are the time during which an image was in that stage; "
	"\"packing\" is what the first one took longer; \"peak\" the most memory that was resident, with "
	"weights and mapped files. Below is a line for each device: what it did in the images that count.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run,
};

static const struct smalti_bench_column columns[] = {
    {"seconds", "seconds", 1, "%.4f"},
    {"least", "least", 1, "%.4f"},
    {"text", "text", 1, "%.4f"},
    {"denoising", "denoise", 1, "%.4f"},
    {"decoding", "decode", 1, "%.4f"},
    {"packing", "packing", 1, "%.4f"},
    {"peak_bytes", "peak MiB", 1.0 / (1 << 20), "%.0f"},
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static cJSON *facts_of(const struct generate_options *o)
{
	cJSON *facts = smalti_bench_facts(o->model ? o->model : "embedded", o->precision, &o->session);
	cJSON_AddNumberToObject(facts, "guidance", o->guidance);
	return facts;
}

static struct smalti_request request_of(const struct generate_options *o)
{
	struct smalti_request request;
	smalti_request_defaults(&request);
	request.prompt = o->prompt;
	request.width = o->has_size ? o->size.width : 0;
	request.height = o->has_size ? o->size.height : 0;
	request.steps = o->steps;
	request.guidance = o->guidance;
	request.scheduler = o->scheduler;
	request.tile_tokens = o->tile_tokens;
	request.tile_rows = o->tile_rows;
	request.strategy = o->strategy;
	request.shares = o->shares;
	return request;
}

static int add_line(struct smalti_bench_report *report, const struct generate_options *o,
		    const struct smalti_images_result *r, struct smalti_error *error)
{
	char name[224];
	snprintf(name, sizeof(name), "generate %lldx%lld %lld steps%s%s", (long long)r->width,
		 (long long)r->height, (long long)o->steps, *r->strategy ? " " : "", r->strategy);
	const struct smalti_bench_value line[COLUMNS] = {
	    {r->seconds, NULL},
	    {r->least, NULL},
	    {r->stages[SMALTI_STAGE_TEXT], NULL},
	    {r->stages[SMALTI_STAGE_DENOISING], NULL},
	    {r->stages[SMALTI_STAGE_DECODING], NULL},
	    {r->first > r->seconds ? r->first - r->seconds : 0, NULL},
	    {r->peak < 0 ? NAN : (double)r->peak, NULL},
	};
	return smalti_bench_report_add(report, name, line, r->uses, r->devices, error);
}

static int measure(const void *options, struct smalti_error *error)
{
	const struct generate_options *o = options;
	const struct smalti_request request = request_of(o);
	struct smalti_model_options model;
	struct smalti_images_result result;
	smalti_model_defaults(&model);
	model.directory = o->model;
	model.variant = o->variant;
	model.precision = o->precision;
	struct smalti_bench_report *report = smalti_bench_report_open(
	    &smalti_bench_generate_command, &o->bench, facts_of(o), columns, COLUMNS, error);
	int status = report ? smalti_images_measure(&o->session, &model, &request, (int)o->bench.repeats,
						    &result, error)
			    : -1;
	if (status == 0)
		status = add_line(report, o, &result, error);
	return smalti_bench_report_close(report, NULL, status, error);
}

static enum smalti_exit run(void *options, int count, char **operands)
{
	return smalti_bench_run(&smalti_bench_generate_command, measure, options, count, operands);
}
