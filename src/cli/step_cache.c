/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/step_cache.h"
#include "base/json.h"
#include "cli/common_rows.h"
#include "cli/lora.h"
#include "cli/signals.h"
#include "jobs/plan_step_cache.h"

#include <math.h>

#define TYPE struct smalti_step_cache_options

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Images")},
    {SMALTI_STRING(TYPE, prompts), "prompts", 'P', "FILE",
     "make an image of each prompt in FILE, one per line: plain text, or JSON Lines with \"prompt\" alone"},
    {SMALTI_INT64(TYPE, images), "images", 'i', "N", "make at most N images", .minimum = 1,
     .maximum = SMALTI_IMAGES_MAX},
    {SMALTI_SIZE(TYPE, request.width, request.height), "size", 's', "WxH",
     "width and height in pixels, 16 to 131072 each; default: the model's", .minimum = SMALTI_SIDE_MIN,
     .maximum = SMALTI_SIDE_MAX, SMALTI_GIVEN(TYPE, has_size)},
    {SMALTI_SEED(TYPE, request.seed), "seed", 0, "N",
     "seed of the first image; each of the next ones has one more; default 0"},
    {SMALTI_INT64(TYPE, request.steps), "steps", 0, "N", "number of denoising steps", .minimum = 1,
     .maximum = SMALTI_STEPS_MAX, .alias = "num-inference-steps"},
    {SMALTI_DOUBLE(TYPE, request.guidance), "guidance", 'g', "X",
     "classifier-free guidance scale; 1 or less disables guidance", .real_minimum = 0, .real_maximum = 1000,
     .alias = "guidance-scale"},
    {SMALTI_STRING(TYPE, request.scheduler), "scheduler", 0, "NAME",
     "diffusion scheduler, as of smalti generate; default: the model's"},

    {SMALTI_GROUP("Result")},
    {SMALTI_STRING(TYPE, output), "output", 'o', "TABLES",
     "write the table to this file, beside those of other models, schedulers, steps and guidance scales"},
    {SMALTI_STRING(TYPE, check), "check", 0, "RULE",
     "measure no table, but make each image with the step cache RULE and without, and compare: bound:X or "
     "first-block:X"},
    {SMALTI_FLAG(TYPE, json), "json", 0, NULL, "print the result as a JSON object"},
    {SMALTI_FLAG(TYPE, quiet), "quiet", 'q', NULL, "print errors only"},

    {SMALTI_GROUP("Model")},
    SMALTI_MODEL_ROW(TYPE, model.directory),
    SMALTI_VARIANT_ROW(TYPE, model.variant),
    SMALTI_PRECISION_ROW(TYPE, model.precision),
    SMALTI_LORA_ROW(TYPE, lora),
    {SMALTI_STRING(TYPE, model.step_cache_table), "step-cache-table", 0, "FILE",
     "tables for --check bound:X; default: step_cache.json in the model's directory"},

    {SMALTI_GROUP("Machine")},
    SMALTI_SESSION_ROWS(TYPE),
};

static const struct smalti_step_cache_options defaults = {
    .output = "step_cache.json",
    .request = {.images = 1, .steps = 20, .guidance = 4.5, .cleaning = SMALTI_CLEANING_BASIC},
    .session = SMALTI_SESSION_DEFAULTS,
    .images = SMALTI_IMAGES_MAX,
};

static const struct smalti_example examples[] = {
    {"Measure a table of bounds, and use it",
     "smalti step-cache -P prompts.txt -o tables.json && smalti generate --step-cache bound:0.04 "
     "--step-cache-table tables.json -p 'a red star on a white background'"},
    {"Show what a bound skips, what it costs, and whether it holds",
     "smalti step-cache -P prompts.txt --check bound:0.04"},
    {NULL, NULL},
};

void smalti_step_cache_image_free(struct smalti_step_cache_image *image)
{
	free(image->rgb);
	free(image->latents);
	free(image->calls);
	*image = (struct smalti_step_cache_image){0};
}

static void fail_run(struct smalti_step_cache_run *run, const struct smalti_error *error)
{
	HOLD_MUTEX(&run->mutex);
	if (run->failure.code == SMALTI_OK)
		run->failure = *error;
}

static int on_rows(void *user, int64_t first, int64_t count, const unsigned char *rgb,
		   struct smalti_error *error)
{
	struct smalti_step_cache_image *image = user;
	const int64_t line = image->run->width * 3;
	(void)error;
	memcpy(image->rgb + first * line, rgb, (size_t)(count * line));
	return 0;
}

static int on_latents(void *user, const int64_t shape[3], const float *values, struct smalti_error *error)
{
	struct smalti_step_cache_image *image = user;
	image->latent_count = shape[0] * shape[1] * shape[2];
	image->latents = smalti_calloc(image->latent_count, sizeof(*values), error);
	if (!image->latents)
		return -1;
	memcpy(image->latents, values, (size_t)image->latent_count * sizeof(*values));
	return 0;
}

/* Keeps the largest ratios of all images. */
static int add_ratios(struct smalti_step_cache_run *run, const struct smalti_step_report *report,
		      struct smalti_error *error)
{
	HOLD_MUTEX(&run->mutex);
	if (!run->ratios)
		run->ratios = smalti_calloc(report->steps, sizeof(*run->ratios), error);
	if (!run->ratios)
		return -1;
	run->steps = report->steps;
	for (int64_t i = 0; i < report->steps * SMALTI_STEP_GAPS; i++)
		run->ratios[0][i] = fmax(run->ratios[0][i], report->ratios[0][i]);
	return 0;
}

static int keep_calls(struct smalti_step_cache_image *image, const struct smalti_step_report *report,
		      struct smalti_error *error)
{
	image->call_count = report->steps * report->branches;
	image->calls = smalti_calloc(image->call_count, sizeof(*image->calls), error);
	if (!image->calls)
		return -1;
	memcpy(image->calls, report->calls, (size_t)image->call_count * sizeof(*image->calls));
	return 0;
}

static void on_steps(void *user, const struct smalti_step_report *report)
{
	struct smalti_step_cache_image *image = user;
	struct smalti_error error = SMALTI_NO_ERROR;
	if (keep_calls(image, report, &error) || (report->ratios && add_ratios(image->run, report, &error)))
		fail_run(image->run, &error);
}

static void on_done(void *user, int status, const struct smalti_error *error)
{
	const struct smalti_step_cache_image *image = user;
	if (status < 0)
		fail_run(image->run, error);
}

/* Returns the request of image `index`: its own prompt and seed. */
static struct smalti_request request_of(const struct smalti_step_cache_run *run, int64_t index)
{
	struct smalti_request request = run->options->request;
	request.prompt = run->texts[index];
	request.seed += (uint64_t)index;
	return request;
}

static int submit(struct smalti_step_cache_run *run, const char *rule, bool checks, bool decodes,
		  struct smalti_step_cache_image *image, struct smalti_error *error)
{
	const struct smalti_image_callbacks callbacks = {.user = image,
							 .rows = decodes ? on_rows : NULL,
							 .latents = on_latents,
							 .steps = on_steps,
							 .done = on_done};
	struct smalti_request request = request_of(run, image->index);
	request.step_cache = rule;
	request.step_cache_checks = checks;
	struct smalti_plan *plan = smalti_request_resolve(run->model, &request, error);
	if (!plan)
		return -1;
	run->width = request.width;
	run->height = request.height;
	image->rgb = decodes ? smalti_calloc(request.width * request.height, 3, error) : NULL;
	const int status =
	    decodes && !image->rgb ? -1 : smalti_batch_submit(run->batch, plan, 0, &callbacks, error);
	smalti_plan_free(plan);
	return status;
}

int smalti_step_cache_make(struct smalti_step_cache_run *run, const char *rule, bool checks, bool decodes,
			   int64_t first, int64_t count, struct smalti_step_cache_image *images,
			   struct smalti_error *error)
{
	int status = 0;
	for (int64_t i = 0; i < count && status == 0; i++) {
		images[i] = (struct smalti_step_cache_image){.run = run, .index = first + i};
		status = submit(run, rule, checks, decodes, &images[i], error);
	}
	smalti_batch_wait(run->batch);
	if (status == 0 && smalti_signals_caught())
		status = smalti_fail(error, SMALTI_ECANCELLED, "stopped by %s", smalti_signals_caught());
	HOLD_MUTEX(&run->mutex);
	return status == 0 && run->failure.code ? smalti_pass(error, &run->failure) : status;
}

/* Measures */

static int measure(struct smalti_step_cache_run *run, struct smalti_error *error)
{
	struct smalti_step_cache_image images[SMALTI_STEP_CACHE_TOGETHER] = {{0}};
	int status = 0;
	while (status == 0 && run->done < run->count) {
		const int64_t count = smalti_min(SMALTI_STEP_CACHE_TOGETHER, run->count - run->done);
		status =
		    smalti_step_cache_make(run, "calibration", false, false, run->done, count, images, error);
		for (int64_t i = 0; i < count; i++)
			smalti_step_cache_image_free(&images[i]);
		run->done += count;
		smalti_progress_update(&run->progress, run->done, run->count);
	}
	return status;
}

static int write_table(const struct smalti_step_cache_run *run, struct smalti_error *error)
{
	struct smalti_request request = request_of(run, 0);
	struct smalti_plan *plan = smalti_request_resolve(run->model, &request, error);
	if (!plan)
		return -1;
	const struct smalti_step_cache_key key = smalti_plan_step_key(plan);
	const int status = smalti_step_cache_table_write(run->options->output, &key, run->count,
							 (const smalti_step_ratios *)run->ratios, error);
	smalti_plan_free(plan);
	return status;
}

static int print_table(const struct smalti_step_cache_run *run)
{
	const struct smalti_step_cache_options *options = run->options;
	if (options->json) {
		cJSON *object = cJSON_CreateObject();
		cJSON_AddStringToObject(object, "file", options->output);
		cJSON_AddNumberToObject(object, "images", (double)run->count);
		cJSON_AddNumberToObject(object, "steps", (double)run->steps);
		return smalti_json_print(object) ? 0 : -1;
	}
	if (!options->quiet)
		printf("%s: a table of %" PRId64 " steps, measured on %" PRId64 " images\n", options->output,
		       run->steps, run->count);
	return 0;
}

static int calibrate(struct smalti_step_cache_run *run, struct smalti_error *error)
{
	const int status = measure(run, error);
	smalti_progress_end(&run->progress);
	return status < 0 || write_table(run, error) < 0 || print_table(run) < 0 ? -1 : 0;
}

/* Prompts */

/* Refuses what would make the image another one than the command's options say. */
static int check_line(const struct smalti_prompt_line *line, const char *path, struct smalti_error *error)
{
	if (line->negative || line->scheduler || line->lora || line->step_cache || line->has_seed ||
	    line->width || line->height || line->steps || line->images || line->has_guidance ||
	    line->has_eta || line->image)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "%s:%" PRId64
				   ": expected \"prompt\" and \"id\" alone; all images are made alike, "
				   "by the command's options",
				   path, line->line);
	return 0;
}

static int add_text(struct smalti_step_cache_run *run, char **text, struct smalti_error *error)
{
	if (smalti_grow(&run->texts, run->count, sizeof(*run->texts), error) < 0)
		return -1;
	run->texts[run->count++] = *text;
	*text = NULL;
	return 0;
}

static int read_prompts(struct smalti_step_cache_run *run, struct smalti_error *error)
{
	const char *path = run->options->prompts;
	struct smalti_prompts *prompts = smalti_prompts_open(path, error);
	if (!prompts)
		return -1;
	int status = 0;
	while (status == 0 && run->count < run->options->images) {
		struct smalti_prompt_line line;
		const enum smalti_prompts_status found = smalti_prompts_next(prompts, &line, error);
		if (found == SMALTI_PROMPTS_END)
			break;
		status = found != SMALTI_PROMPTS_LINE || check_line(&line, path, error) ||
				 add_text(run, &line.prompt, error)
			     ? -1
			     : 0;
		smalti_prompt_line_free(&line);
	}
	smalti_prompts_close(prompts);
	if (status == 0 && run->count == 0)
		return smalti_fail(error, SMALTI_EFORMAT, "%s: expected a prompt or more, found none", path);
	return status;
}

/* The command */

static void cancel(void *batch)
{
	smalti_batch_cancel(batch);
}

static int work(struct smalti_step_cache_run *run, struct smalti_session *session, struct smalti_error *error)
{
	if (read_prompts(run, error) < 0)
		return -1;
	run->model = smalti_model_open(session, &run->options->model, error);
	run->batch = run->model ? smalti_batch_open(run->model, error) : NULL;
	if (!run->batch)
		return -1;
	smalti_signals_first(cancel, run->batch);
	smalti_progress_begin(&run->progress, stderr, "images", run->options->quiet);
	const int status = run->options->check ? smalti_step_cache_check(run, error) : calibrate(run, error);
	smalti_signals_first(NULL, NULL);
	return status;
}

static void close_run(struct smalti_step_cache_run *run)
{
	smalti_batch_close(run->batch);
	smalti_model_close(run->model);
	for (int64_t i = 0; i < run->count; i++)
		free(run->texts[i]);
	free(run->texts);
	free(run->ratios);
	pthread_mutex_destroy(&run->mutex);
}

static enum smalti_exit run_command(void *values, int count, char **operands)
{
	struct smalti_step_cache_options *options = values;
	struct smalti_step_cache_run run = {.options = options};
	struct smalti_error error = SMALTI_NO_ERROR, ignored = SMALTI_NO_ERROR;
	if (count > 0)
		return smalti_usage_error(&smalti_step_cache_command, "unexpected operand '%.99s'",
					  operands[0]);
	if (!options->prompts)
		return smalti_usage_error(&smalti_step_cache_command, "no prompts: give --prompts FILE");
	smalti_signals_catch();
	pthread_mutex_init(&run.mutex, NULL);
	struct smalti_session *session = NULL;
	int status = smalti_lora_parse(&options->lora, &options->model, &error);
	if (status == 0)
		session = smalti_held_session(&options->session, &error);
	status = session ? work(&run, session, &error) : -1;
	close_run(&run);
	if (session && smalti_session_close(session, status < 0 ? &ignored : &error) < 0)
		status = -1;
	smalti_lora_free(&options->model);
	return status < 0 ? smalti_command_fail(&smalti_step_cache_command, &error) : smalti_finish_stdout();
}

const struct smalti_command smalti_step_cache_command = {
    .name = "smalti step-cache",
    .summary = "measure the bounds by which steps are skipped",
    .operands = "",
    .description =
	"Measures, for smalti generate --step-cache bound:X, how much the output of the transformer may be "
	"off where a step is skipped, by how much the first block's change differs from that of an earlier "
	"step. Each image is computed in full, with a few last layers more. The table holds for this model, "
	"precision, scheduler, number of steps and guidance scale; a bound is one and a half times the "
	"largest error that was seen.\n\nWith --check each image is made three times: without a step cache; "
	"with it; and with it while what it skips is computed, too, and compared. The result says how much "
	"was skipped, how many bounds did not hold, how near the images are, and what time was saved.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run_command,
    .alone = true,
};
