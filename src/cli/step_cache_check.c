/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/json.h"
#include "cli/step_cache.h"

#include <math.h>

/* The sums over all images. */
struct result {
	int64_t calls, skipped;
	int64_t bounds, broken; /* of skipped calls under a bound */
	double worst;           /* the largest error by its bound */
	double *psnr;           /* of each image, in dB; INFINITY: equal */
	double plain, cached;   /* seconds */
};

static double psnr_of(const struct smalti_step_cache_image *a, const struct smalti_step_cache_image *b)
{
	const int64_t count = a->run->width * a->run->height * 3;
	double squares = 0;
	for (int64_t i = 0; i < count; i++) {
		const double difference = (double)a->rgb[i] - (double)b->rgb[i];
		squares += difference * difference;
	}
	return 10 * log10(255.0 * 255.0 * (double)count / squares);
}

static void add_calls(struct result *result, const struct smalti_step_cache_image *image, bool bounds)
{
	for (int64_t i = 0; i < image->call_count; i++) {
		const struct smalti_step_call *call = &image->calls[i];
		result->calls++;
		result->skipped += call->skipped;
		if (!call->skipped || !bounds)
			continue;
		result->bounds++;
		result->broken += !(call->error <= call->value);
		result->worst = fmax(result->worst, call->error / call->value);
	}
}

/* A check changes nothing of what it checks. */
static int check_equal(const struct smalti_step_cache_image *a, const struct smalti_step_cache_image *b,
		       struct smalti_error *error)
{
	if (a->latent_count == b->latent_count &&
	    memcmp(a->latents, b->latents, (size_t)a->latent_count * sizeof(float)) == 0)
		return 0;
	return smalti_fail(error, SMALTI_EIO,
			   "image %" PRId64 " has other latents while it is checked: this is a "
			   "fault of the program",
			   a->index);
}

static int make(struct smalti_step_cache_run *run, const char *rule, bool checks, int64_t count,
		struct smalti_step_cache_image *images, double *seconds, struct smalti_error *error)
{
	const double began = smalti_now();
	const int status =
	    smalti_step_cache_make(run, rule, checks, !checks, run->done, count, images, error);
	*seconds += smalti_now() - began;
	return status;
}

/* Makes some images in the three ways. */
static int compare(struct smalti_step_cache_run *run, int64_t count, struct result *result,
		   struct smalti_error *error)
{
	enum { PLAIN, CACHED, CHECKED, WAYS };
	struct smalti_step_cache_image images[WAYS][SMALTI_STEP_CACHE_TOGETHER] = {{{0}}};
	const char *rule = run->options->check;
	const bool bounds = strncmp(rule, "bound:", strlen("bound:")) == 0;
	double unused = 0;
	int status = make(run, NULL, false, count, images[PLAIN], &result->plain, error);
	if (status == 0)
		status = make(run, rule, false, count, images[CACHED], &result->cached, error);
	if (status == 0)
		status = make(run, rule, true, count, images[CHECKED], &unused, error);
	for (int64_t i = 0; i < count && status == 0; i++) {
		status = check_equal(&images[CACHED][i], &images[CHECKED][i], error);
		result->psnr[run->done + i] = psnr_of(&images[PLAIN][i], &images[CACHED][i]);
		add_calls(result, &images[CHECKED][i], bounds);
	}
	for (int way = 0; way < WAYS; way++)
		for (int64_t i = 0; i < count; i++)
			smalti_step_cache_image_free(&images[way][i]);
	return status;
}

static bool print_json(const struct smalti_step_cache_run *run, const struct result *r)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "step_cache", run->options->check);
	cJSON_AddNumberToObject(object, "images", (double)run->count);
	cJSON_AddNumberToObject(object, "calls", (double)r->calls);
	cJSON_AddNumberToObject(object, "skipped", (double)r->skipped);
	cJSON_AddNumberToObject(object, "bounds", (double)r->bounds);
	cJSON_AddNumberToObject(object, "broken", (double)r->broken);
	cJSON_AddNumberToObject(object, "worst_error_by_bound", r->worst);
	/* JSON has no infinity: null stands for an equal image. */
	cJSON_AddNumberToObject(object, "psnr_least", r->psnr[0]);
	cJSON_AddNumberToObject(object, "psnr_median", r->psnr[run->count / 2]);
	cJSON_AddNumberToObject(object, "seconds_without", r->plain);
	cJSON_AddNumberToObject(object, "seconds_with", r->cached);
	return smalti_json_print(object);
}

static void print_text(const struct smalti_step_cache_run *run, const struct result *r)
{
	printf("%s: %" PRId64 " images, %" PRId64 " of %" PRId64 " calls skipped (%.1f %%)\n",
	       run->options->check, run->count, r->skipped, r->calls,
	       100.0 * (double)r->skipped / (double)r->calls);
	if (r->bounds)
		printf("  bounds: %" PRId64 " of %" PRId64
		       " broken, the largest error is %.2f of its bound\n",
		       r->broken, r->bounds, r->worst);
	printf("  images: PSNR %.1f dB at least, %.1f dB in the median\n", r->psnr[0],
	       r->psnr[run->count / 2]);
	printf("  time:   %.2f s instead of %.2f s, %.2f times as fast\n", r->cached, r->plain,
	       r->plain / r->cached);
}

/* Makes an image, so that no measured one waits for weights. */
static int warm_up(struct smalti_step_cache_run *run, struct smalti_error *error)
{
	struct smalti_step_cache_image image = {0};
	const int status = smalti_step_cache_make(run, NULL, false, true, 0, 1, &image, error);
	smalti_step_cache_image_free(&image);
	return status;
}

int smalti_step_cache_check(struct smalti_step_cache_run *run, struct smalti_error *error)
{
	struct result result = {.psnr = smalti_calloc(run->count, sizeof(*result.psnr), error)};
	int status = result.psnr ? warm_up(run, error) : -1;
	while (status == 0 && run->done < run->count) {
		const int64_t count = smalti_min(SMALTI_STEP_CACHE_TOGETHER, run->count - run->done);
		status = compare(run, count, &result, error);
		run->done += count;
		smalti_progress_update(&run->progress, run->done, run->count);
	}
	smalti_progress_end(&run->progress);
	if (status == 0) {
		qsort(result.psnr, (size_t)run->count, sizeof(*result.psnr), smalti_ascending);
		if (run->options->json)
			status = print_json(run, &result) ? 0 : -1;
		else if (!run->options->quiet)
			print_text(run, &result);
	}
	free(result.psnr);
	return status;
}
