/* SPDX-License-Identifier: Apache-2.0 */
#include "report/samples.h"
#include "base/file.h"
#include "image/png_reader.h"
#include "report/page.h"
#include "report/small_image.h"

enum { STEPS_SHOWN = 8 };

/* The steps that have a directory, in their order. */
struct steps {
	int64_t *list, count;
};

static int compare(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Returns -1 for another name. */
static int64_t step_of(const char *name)
{
	static const char prefix[] = "step-";
	char *end = NULL;
	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return -1;
	const int64_t step = strtoll(name + strlen(prefix), &end, 10);
	return *end ? -1 : step;
}

static void list_steps(const char *samples, struct steps *steps)
{
	SCOPED(closedir) DIR *entries = opendir(samples);
	for (const struct dirent *entry; entries && (entry = readdir(entries));) {
		const int64_t step = step_of(entry->d_name);
		if (step < 0 || smalti_grow(&steps->list, steps->count, sizeof(*steps->list), NULL) < 0)
			continue;
		steps->list[steps->count++] = step;
	}
	if (steps->count)
		qsort(steps->list, (size_t)steps->count, sizeof(*steps->list), compare);
}

/* Returns the prompt that the image says it was generated from, for free(). */
static char *prompt_of(const char *path)
{
	SCOPED(free) char *parameters = NULL;
	if (smalti_png_read_text(path, "parameters", &parameters, NULL) < 0 || !parameters)
		return NULL;
	SCOPED(cJSON_Delete) cJSON *object = cJSON_Parse(parameters);
	const char *prompt = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "prompt"));
	return prompt ? smalti_format(NULL, "%s", prompt) : NULL;
}

static bool put_image(FILE *page, const char *path, int64_t step, bool first)
{
	struct smalti_fit fit;
	SCOPED(free) char *prompt = prompt_of(path);
	SCOPED(free) char *image = prompt ? smalti_small_image(path, SMALTI_SMALL_SIDE, &fit, NULL) : NULL;
	if (!image)
		return false;
	fprintf(page, "%s{\"step\":%" PRId64 ",", first ? "" : ",\n", step);
	smalti_page_member(page, "prompt", prompt);
	fprintf(page, "\"width\":%" PRId64 ",\"image\":\"data:image/png;base64,%s\"}", fit.width, image);
	return true;
}

/* Numbers the images of a step from 1. */
static bool put_step(FILE *page, const char *samples, int64_t step, bool first)
{
	for (int64_t number = 1;; number++) {
		char name[64];
		snprintf(name, sizeof(name), "step-%" PRId64 "/%" PRId64 ".png", step, number);
		SCOPED(free) char *path = smalti_path_beneath(samples, name, NULL);
		if (!path)
			return first;
		first = !put_image(page, path, step, first) && first;
	}
}

void smalti_report_samples(FILE *page, const char *run)
{
	struct steps steps = {0};
	bool first = true;
	SCOPED(free) char *samples = smalti_format(NULL, "%s/samples", run);
	if (samples)
		list_steps(samples, &steps);
	const int64_t shown = smalti_min(steps.count, STEPS_SHOWN);
	fputs("\"samples\":[", page);
	for (int64_t i = 0; i < shown; i++) {
		const int64_t at = shown > 1 ? i * (steps.count - 1) / (shown - 1) : 0;
		first = put_step(page, samples, steps.list[at], first);
	}
	fputs("],\n", page);
	free(steps.list);
}
