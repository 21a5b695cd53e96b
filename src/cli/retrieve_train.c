/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "cli/common_rows.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "cli/retrieve.h"
#include "cli/signals.h"
#include "retrieve/projections.h"
#include "retrieve/recall.h"

/* The options of `smalti retrieve train`; strings belong to argv. */
struct smalti_retrieve_train_settings {
	struct smalti_projections_options train;
	struct smalti_session_options session;
	bool json, quiet;
};

#define TYPE struct smalti_retrieve_train_settings

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Data")},
    {SMALTI_STRING(TYPE, train.caption), "caption-key", 'k', "KEY",
     "train on this caption; default: the only one, or prompt"},
    {SMALTI_DOUBLE(TYPE, train.held_out), "held-out", 0, "SHARE",
     "share of the items, chosen by their keys, that are measured on instead of trained on",
     .real_minimum = 0, .real_maximum = 0.9},

    {SMALTI_GROUP("Training")},
    {SMALTI_INT64(TYPE, train.dim), "dim", 'd', "N", "width of the space that both are projected into",
     .minimum = 1, .maximum = 1 << 16},
    {SMALTI_INT64(TYPE, train.steps), "steps", 's', "N", "steps to make", .minimum = 1, .maximum = INT32_MAX},
    {SMALTI_INT64(TYPE, train.batch), "batch", 'b', "N", "pairs of a step, among which each finds its own",
     .minimum = 2, .maximum = 1 << 16},
    {SMALTI_SEED(TYPE, train.seed), "seed", 0, "N", "seed of the order and of all that is drawn; default 0"},
    {SMALTI_DOUBLE(TYPE, train.rate), "lr", 0, "RATE", "learning rate of AdamW, which falls to 0 by a cosine",
     .real_minimum = 0, .real_maximum = 1e6},
    {SMALTI_INT64(TYPE, train.warmup), "warmup", 0, "STEPS", "steps in which the rate grows from 0",
     .minimum = 0, .maximum = INT32_MAX},
    {SMALTI_DOUBLE(TYPE, train.weight_decay), "weight-decay", 0, "W", "decay of the weights",
     .real_minimum = 0, .real_maximum = 1e6},

    {SMALTI_GROUP("Output")},
    {SMALTI_STRING(TYPE, train.output), "output", 'o', "PROJECTIONS", "directory of the projections"},
    {SMALTI_FLAG(TYPE, json), "json", 0, NULL, "print the result as a JSON object on standard output"},
    {SMALTI_FLAG(TYPE, quiet), "quiet", 'q', NULL, "print errors only"},

    {SMALTI_GROUP("Machine")},
    SMALTI_SESSION_ROWS(TYPE),
    SMALTI_TRACE_ROW(TYPE),
};

static const struct smalti_retrieve_train_settings defaults = {.train = SMALTI_PROJECTIONS_DEFAULTS,
							       .session = SMALTI_SESSION_DEFAULTS};

static const struct smalti_example examples[] = {
    {"Train on features, and index the same images",
     "smalti retrieve train features -o projections && smalti retrieve index features --of images "
     "--projections projections -o images"},
    {"Train on several directories", "smalti retrieve train first second -o projections"},
    {NULL, NULL},
};

struct training {
	const struct smalti_retrieve_train_settings *settings;
	struct smalti_progress shown;
	double began;
	bool steps; /* the bar counts them now, not rows */
};

static bool on_progress(void *user, const struct smalti_projections_progress *p)
{
	struct training *t = user;
	if (p->steps > 0 && !t->steps) {
		smalti_progress_end(&t->shown);
		smalti_progress_begin(&t->shown, stderr, "steps", t->settings->quiet);
		t->steps = true;
	}
	smalti_progress_update(&t->shown, t->steps ? p->step : p->rows, t->steps ? p->steps : p->total);
	return !smalti_signals_caught();
}

static void on_damage(void *user, const struct smalti_error *error)
{
	struct training *t = user;
	smalti_progress_print(&t->shown, "smalti retrieve train: left out: %s", error->message);
}

static bool print_json(const struct training *t, const struct smalti_projections_result *r)
{
	cJSON *object = cJSON_CreateObject();
	(void)smalti_json_add_text(object, "projections", t->settings->train.output);
	cJSON_AddNumberToObject(object, "rows", (double)r->progress.rows);
	cJSON_AddNumberToObject(object, "without", (double)r->progress.without);
	cJSON_AddNumberToObject(object, "damaged", (double)r->progress.damaged);
	cJSON_AddNumberToObject(object, "trained", (double)r->trained);
	cJSON_AddNumberToObject(object, "held_out", (double)r->held_out);
	cJSON_AddNumberToObject(object, "loss", r->progress.loss);
	cJSON_AddNumberToObject(object, "temperature", r->temperature);
	if (r->held_out) {
		cJSON_AddNumberToObject(object, "held_out_loss", r->held_out_loss);
		smalti_recall_write(object, "images_by_text", &r->images_by_text);
		smalti_recall_write(object, "texts_by_image", &r->texts_by_image);
	}
	smalti_json_add_seconds(object, smalti_now() - t->began);
	return smalti_json_print(object);
}

static void print_recall(struct training *t, const char *what, const struct smalti_recall *recall)
{
	char text[128] = "";
	for (int i = 0; i < SMALTI_RECALL_DEPTHS; i++)
		smalti_append(text, sizeof(text), ", ", "R@%" PRId64 " %.4f", smalti_recall_depths[i],
			      recall->at[i]);
	smalti_progress_print(&t->shown, "%s: %s, MRR %.4f", what, text, recall->mrr);
}

static void summarize(struct training *t, const struct smalti_projections_result *r)
{
	char seconds[SMALTI_NUMBER];
	smalti_progress_print(&t->shown, "%" PRId64 " steps on %" PRId64 " pairs in %s: loss %.4f: %s",
			      r->progress.step, r->trained,
			      smalti_number_seconds(smalti_now() - t->began, seconds), r->progress.loss,
			      t->settings->train.output);
	if (!r->held_out)
		return;
	smalti_progress_print(&t->shown, "%" PRId64 " pairs held out: loss %.4f", r->held_out,
			      r->held_out_loss);
	print_recall(t, "images by text", &r->images_by_text);
	print_recall(t, "texts by image", &r->texts_by_image);
}

static enum smalti_exit finish(struct training *t, int status, const struct smalti_projections_result *result,
			       const struct smalti_error *error)
{
	const struct smalti_retrieve_train_settings *settings = t->settings;
	if (status == 0 && !settings->quiet && !settings->json)
		summarize(t, result);
	else
		smalti_progress_end(&t->shown);
	if (status < 0)
		return smalti_command_fail(&smalti_retrieve_train_command, error);
	if (settings->json && !print_json(t, result))
		return SMALTI_EXIT_FAILED;
	return result->progress.damaged ? SMALTI_EXIT_SOME_FAILED : SMALTI_EXIT_OK;
}

static enum smalti_exit run(void *options, int count, char **operands)
{
	struct smalti_retrieve_train_settings *settings = options;
	struct training training = {.settings = settings, .began = smalti_now()};
	struct smalti_projections_result result;
	struct smalti_error error = SMALTI_NO_ERROR;
	if (count == 0)
		return smalti_usage_error(&smalti_retrieve_train_command, "name directories of features");
	if (!settings->train.output || !*settings->train.output)
		return smalti_usage_error(&smalti_retrieve_train_command,
					  "no place for the projections: give -o PROJECTIONS");
	settings->train.features = (const char *const *)operands;
	settings->train.feature_count = count;
	settings->train.on_progress = on_progress;
	settings->train.damaged = on_damage;
	settings->train.user = &training;
	smalti_signals_catch();
	smalti_progress_begin(&training.shown, stderr, "rows", settings->quiet);
	struct smalti_session *session = smalti_held_session(&settings->session, &error);
	int status = session ? smalti_projections_train(session, &settings->train, &result, &error) : -1;
	if (session && smalti_session_close(session, status < 0 ? NULL : &error) < 0)
		status = -1;
	return finish(&training, status, &result, &error);
}

const struct smalti_command smalti_retrieve_train_command = {
    .name = "smalti retrieve train",
    .summary = "learn projections that bring captions and images into one space",
    .operands = "FEATURES...",
    .description =
	"Trains two linear projections on the pairs of captions and images in the features that "
	"smalti extract has written to the directories FEATURES: of a caption's mean hidden state "
	"and of an image's averaged latents, into one space. An index that is made with them "
	"(smalti retrieve index --projections) can be asked by texts and by images.\n\nThe loss is "
	"CLIP's: each caption of a step's pairs finds its image among all of them, and each image "
	"its caption. At the end it is measured how often the right one is found among the pairs "
	"that are held out; of equal captions one is.\n\nThe result does not depend on workers or "
	"policy. PROJECTIONS/log.jsonl has the loss of each step.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run,
    .alone = true,
};
