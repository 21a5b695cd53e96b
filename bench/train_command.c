/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "bench/ablation.h"
#include "bench/report.h"
#include "cli/common_rows.h"
#include "cli/signals.h"

#include <math.h>
#include <stdlib.h>

struct train_options {
	struct smalti_bench_options bench;
	const char *model, *variant;
	int64_t image_size, picture_size, batch, lanes;
	struct smalti_session_options session;
};

#define TYPE struct train_options

static const struct train_options defaults = {
    .bench = {.repeats = 5},
    .image_size = 128,
    .batch = 8,
    .lanes = 8,
    .session = SMALTI_SESSION_DEFAULTS,
};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Training")},
    {SMALTI_INT64(TYPE, image_size), "img-size", 0, "PIXELS", "resolution of the images", .minimum = 128,
     .maximum = 2880},
    {SMALTI_INT64(TYPE, picture_size), "picture-size", 0, "PIXELS",
     "side of the pictures on the disk; 0: that of the images", .minimum = 0, .maximum = 1 << 14},
    {SMALTI_INT64(TYPE, batch), "batch", 'b', "N", "samples of a step", .minimum = 1, .maximum = 1 << 16},
    {SMALTI_INT64(TYPE, lanes), "lanes", 0, "N", "sums that the gradients of a step are added to",
     .minimum = 1, .maximum = 1 << 16},
    {SMALTI_GROUP("Model")},
    {SMALTI_STRING(TYPE, model), "model", 'm', "DIR",
     "directory of a whole pipeline in diffusers' layout; default: the embedded model"},
    SMALTI_VARIANT_ROW(TYPE, variant),
    {SMALTI_GROUP("Machine")},
    SMALTI_WORKER_ROWS(TYPE),
    SMALTI_POLICY_ROW(TYPE),
    SMALTI_MEMORY_ROW(TYPE),
    {SMALTI_GROUP("Measuring")},
    SMALTI_BENCH_ROWS(TYPE),
};

static const struct smalti_example examples[] = {
    {"The embedded model", "smalti-bench train"},
    {"Batches of 32, and what is left of each measure without a second worker",
     "smalti-bench train --batch 32 -o two.jsonl && smalti-bench train --batch 32 --cpus 1 --compare "
     "two.jsonl"},
    {"Pictures of 1024 pixels, which are read, decoded and resized where features are computed",
     "smalti-bench train --picture-size 1024"},
    {NULL, NULL},
};

static enum smalti_exit run(void *values, int count, char **operands);

const struct smalti_command smalti_bench_train_command = {
    .name = "smalti-bench train",
    .summary = "what each measure gains that makes training fast",
    .operands = "",
    .description =
	"Makes a data set of four batches of pictures with captions of some 50 tokens, extracts its "
	"features, "
	"and "
	"tunes the transformer on them with AdamW in several ways, each in a session of its own. In the "
	"first "
	"two lines features are computed again before each step, in the training's session, from the list "
	"and "
	"the pictures' files; the values are dropped, since the stored ones are the same. Each line below "
	"adds a measure, or replaces the one that the line names.\n\n"
	"\"seconds\" are those of an item: its part of the median step with what is before it. \"extract\", "
	"\"wait\" and \"update\" are the shares of computing features, of waiting for stored ones, and of "
	"clipping and the optimizer; \"busy\" is how much of the workers' time they were in tasks. "
	"\"peak MiB\" is the most memory that was resident. \"bound\" is the items per second of steps "
	"that have all workers at their peak in f32, as smalti-bench stages measures it. \"KiB\" is what an "
	"item's features take on the disk.\n\n"
	"A checkpoint of the model is written to TMPDIR (/tmp) after each run, and removed.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run,
};

static const struct smalti_bench_column columns[] = {
    {"seconds", "seconds", 1, "%.5f"},
    {"items_per_second", "items/s", 1, "%.2f"},
    {"extracting", "extract %", 100, "%.1f"},
    {"waiting", "wait %", 100, "%.1f"},
    {"updating", "update %", 100, "%.1f"},
    {"busy", "busy %", 100, "%.1f"},
    {"peak_bytes", "peak MiB", 1.0 / (1 << 20), "%.0f"},
    {"bound", "bound", 1, "%.2f"},
    {"stored_bytes", "KiB", 1.0 / (1 << 10), "%.1f"},
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

#define COMPRESSED "compressed"
#define MAPPED     "mapped"
enum { ONE_ROW = 1, A_BATCH = 0 };

#define F32  SMALTI_PRECISION_F32
#define F16  SMALTI_PRECISION_F16
#define BF16 SMALTI_PRECISION_BF16
#define KEEP SMALTI_RECOMPUTE_NONE

static const struct measure {
	const char *name;
	struct smalti_ablation_way way;
} measures[] = {
    {"features computed in each epoch",
     {COMPRESSED, ONE_ROW, F32, KEEP, 1, SMALTI_ABLATION_TEXT | SMALTI_ABLATION_IMAGES}},
    {"captions' features stored", {COMPRESSED, ONE_ROW, F32, KEEP, 1, SMALTI_ABLATION_IMAGES}},
    {"images', too, compressed", {COMPRESSED, ONE_ROW, F32, KEEP, 1, 0}},
    {"not compressed, but mapped", {MAPPED, ONE_ROW, F32, KEEP, 1, 0}},
    {"mapped, read a batch ahead", {MAPPED, A_BATCH, F32, KEEP, 1, 0}},
    {"compressed, read a batch ahead", {COMPRESSED, A_BATCH, F32, KEEP, 1, 0}},
    {"... in f16", {COMPRESSED, A_BATCH, F16, KEEP, 1, 0}},
    {"... in bf16", {COMPRESSED, A_BATCH, BF16, KEEP, 1, 0}},
    {"... in bf16, twice the batch", {COMPRESSED, A_BATCH, BF16, KEEP, 2, 0}},
    {"... in bf16, that, blocks recomputed", {COMPRESSED, A_BATCH, BF16, SMALTI_RECOMPUTE_BLOCK, 2, 0}},
};
enum { MEASURES = sizeof(measures) / sizeof(measures[0]) };

struct measuring {
	struct smalti_ablation ablation;
	int64_t compressed, mapped; /* bytes an item */
	struct smalti_bench_report *report;
};

static int add_line(struct measuring *m, const struct measure *measure,
		    const struct smalti_ablation_training *t, struct smalti_error *error)
{
	const bool maps = strcmp(measure->way.features, MAPPED) == 0;
	const struct smalti_bench_value line[COLUMNS] = {
	    {t->seconds, NULL},
	    {1 / t->seconds, NULL},
	    {t->computing, NULL},
	    {t->data, NULL},
	    {t->update, NULL},
	    {t->busy, NULL},
	    {t->peak < 0 ? NAN : (double)t->peak, NULL},
	    {1 / t->bound, NULL},
	    {(double)(maps ? m->mapped : m->compressed), NULL},
	};
	return smalti_bench_report_add(m->report, measure->name, line, NULL, 0, error);
}

static int make_features(struct measuring *m, struct smalti_error *error)
{
	return smalti_ablation_make_items(&m->ablation, error) ||
		       smalti_ablation_extract(&m->ablation, SMALTI_COMPRESS_ALWAYS, COMPRESSED,
					       &m->compressed, error) ||
		       smalti_ablation_extract(&m->ablation, SMALTI_COMPRESS_NEVER, MAPPED, &m->mapped, error)
		   ? -1
		   : 0;
}

static int measure_all(struct measuring *m, struct smalti_error *error)
{
	struct smalti_ablation_training training;
	if (make_features(m, error) < 0)
		return -1;
	for (int i = 0; i < MEASURES && !smalti_signals_caught(); i++)
		if (smalti_ablation_train(&m->ablation, &measures[i].way, &training, error) < 0 ||
		    add_line(m, &measures[i], &training, error) < 0)
			return -1;
	return 0;
}

static int64_t picture_size_of(const struct train_options *o)
{
	return o->picture_size ? o->picture_size : o->image_size;
}

static cJSON *facts_of(const struct train_options *o)
{
	cJSON *facts =
	    smalti_bench_facts(o->model ? o->model : "embedded", SMALTI_PRECISION_F32, &o->session);
	cJSON_AddNumberToObject(facts, "image_size", (double)o->image_size);
	cJSON_AddNumberToObject(facts, "picture_size", (double)picture_size_of(o));
	cJSON_AddNumberToObject(facts, "batch", (double)o->batch);
	cJSON_AddNumberToObject(facts, "lanes", (double)o->lanes);
	return facts;
}

static int measure_in(const char *directory, const struct train_options *o, struct smalti_error *error)
{
	enum { BATCHES = 4 };
	struct measuring m = {.ablation = {.directory = directory,
					   .session = &o->session,
					   .items = BATCHES * o->batch,
					   .image_size = o->image_size,
					   .picture_size = picture_size_of(o),
					   .batch = o->batch,
					   .lanes = o->lanes,
					   .repeats = (int)o->bench.repeats}};
	smalti_model_defaults(&m.ablation.model);
	m.ablation.model.directory = o->model;
	m.ablation.model.variant = o->variant;
	m.report = smalti_bench_report_open(&smalti_bench_train_command, &o->bench, facts_of(o), columns,
					    COLUMNS, error);
	const int status = m.report ? measure_all(&m, error) : -1;
	return smalti_bench_report_close(m.report, NULL, status, error);
}

static int measure(const void *options, struct smalti_error *error)
{
	SCOPED(free) char *directory = smalti_make_temporary_directory("smalti-train", error);
	if (!directory)
		return -1;
	smalti_signals_catch();
	const int status = measure_in(directory, options, error);
	smalti_remove_directory(directory);
	smalti_signals_blame(error);
	return smalti_signals_caught() ? -1 : status;
}

static enum smalti_exit run(void *options, int count, char **operands)
{
	return smalti_bench_run(&smalti_bench_train_command, measure, options, count, operands);
}
