/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/vae_command.h"
#include "base/clock.h"
#include "cli/ranks.h"
#include "cli/signals.h"
#include "jobs/plan_strategy.h"
#include "jobs/vae_follow.h"
#include "ranks/ranks.h"

const char *const smalti_stores[] = {"f32", "bf16", NULL};

static void on_progress(void *user, double share)
{
	struct smalti_vae_command *run = user;
	if (smalti_signals_caught())
		smalti_vae_cancel(run->vae);
	smalti_image_report_progress(&run->report, share, run->doing);
}

static int open_session(struct smalti_vae_command *run, struct smalti_error *error)
{
	const struct smalti_request shared = {.shares = run->settings->request.shares};
	run->session = smalti_held_session(&run->settings->session, error);
	return run->session ? smalti_plan_strategy_prepare(run->session, &shared, error) : -1;
}

int smalti_vae_command_open(struct smalti_vae_command *run,
			    int (*open_files)(void *user, struct smalti_error *error), void *user,
			    struct smalti_error *error)
{
	const struct smalti_vae_settings *settings = run->settings;
	struct smalti_vae_options options = settings->vae;
	int status = smalti_command_ranks_start(run->command, error);
	if (status == 0 && smalti_ranks_own() == 0)
		status = open_files(user, error);
	if (smalti_ranks_agree(status, NULL, error) < 0 || open_session(run, error) < 0)
		return -1;
	if (!options.directory)
		options.directory = settings->model;
	run->request = settings->request;
	run->request.user = run;
	run->request.on_progress = on_progress;
	run->vae = smalti_vae_open(run->session, &options, error);
	if (!run->vae)
		return -1;
	smalti_vae_info(run->vae, &run->info);
	return 0;
}

static void cancel(void *vae)
{
	smalti_vae_cancel(vae);
}

enum smalti_exit smalti_vae_command_follow(const struct smalti_vae_command *run)
{
	smalti_signals_first(cancel, run->vae);
	smalti_vae_follow(run->vae);
	smalti_signals_first(NULL, NULL);
	return smalti_signals_caught() ? SMALTI_EXIT_FAILED : SMALTI_EXIT_OK;
}

enum smalti_exit smalti_vae_command_close(struct smalti_vae_command *run, enum smalti_exit status)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	smalti_vae_close(run->vae);
	if (run->session && smalti_session_close(run->session, &error) < 0)
		status = smalti_command_ranks_fail(run->command, &error);
	else if (run->report.broken)
		status = SMALTI_EXIT_FAILED;
	smalti_ranks_stop();
	return status;
}

void smalti_vae_command_begin(struct smalti_vae_command *run, int64_t total)
{
	const struct smalti_vae_settings *settings = run->settings;
	smalti_image_report_begin(&run->report, run->command, run->session, settings->json, settings->quiet,
				  total);
}

static bool is_over(const struct smalti_vae_command *run)
{
	return run->report.made + run->report.failed == run->report.total;
}

bool smalti_vae_command_next(struct smalti_vae_command *run)
{
	run->image_began = smalti_now();
	return !is_over(run) && !smalti_signals_caught() && !run->report.broken && !run->stopped.code;
}

void smalti_vae_command_add(struct smalti_vae_command *run, const char *file,
			    const struct smalti_error *error)
{
	const struct smalti_image_outcome outcome = {
	    .file = file,
	    .status = error ? SMALTI_IMAGE_FAILED : SMALTI_IMAGE_MADE,
	    .error = error,
	    .width = run->request.width,
	    .height = run->request.height,
	    .seconds = smalti_now() - run->image_began,
	    .images = 1,
	};
	if (error && error->code == SMALTI_ECANCELLED)
		run->stopped = *error; /* it is said at the end */
	else
		smalti_image_report_add(&run->report, &outcome);
}

static const double mega = 1 << 20, tera = 1e12;

static void print_time(double seconds)
{
	if (seconds < 120)
		printf("%.1f s\n", seconds);
	else if (seconds < 7200)
		printf("%.0f min\n", seconds / 60);
	else
		printf("%.1f h\n", seconds / 3600);
}

static void print_estimate(const struct smalti_vae_estimate *f, const char *doing)
{
	const struct smalti_vae_map *image = &f->maps[0], *end = &f->maps[f->count - 1];
	if (end->height > image->height)
		image = end;
	printf("%s %lldx%lld pixels in bands of %lld latent rows\n", doing, (long long)image->width,
	       (long long)image->height, (long long)f->tile_rows);
	printf("memory   %.0f MiB at most\n", (double)f->memory / mega);
	printf("scratch  %.0f MiB at most\n", (double)f->scratch / mega);
	printf("work     %.3g TFLOP, %.2f times that of computing everything once\n", f->flops / tera,
	       f->flops / f->min_flops);
	printf("time     about ");
	print_time(f->seconds);
	printf("\n%-44s %8s %8s %5s %9s  %-9s %5s %9s\n", "map made by", "height", "width", "chan.", "MiB",
	       "stored", "times", "TFLOP");
	for (int64_t i = 0; i < f->count; i++) {
		const struct smalti_vae_map *map = &f->maps[i];
		const double values = (double)map->height * (double)map->width * (double)map->channels;
		printf("%-44s %8lld %8lld %5lld %9.1f  %-9s %5lld %9.3g\n", map->layer,
		       (long long)map->height, (long long)map->width, (long long)map->channels,
		       values * (double)sizeof(float) / mega, map->storage, (long long)map->times,
		       map->flops * (double)map->times / tera);
	}
}

static void add_map(cJSON *maps, const struct smalti_vae_map *map)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "layer", map->layer);
	cJSON_AddNumberToObject(object, "height", (double)map->height);
	cJSON_AddNumberToObject(object, "width", (double)map->width);
	cJSON_AddNumberToObject(object, "channels", (double)map->channels);
	cJSON_AddStringToObject(object, "storage", map->storage);
	cJSON_AddNumberToObject(object, "times", (double)map->times);
	cJSON_AddNumberToObject(object, "flops", map->flops);
	cJSON_AddItemToArray(maps, object);
}

static cJSON *estimate_json(const struct smalti_vae_estimate *f, const char *file)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "file", file);
	cJSON *plan = cJSON_AddObjectToObject(object, "plan");
	cJSON_AddNumberToObject(plan, "tile_rows", (double)f->tile_rows);
	cJSON_AddNumberToObject(plan, "memory_bytes", (double)f->memory);
	cJSON_AddNumberToObject(plan, "scratch_bytes", (double)f->scratch);
	cJSON_AddNumberToObject(plan, "flops", f->flops);
	cJSON_AddNumberToObject(plan, "least_flops", f->min_flops);
	cJSON_AddNumberToObject(plan, "seconds", f->seconds);
	cJSON *maps = cJSON_AddArrayToObject(plan, "maps");
	for (int64_t i = 0; i < f->count; i++)
		add_map(maps, &f->maps[i]);
	return object;
}

int smalti_vae_command_plan(struct smalti_vae_command *run, smalti_vae_estimator *make_estimate,
			    const char *file, struct smalti_error *error)
{
	bool *broken = &run->report.broken;
	struct smalti_vae_estimate estimate;
	if (make_estimate(run->vae, &run->request, &estimate, error) < 0)
		return -1;
	if (run->settings->json)
		smalti_json_line(estimate_json(&estimate, file), broken);
	else
		print_estimate(&estimate, run->doing);
	*broken = *broken || smalti_finish_stdout() != SMALTI_EXIT_OK;
	smalti_vae_estimate_free(&estimate);
	return 0;
}

enum smalti_exit smalti_vae_command_end(struct smalti_vae_command *run, const char *result)
{
	if (run->info.unused && run->report.made > 0)
		smalti_image_report_warning(&run->report, run->info.unused);
	const char *cause = smalti_signals_caught();
	if (!cause && run->stopped.code)
		cause = run->stopped.message;
	return smalti_image_report_end(&run->report, is_over(run) ? NULL : cause, "", result);
}
