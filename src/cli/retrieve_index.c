/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "cli/retrieve.h"
#include "cli/signals.h"
#include "retrieve/index.h"

/* The options of `smalti retrieve index`; strings belong to argv. */
struct smalti_retrieve_index_settings {
	struct smalti_index_options index;
	bool json, quiet;
};

#define TYPE struct smalti_retrieve_index_settings

static const struct smalti_option rows[] = {
    {SMALTI_CHOICE(TYPE, index.kind), "of", 0, "WHAT", "index the captions, or the images",
     .choices = smalti_index_kinds},
    {SMALTI_STRING(TYPE, index.caption), "caption-key", 'k', "KEY",
     "index this caption; default: the only one, or prompt"},
    {SMALTI_STRING(TYPE, index.projections), "projections", 'p', "PROJECTIONS",
     "make the vectors with these projections, so that captions and images are compared with each other"},
    {SMALTI_STRING(TYPE, index.output), "output", 'o', "INDEX", "directory of the index"},
    {SMALTI_FLAG(TYPE, json), "json", 0, NULL, "print the result as a JSON object on standard output"},
    {SMALTI_FLAG(TYPE, quiet), "quiet", 'q', NULL, "print errors only"},
};

static const struct smalti_retrieve_index_settings defaults = {.json = false};

static const struct smalti_example examples[] = {
    {"Index the captions", "smalti retrieve index features -o captions"},
    {"Index the images", "smalti retrieve index features --of images -o images"},
    {"Index the images for prompts",
     "smalti retrieve index features --of images --projections projections -o images"},
    {NULL, NULL},
};

struct indexing {
	const struct smalti_retrieve_index_settings *settings;
	struct smalti_progress shown;
	double began;
};

static bool on_progress(void *user, const struct smalti_index_progress *progress)
{
	struct indexing *i = user;
	smalti_progress_update(&i->shown, progress->rows, progress->total);
	return !smalti_signals_caught();
}

static void on_damage(void *user, const struct smalti_error *error)
{
	struct indexing *i = user;
	smalti_progress_print(&i->shown, "smalti retrieve index: left out: %s", error->message);
}

static bool print_json(const struct indexing *i, const struct smalti_index_progress *p)
{
	cJSON *object = cJSON_CreateObject();
	(void)smalti_json_add_text(object, "index", i->settings->index.output);
	cJSON_AddNumberToObject(object, "rows", (double)p->rows);
	cJSON_AddNumberToObject(object, "items", (double)p->items);
	cJSON_AddNumberToObject(object, "without", (double)p->without);
	cJSON_AddNumberToObject(object, "damaged", (double)p->damaged);
	smalti_json_add_seconds(object, smalti_now() - i->began);
	return smalti_json_print(object);
}

static void summarize(struct indexing *i, const struct smalti_index_progress *p)
{
	char seconds[SMALTI_NUMBER], without[64] = "", damaged[64] = "";
	if (p->without)
		snprintf(without, sizeof(without), ", %" PRId64 " without %s", p->without,
			 smalti_index_kinds[i->settings->index.kind]);
	if (p->damaged)
		snprintf(damaged, sizeof(damaged), ", %" PRId64 " damaged", p->damaged);
	smalti_progress_print(&i->shown, "%" PRId64 " item%s in %s%s%s: %s", p->items,
			      smalti_plural(p->items),
			      smalti_number_seconds(smalti_now() - i->began, seconds), without, damaged,
			      i->settings->index.output);
}

static enum smalti_exit run(void *options, int count, char **operands)
{
	struct smalti_retrieve_index_settings *settings = options;
	struct indexing indexing = {.settings = settings, .began = smalti_now()};
	struct smalti_index_progress progress;
	struct smalti_error error = SMALTI_NO_ERROR;
	if (count != 1)
		return smalti_usage_error(&smalti_retrieve_index_command,
					  "name one directory of features, found %d", count);
	if (!settings->index.output || !*settings->index.output)
		return smalti_usage_error(&smalti_retrieve_index_command,
					  "no place for the index: give -o INDEX");
	if (settings->index.caption && settings->index.kind == SMALTI_INDEX_IMAGES)
		return smalti_usage_error(&smalti_retrieve_index_command,
					  "--caption-key: has no meaning for images");
	settings->index.features = operands[0];
	settings->index.on_progress = on_progress;
	settings->index.damaged = on_damage;
	settings->index.user = &indexing;
	smalti_signals_catch();
	smalti_progress_begin(&indexing.shown, stderr, "rows", settings->quiet);
	const int status = smalti_index_make(&settings->index, &progress, &error);
	if (status == 0 && !settings->quiet && !settings->json)
		summarize(&indexing, &progress);
	else
		smalti_progress_end(&indexing.shown);
	if (status < 0)
		return smalti_command_fail(&smalti_retrieve_index_command, &error);
	if (settings->json && !print_json(&indexing, &progress))
		return SMALTI_EXIT_FAILED;
	return progress.damaged ? SMALTI_EXIT_SOME_FAILED : SMALTI_EXIT_OK;
}

const struct smalti_command smalti_retrieve_index_command = {
    .name = "smalti retrieve index",
    .summary = "make an index of features",
    .operands = "FEATURES",
    .description = "Makes an index of the features that smalti extract has written to the directory "
		   "FEATURES: a vector of "
		   "length 1 for each item.\n\nOf captions it is the mean of T5's hidden states over the "
		   "tokens; of images the "
		   "latents, averaged on a grid of 8 x 8 and whitened by the mean and the covariance of all. "
		   "Captions are "
		   "compared with captions and images with images: the two have no space in common, unless "
		   "projections (smalti retrieve train) bring them into one.\n\nThe "
		   "index takes 4 bytes "
		   "for each value of a vector, which are as many as the width of T5's states, or 64 times "
		   "the channels of the "
		   "latents, or the width of the projections. INDEX/vectors.safetensors and "
		   "INDEX/items.jsonl, which has the items in the "
		   "same order, can be read "
		   "by other programs.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run,
    .alone = true,
};
