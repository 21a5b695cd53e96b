/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/file.h"
#include "bench/report.h"
#include "bench/stages.h"
#include "cli/common_rows.h"
#include "smalti/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SAMPLES = 1 << 20 };

struct stages_options {
	struct smalti_bench_options bench;
	const char *model, *variant, *t5, *lengths, *dit, *vae, *encode, *train;
	int64_t samples;
	enum smalti_precision precision;
	enum smalti_text_encoder_precision text_encoder_precision;
	struct smalti_session_options session;
	bool plain;
};

#define TYPE struct stages_options

static const struct stages_options defaults = {
    .bench = {.repeats = 3}, .samples = 1, .session = SMALTI_SESSION_DEFAULTS};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Stages")},
    {SMALTI_STRING(TYPE, t5), "t5", 0, "TOKENS[,...]",
     "run the text encoder on a caption of that many tokens"},
    {SMALTI_STRING(TYPE, lengths), "lengths", 0, "FILE",
     "run the text encoder on a batch of captions; FILE lists their token counts, of which the first 64 are "
     "used"},
    {SMALTI_STRING(TYPE, dit), "dit", 0, "WxH[,...]",
     "run one guided step of the transformer, with a caption of 40 tokens and the empty caption"},
    {SMALTI_STRING(TYPE, vae), "vae", 0, "WxH[,...]", "decode an image of that size"},
    {SMALTI_STRING(TYPE, encode), "encode", 0, "WxH[,...]", "encode an image of that size"},
    {SMALTI_STRING(TYPE, train), "train", 0, "WxH[,...]",
     "compute the gradients of the transformer's parameters for images of that size, with a caption of 40 "
     "tokens"},
    {SMALTI_INT64(TYPE, samples), "samples", 0, "N", "with --train: of so many images, added up",
     .minimum = 1, .maximum = MAX_SAMPLES},
    {SMALTI_GROUP("Model")},
    {SMALTI_STRING(TYPE, model), "model", 'm', "DIR",
     "directory of a pipeline in diffusers' layout; only the components of the chosen stages are needed; "
     "default: the embedded model"},
    SMALTI_VARIANT_ROW(TYPE, variant),
    SMALTI_PRECISION_ROW(TYPE, precision),
    SMALTI_TEXT_ENCODER_PRECISION_ROW(TYPE, text_encoder_precision),
    {SMALTI_GROUP("Machine")},
    SMALTI_WORKER_ROWS(TYPE),
    SMALTI_REPRODUCIBLE_ROW(TYPE),
    SMALTI_POLICY_ROW(TYPE),
    SMALTI_MEMORY_ROW(TYPE),
    {SMALTI_FLAG(TYPE, plain), "plain", 0, NULL,
     "use one worker, and compare with the same kernels called in sequence without the runtime"},
    {SMALTI_GROUP("Measuring")},
    SMALTI_BENCH_ROWS(TYPE),
};

static const struct smalti_example examples[] = {
    {"Every stage of the embedded model", "smalti-bench stages"},
    {"A model of the real width without any download", "smalti-bench make-model -g sigma-512 --only dit,vae "
						       "model && smalti-bench stages -m model --dit 512x512 "
						       "--vae 512x512"},
    {"What the runtime costs", "smalti-bench stages -m model --dit 512x512 --plain"},
    {NULL, NULL},
};

static enum smalti_exit run(void *values, int count, char **operands);

const struct smalti_command smalti_bench_stages_command = {
    .name = "smalti-bench stages",
    .summary = "time the stages of a pipeline, each alone",
    .operands = "",
    .description =
	"Opens what a stage needs of a model, runs it once, which makes the weights' packed form, and then "
	"as often as asked for: \"seconds\" is the median, \"least\" the fastest. Stages run through the "
	"graphs and the session that "
	"images take, each in a session of its own. Without a stage all are measured.\n\n"
	"\"packing\" is what the first run took longer. \"peak MiB\" is the most memory that was resident, "
	"with weights and mapped files. \"f32 peak\" is what all workers reach together in registers, right "
	"behind each run, at the clock that its load left, devices in large products. Convolutions count as "
	"direct ones. Below a stage is a line for each device: what moved to and from it in the repeats, and "
	"its "
	"speed while it was busy beside that of its products in this precision. "
	"\"% mispredicted\" is by how much StarPU's performance models, as the runs before left them, were "
	"wrong "
	"about the tasks of 0.1 ms or more: the mean difference by the mean time.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run,
};

static const struct smalti_bench_column columns[] = {
    {"seconds", "seconds", 1, "%.4f"},
    {"least", "least", 1, "%.4f"},
    {"packing", "packing", 1, "%.4f"},
    {"peak_bytes", "peak MiB", 1.0 / (1 << 20), "%.0f"},
    {"flops_per_second", "GFLOP/s", 1e-9, "%.1f"},
    {"peak", "f32 peak", 1e-9, "%.1f"},
    {"fraction", "% of it", 100, "%.1f"},
    {"model_error", "% mispredicted", 100, "%.1f"},
    {"runtime", "/ plain", 1, "%.3f"}, /* with --plain only */
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static const char note[] = "\"seconds\": the median of the repeats; \"least\": the fastest.";
static const char plain_note[] =
    "\"seconds\": the median of the repeats; \"least\": the fastest; \"/ plain\": "
    "seconds with one worker to those without the runtime.";

enum { MAX_STAGES = 32, LARGEST_FILE = 1 << 20, MAX_TOKENS = 1 << 20 };

struct measuring {
	const struct stages_options *options;
	struct smalti_stage_model model;
	struct smalti_stage_spec stages[MAX_STAGES];
	int count;
	struct smalti_bench_report *report;
	struct smalti_error *error;
};

/* What is to be measured */

static struct smalti_stage_spec *add_stage(struct measuring *m, enum smalti_stage_kind kind)
{
	if (m->count == MAX_STAGES) {
		smalti_fail(m->error, SMALTI_EINVAL, "more than %d stages", MAX_STAGES);
		return NULL;
	}
	struct smalti_stage_spec *stage = &m->stages[m->count++];
	stage->kind = kind;
	stage->samples = m->options->samples;
	return stage;
}

static int add_caption(struct measuring *m, const char *text)
{
	struct smalti_stage_spec *stage = add_stage(m, SMALTI_STAGE_T5);
	if (!stage || smalti_parse_int64(text, 1, MAX_TOKENS, &stage->tokens[0], m->error) < 0)
		return -1;
	stage->captions = 1;
	return 0;
}

static int add_sized(struct measuring *m, enum smalti_stage_kind kind, const char *text)
{
	struct smalti_size size;
	struct smalti_stage_spec *stage = add_stage(m, kind);
	if (!stage || smalti_parse_size(text, 1, 1 << 20, &size, m->error) < 0)
		return -1;
	stage->width = size.width;
	stage->height = size.height;
	return 0;
}

/* Adds each of a list like "512x512,1024x768". */
static int add_list(struct measuring *m, enum smalti_stage_kind kind, const char *list)
{
	while (list) {
		char item[64];
		const size_t length = strcspn(list, ",");
		snprintf(item, sizeof(item), "%.*s", (int)length, list);
		const int status = kind == SMALTI_STAGE_T5 ? add_caption(m, item) : add_sized(m, kind, item);
		if (status < 0)
			return -1;
		list = list[length] ? list + length + 1 : NULL;
	}
	return 0;
}

static int parse_lengths(struct smalti_stage_spec *stage, char *text, struct smalti_error *error)
{
	char *rest = NULL;
	for (char *word = strtok_r(text, " \t\r\n", &rest); word && stage->captions < SMALTI_STAGE_CAPTIONS;
	     word = strtok_r(NULL, " \t\r\n", &rest))
		if (smalti_parse_int64(word, 1, MAX_TOKENS, &stage->tokens[stage->captions++], error) < 0)
			return -1;
	return stage->captions ? 0 : smalti_fail(error, SMALTI_EINVAL, "no length");
}

static int add_lengths(struct measuring *m, const char *path)
{
	struct smalti_error inner = SMALTI_NO_ERROR;
	size_t length;
	if (!path)
		return 0;
	struct smalti_stage_spec *stage = add_stage(m, SMALTI_STAGE_T5);
	char *text = stage ? smalti_file_read(path, LARGEST_FILE, &length, m->error) : NULL;
	if (!text)
		return -1;
	int status = parse_lengths(stage, text, &inner);
	free(text);
	return status < 0 ? smalti_fail(m->error, inner.code, "%s: %s", path, inner.message) : 0;
}

static int choose_stages(struct measuring *m)
{
	const struct stages_options *o = m->options;
	if (add_list(m, SMALTI_STAGE_T5, o->t5) < 0 || add_lengths(m, o->lengths) < 0 ||
	    add_list(m, SMALTI_STAGE_DIT, o->dit) < 0 || add_list(m, SMALTI_STAGE_DECODE, o->vae) < 0 ||
	    add_list(m, SMALTI_STAGE_ENCODE, o->encode) < 0 || add_list(m, SMALTI_STAGE_TRAIN, o->train) < 0)
		return -1;
	if (m->count)
		return 0;
	add_caption(m, "40");
	add_stage(m, SMALTI_STAGE_DIT);
	add_stage(m, SMALTI_STAGE_DECODE);
	add_stage(m, SMALTI_STAGE_ENCODE);
	add_stage(m, SMALTI_STAGE_TRAIN);
	return 0;
}

/* Integers are the transformer's alone: other stages would run in f32 under their name. */
static int check_integers(const struct measuring *m)
{
	for (int i = 0; m->model.w8a8 && i < m->count; i++)
		if (m->stages[i].kind != SMALTI_STAGE_DIT)
			return smalti_fail(m->error, SMALTI_EUNSUPPORTED,
					   "precision w8a8: of the stages only --dit has it");
	return 0;
}

/* Measuring */

struct name {
	char text[96];
};

static struct name name_of(const struct smalti_stage_spec *stage, const struct smalti_stage_result *result)
{
	static const char *const kinds[] = {"t5", "dit", "decode", "encode", "train"};
	struct name name;
	if (stage->kind == SMALTI_STAGE_T5 && stage->captions == 1)
		snprintf(name.text, sizeof(name.text), "t5 %lld tokens", (long long)stage->tokens[0]);
	else if (stage->kind == SMALTI_STAGE_T5)
		snprintf(name.text, sizeof(name.text), "t5 %lld captions", (long long)stage->captions);
	else
		snprintf(name.text, sizeof(name.text), "%s %lldx%lld", kinds[stage->kind],
			 (long long)result->width, (long long)result->height);
	if (stage->kind == SMALTI_STAGE_TRAIN && stage->samples > 1)
		snprintf(name.text + strlen(name.text), sizeof(name.text) - strlen(name.text),
			 ", %lld samples", (long long)stage->samples);
	return name;
}

static int add_line(struct measuring *m, const char *name, const struct smalti_stage_result *result,
		    double runtime)
{
	const double speed = result->flops / result->seconds;
	const bool f32 = m->model.precision == SMALTI_F32; /* whose peak does not hold for other dtypes */
	const double peak = f32 ? result->ceiling : NAN;
	const struct smalti_bench_value line[COLUMNS] = {
	    {result->seconds, NULL}, {result->least, NULL},
	    {result->packing, NULL}, {result->peak < 0 ? NAN : (double)result->peak, NULL},
	    {speed, NULL},           {peak, NULL},
	    {speed / peak, NULL},    {result->model_error, NULL},
	    {runtime, NULL},
	};
	return smalti_bench_report_add(m->report, name, line, result->uses, result->devices, m->error);
}

/* Returns the options; --plain compares with one worker. */
static struct smalti_session_options session_of(const struct stages_options *o)
{
	struct smalti_session_options session = o->session;
	session.cpus = o->plain ? 1 : session.cpus;
	return session;
}

static int measure_stage(struct measuring *m, const struct smalti_stage_spec *stage)
{
	const struct stages_options *o = m->options;
	const int repeats = (int)o->bench.repeats;
	const struct smalti_session_options session = session_of(o);
	struct smalti_stage_result result, plain;
	if (smalti_stage_measure(stage, &m->model, &session, repeats, &result, m->error) < 0)
		return -1;
	struct name name = name_of(stage, &result);
	if (!o->plain)
		return add_line(m, name.text, &result, NAN);
	if (smalti_stage_measure(stage, &m->model, NULL, repeats, &plain, m->error) < 0 ||
	    add_line(m, name.text, &result, result.seconds / plain.seconds) < 0)
		return -1;
	strncat(name.text, " plain", sizeof(name.text) - strlen(name.text) - 1);
	return add_line(m, name.text, &plain, NAN);
}

static cJSON *facts_of(const struct measuring *m)
{
	const struct smalti_session_options session = session_of(m->options);
	return smalti_bench_facts(m->model.directory, m->options->precision, &session);
}

static int open_model(struct measuring *m)
{
	const struct stages_options *o = m->options;
	m->model = (struct smalti_stage_model){
	    .directory = o->model ? o->model : smalti_embedded_model(m->error),
	    .variant = o->variant,
	    .precision = smalti_precision_dtype(o->precision),
	    .text_encoder = o->text_encoder_precision,
	    .w8a8 = smalti_precision_is_w8a8(o->precision),
	};
	return m->model.directory
		   ? smalti_precision_choose(smalti_precision_of_rest(o->precision), NULL, m->error)
		   : -1;
}

static int measure_all(const void *options, struct smalti_error *error)
{
	const struct stages_options *o = options;
	struct measuring m = {.options = o, .error = error};
	if (open_model(&m) < 0 || choose_stages(&m) < 0 || check_integers(&m) < 0)
		return -1;
	if (o->plain && o->session.cpus > 1)
		return smalti_fail(error, SMALTI_EINVAL, "--plain compares with one worker, not %lld",
				   (long long)o->session.cpus);
	m.report = smalti_bench_report_open(&smalti_bench_stages_command, &o->bench, facts_of(&m), columns,
					    o->plain ? COLUMNS : COLUMNS - 1, error);
	int status = m.report ? 0 : -1;
	for (int i = 0; i < m.count && status == 0; i++)
		status = measure_stage(&m, &m.stages[i]);
	return smalti_bench_report_close(m.report, o->plain ? plain_note : note, status, error);
}

static enum smalti_exit run(void *options, int count, char **operands)
{
	return smalti_bench_run(&smalti_bench_stages_command, measure_all, options, count, operands);
}
