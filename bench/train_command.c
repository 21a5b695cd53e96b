/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "bench/ablation.h"
#include "bench/report.h"
#include "cli/common_rows.h"

#include <math.h>
#include <stdlib.h>

struct train_options {
	struct smalti_bench_options bench;
	const char *model, *variant;
	int64_t image_size, batch, lanes;
	struct smalti_session_options session;
};

#define TYPE struct train_options

static const struct train_options defaults = {
    .bench = {.repeats = 5},
    .image_size = 128,
    .batch = 8,
    .lanes = 8,
    .session = {.cuda = -1},
};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Training")},
    {SMALTI_INT64(TYPE, image_size), "img-size", 0, "PIXELS", "resolution of the images", .minimum = 128,
     .maximum = 2880},
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
    {NULL, NULL},
};

static enum smalti_exit run(void *values, int count, char **operands);

const struct smalti_command smalti_bench_train_command = {
    .name = "smalti-bench train",
    .summary = "what each measure gains that makes training fast",
    .operands = "",
    .description =
	"Makes a data set of four batches of noise with captions of some 50 tokens, extracts its features, "
	"and "
	"tunes the transformer on them with AdamW in several ways, each in a session of its own. The first "
	"line "
	"computes all features anew in each epoch, as the extraction and the training would take turns; each "
	"line below adds a measure, or replaces the one that the line names.\n\n"
	"\"seconds\" are those of an item: of its features, if they are computed, and its part of the median "
	"step. \"extract\", \"wait\" and \"update\" are the shares of computing features, of waiting for "
	"stored "
	"ones, and of clipping and the optimizer; \"busy\" is how much of the workers' time in steps they "
	"were "
	"in tasks. \"peak MiB\" is the most memory that was resident, in either turn. \"bound\" is the items "
	"per second of steps that have all workers at their peak in f32, as smalti-bench stages measures it. "
	"\"KiB\" is what an item's features take on the disk.\n\n"
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

/* Directories of the features of both kinds. */
#define COMPRESSED "compressed"
#define MAPPED     "mapped"
enum { ONE_ROW = 1, A_BATCH = 0 };

static const struct measure {
	const char *name;
	unsigned computed;              /* features that each epoch computes */
	struct smalti_ablation_way way; /* no features: trained as the line before */
} measures[] = {
    {"features computed in each epoch",
     SMALTI_ABLATION_TEXT | SMALTI_ABLATION_IMAGES,
     {COMPRESSED, ONE_ROW, SMALTI_PRECISION_F32, SMALTI_RECOMPUTE_NONE, 1}},
    {"captions' features stored", SMALTI_ABLATION_IMAGES, {0}},
    {"images', too, compressed", 0, {0}},
    {"not compressed, but mapped", 0, {MAPPED, ONE_ROW, SMALTI_PRECISION_F32, SMALTI_RECOMPUTE_NONE, 1}},
    {"mapped, read a batch ahead", 0, {MAPPED, A_BATCH, SMALTI_PRECISION_F32, SMALTI_RECOMPUTE_NONE, 1}},
    {"compressed, read a batch ahead",
     0,
     {COMPRESSED, A_BATCH, SMALTI_PRECISION_F32, SMALTI_RECOMPUTE_NONE, 1}},
    {"... in f16", 0, {COMPRESSED, A_BATCH, SMALTI_PRECISION_F16, SMALTI_RECOMPUTE_NONE, 1}},
    {"... in bf16", 0, {COMPRESSED, A_BATCH, SMALTI_PRECISION_BF16, SMALTI_RECOMPUTE_NONE, 1}},
    {"... in bf16, twice the batch",
     0,
     {COMPRESSED, A_BATCH, SMALTI_PRECISION_BF16, SMALTI_RECOMPUTE_NONE, 2}},
    {"... in bf16, that, blocks recomputed",
     0,
     {COMPRESSED, A_BATCH, SMALTI_PRECISION_BF16, SMALTI_RECOMPUTE_BLOCK, 2}},
};
enum { MEASURES = sizeof(measures) / sizeof(measures[0]) };

/* What is measured once, and belongs to several lines. */
struct measuring {
	struct smalti_ablation ablation;
	struct smalti_ablation_extraction text, images, compressed, mapped;
	struct smalti_ablation_training training;
	bool maps; /* the features that it was trained on */
	struct smalti_bench_report *report;
};

static int add_line(struct measuring *m, const struct measure *measure, struct smalti_error *error)
{
	const struct smalti_ablation_training *t = &m->training;
	double extracting = 0;
	int64_t peak = t->peak;
	if (measure->computed & SMALTI_ABLATION_TEXT) {
		extracting += m->text.seconds;
		peak = smalti_max(peak, m->text.peak);
	}
	if (measure->computed & SMALTI_ABLATION_IMAGES) {
		extracting += m->images.seconds;
		peak = smalti_max(peak, m->images.peak);
	}
	const double seconds = extracting + t->seconds, training = t->seconds / seconds;
	const struct smalti_bench_value line[COLUMNS] = {
	    {seconds, NULL},
	    {1 / seconds, NULL},
	    {extracting / seconds, NULL},
	    {t->data * training, NULL},
	    {t->update * training, NULL},
	    {t->busy, NULL},
	    {t->peak < 0 ? NAN : (double)peak, NULL},
	    {1 / t->bound, NULL},
	    {(double)(m->maps ? m->mapped : m->compressed).stored, NULL},
	};
	return smalti_bench_report_add(m->report, measure->name, line, NULL, 0, error);
}

static int make_features(struct measuring *m, struct smalti_error *error)
{
	const unsigned both = SMALTI_ABLATION_TEXT | SMALTI_ABLATION_IMAGES;
	const struct {
		unsigned features;
		enum smalti_compression compression;
		const char *name;
		struct smalti_ablation_extraction *result;
	} sets[] = {
	    {SMALTI_ABLATION_TEXT, SMALTI_COMPRESS_ALWAYS, "text", &m->text},
	    {SMALTI_ABLATION_IMAGES, SMALTI_COMPRESS_ALWAYS, "images", &m->images},
	    {both, SMALTI_COMPRESS_ALWAYS, COMPRESSED, &m->compressed},
	    {both, SMALTI_COMPRESS_NEVER, MAPPED, &m->mapped},
	};
	int status = smalti_ablation_make_items(&m->ablation, error);
	for (size_t i = 0; i < COUNT_OF(sets) && status == 0; i++)
		status = smalti_ablation_extract(&m->ablation, sets[i].features, sets[i].compression,
						 sets[i].name, sets[i].result, error);
	return status;
}

static int measure_all(struct measuring *m, struct smalti_error *error)
{
	if (make_features(m, error) < 0)
		return -1;
	for (int i = 0; i < MEASURES; i++) {
		const struct smalti_ablation_way *way = &measures[i].way;
		if (way->features) {
			m->maps = strcmp(way->features, MAPPED) == 0;
			if (smalti_ablation_train(&m->ablation, way, &m->training, error) < 0)
				return -1;
		}
		if (add_line(m, &measures[i], error) < 0)
			return -1;
	}
	return 0;
}

static cJSON *facts_of(const struct train_options *o)
{
	cJSON *facts =
	    smalti_bench_facts(o->model ? o->model : "embedded", SMALTI_PRECISION_F32, &o->session);
	cJSON_AddNumberToObject(facts, "image_size", (double)o->image_size);
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
	const int status = measure_in(directory, options, error);
	smalti_remove_directory(directory);
	return status;
}

static enum smalti_exit run(void *options, int count, char **operands)
{
	return smalti_bench_run(&smalti_bench_train_command, measure, options, count, operands);
}
