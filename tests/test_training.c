/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of training against the reference (tests/data/train/README.md), from features on the disk to the
 * parameters; what must not change their bits.
 */
#include "bench/fill.h"
#include "codelets/codelets.h"
#include "golden.h"
#include "golden_features.h"
#include "harness.h"
#include "host/pool.h"
#include "kernels/scratch.h"
#include "rt/session.h"
#include "sanitized.h"
#include "train/initial.h"
#include "train/order.h"
#include "train/trainer.h"

#include <math.h>
#include <xxhash.h>

/* A file of reference outputs, its rows, and a directory of its features. */
struct golden {
	struct smalti_safetensors *file;
	cJSON *json;
	char features[512], held_out[512];
};

static const cJSON *part(const cJSON *object, const char *name)
{
	const cJSON *found = cJSON_GetObjectItem(object, name);
	CHECK(found != NULL, name);
	return found;
}

static double number(const cJSON *object, const char *name)
{
	const cJSON *found = part(object, name);
	return found ? found->valuedouble : NAN;
}

/* Of an array, or a number that stands for one. */
static double element(const cJSON *array, int i)
{
	const cJSON *found = cJSON_GetArrayItem(array, i);
	return found ? found->valuedouble : cJSON_IsNumber(array) ? array->valuedouble : NAN;
}

static void make_features(const struct golden *golden, const char *scratch, const char *kind,
			  char directory[512])
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const double factor = number(part(golden->json, "run"), "scaling_factor");
	const struct golden_features features = {
	    .file = golden->file, .kind = kind, .scaling_factor = factor, .text_model = "text"};
	snprintf(directory, 512, "%s/%s", scratch, kind);
	SUCCEEDS(make_golden_features(directory, &features, &error), &error, directory);
}

static void open_golden(struct golden *golden, const char *name)
{
	char path[64];
	const char *scratch = test_scratch();
	snprintf(path, sizeof(path), "train/%s.safetensors", name);
	golden->file = golden_open(path);
	snprintf(path, sizeof(path), "train/%s.json", name);
	golden->json = smalti_json_read(test_data(path), 1 << 24, NULL);
	make_features(golden, scratch, "item", golden->features);
	if (smalti_safetensors_find(golden->file, "held0.mean"))
		make_features(golden, scratch, "held", golden->held_out);
}

static void close_golden(struct golden *golden)
{
	smalti_safetensors_close(golden->file);
	cJSON_Delete(golden->json);
}

static struct smalti_optimizer_options optimizer_of(const cJSON *o, int64_t warmup)
{
	const cJSON *betas = part(o, "betas"), *eps = part(o, "eps"),
		    *limit = cJSON_GetObjectItem(o, "clip_threshold");
	return (struct smalti_optimizer_options){
	    .kind = limit ? SMALTI_OPTIMIZER_CAME : SMALTI_OPTIMIZER_ADAMW,
	    .rate = number(o, "lr"),
	    .warmup = warmup,
	    .betas = {element(betas, 0), element(betas, 1), element(betas, 2)},
	    .epsilons = {element(eps, 0), element(eps, 1)},
	    .weight_decay = number(o, "weight_decay"),
	    .limit = limit ? limit->valuedouble : 0,
	    .clip = number(o, "clip")};
}

static struct smalti_train_options options_of(const char *const *directories, const cJSON *run,
					      const cJSON *optimizer)
{
	return (struct smalti_train_options){.data = {.directories = directories,
						      .directory_count = 1,
						      .drop = number(run, "drop"),
						      .prefetch = 4},
					     .seed = (uint64_t)number(run, "seed"),
					     .steps = (int64_t)number(run, "steps"),
					     .batch = (int64_t)number(run, "batch"),
					     .lanes = 8,
					     .optimizer =
						 optimizer_of(optimizer, (int64_t)number(run, "warmup")),
					     .ema = number(run, "ema")};
}

static void no_damage(void *user, const char *message)
{
	(void)user;
	CHECK(false, message);
}

/* Parameters by the rule of golden files. */
static void fill_parameters(const struct smalti_trainer *trainer)
{
	for (int64_t i = 0; i < trainer->parameters->count; i++) {
		const struct smalti_parameter *p = &trainer->parameters->list[i];
		const struct smalti_fill fill =
		    smalti_fill_of(&trainer->parameters->inventory.tensors[p->tensor], (int)p->tensor);
		float *values = malloc((size_t)p->count * sizeof(*values));
		smalti_fill(&fill, 0, p->count, values);
		struct smalti_tile *tile =
		    smalti_tile_upload(trainer->task_group, 1, p->count * (int64_t)sizeof(*values), values);
		smalti_insert(copy, trainer->task_group, (.x = tile, .y = p->value),
			      .bytes = p->count * (int64_t)sizeof(*values));
		smalti_tile_release(tile);
		free(values);
	}
}

static int keep(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)error;
	memcpy(user, values, (size_t)count * sizeof(*values));
	return 0;
}

/* For free(). */
static float *values_of(const struct smalti_trainer *trainer, const struct smalti_parameter *p)
{
	float *values = malloc((size_t)p->count * sizeof(*values));
	smalti_insert(deliver, trainer->task_group, (.x = p->value), .count = p->count, .sink = keep,
		      .user = values);
	smalti_task_group_wait(trainer->task_group);
	return values;
}

/* Largest difference to the tensors PREFIX.NAME. */
static double far_from(const struct smalti_trainer *trainer, const struct smalti_parameters *parameters,
		       const struct golden *golden, const char *prefix)
{
	double max = 0;
	for (int64_t i = 0; i < parameters->count; i++) {
		char name[256];
		const struct smalti_parameter *p = &parameters->list[i];
		if (strstr(p->name, "to_k.bias")) /* whose exact gradient is 0: rounding is scaled to steps */
			continue;
		snprintf(name, sizeof(name), "%s.%s", prefix, p->name);
		const struct smalti_tensor_view *view = smalti_safetensors_find(golden->file, name);
		CHECK(view && view->bytes == p->count * 4, name);
		float *found = values_of(trainer, p), *expected = golden_values(view);
		max = fmax(max, test_max_error(found, expected, p->count));
		free(found);
		free(expected);
	}
	return max;
}

/* Of the bits of all parameters and averages. */
static uint64_t digest_of(const struct smalti_trainer *trainer)
{
	const struct smalti_parameters *const lists[] = {trainer->parameters, &trainer->averages};
	uint64_t digest = 0;
	for (int k = 0; k < 2; k++)
		for (int64_t i = 0; i < lists[k]->count; i++) {
			float *values = values_of(trainer, &lists[k]->list[i]);
			digest = XXH3_64bits_withSeed(values, (size_t)lists[k]->list[i].count * 4, digest);
			free(values);
		}
	return digest;
}

/* A trainer with its data. */
struct setting {
	struct smalti_session *session;
	const struct golden *golden;
	struct smalti_train_options options;
	enum smalti_precision precision;
	struct smalti_loss_scale_options loss_scale;
	const char *strategy; /* NULL: none */
	enum smalti_came_groups groups;
	struct smalti_checkpoint *weights; /* NULL: by the rule of golden files */
	struct smalti_trainer trainer;
	struct smalti_training_data *data;
	struct smalti_training_sample samples[8];
};

static void give_values(struct setting *s)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	if (!s->weights)
		fill_parameters(&s->trainer);
	else
		SUCCEEDS(smalti_parameters_read(s->trainer.parameters, s->trainer.task_group,
						&s->trainer.config, s->weights, true, &error),
			 &error, "weights");
	SUCCEEDS(smalti_trainer_begin(&s->trainer, &error), &error, "begin");
}

static void open_setting(struct setting *s, const struct smalti_transformer_config *config)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_tensor_view *null = smalti_safetensors_find(s->golden->file, "null");
	float *values = malloc((size_t)null->shape[1] * sizeof(float));
	smalti_widen(null->dtype, null->data, null->shape[1], values);
	const struct smalti_null_caption null_caption = {values, 1, null->shape[1]};
	s->data = smalti_training_data_open(&s->options, no_damage, NULL, &error);
	SUCCEEDS(s->data ? 0 : -1, &error, "data");
	SUCCEEDS(smalti_trainer_open(&s->trainer, s->session, &s->options, config, &error), &error,
		 "trainer");
	smalti_trainer_set_data(&s->trainer, smalti_training_data_schema(s->data), &null_caption);
	give_values(s);
	free(values);
}

static void close_setting(struct setting *s)
{
	smalti_trainer_close(&s->trainer);
	smalti_training_data_close(s->data);
}

static struct smalti_session *session_of(const char *policy, int64_t cpus)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_session_options options = {.policy = policy, .cpus = cpus};
	struct smalti_session *session = smalti_session_open(&options, &error);
	SUCCEEDS(session ? 0 : -1, &error, "session");
	return session;
}

static void check_batch(const struct smalti_training_sample *samples, int64_t count, const cJSON *row)
{
	for (int i = 0; i < count; i++) {
		CU_ASSERT_EQUAL(samples[i].index, (int64_t)element(part(row, "items"), i));
		CU_ASSERT_EQUAL(samples[i].draws.timestep, (int64_t)element(part(row, "t"), i));
		CU_ASSERT_EQUAL(samples[i].dropped, element(part(row, "dropped"), i) != 0);
	}
}

static double largest(double *max, double found, double expected)
{
	*max = fmax(*max, fabs(found / expected - 1));
	return *max;
}

/* Steps as the rows say: how far their losses, and their norms, are away at most. */
static void run_rows(struct setting *s, const cJSON *rows, int64_t count, double *loss, double *norm)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	*loss = *norm = 0;
	for (int i = 0; i < count; i++) {
		const cJSON *row = cJSON_GetArrayItem(rows, i);
		struct smalti_step_result result;
		SUCCEEDS(smalti_training_data_next(s->data, s->samples, &error), &error, "batch");
		check_batch(s->samples, s->options.batch, row);
		SUCCEEDS(smalti_trainer_step(&s->trainer, s->samples, &result, &error), &error, "step");
		largest(loss, result.loss, number(row, "loss"));
		largest(loss, result.mse, number(row, "mse"));
		largest(loss, result.vb, number(row, "vb"));
		largest(norm, result.norm, number(row, "grad_norm"));
		CU_ASSERT_DOUBLE_EQUAL(result.rate, number(row, "lr"), 1e-15);
	}
}

/* What tests measure, and what they allow. */
static void check_far(const char *what, double found, double allowed)
{
	char text[160];
	snprintf(text, sizeof(text), "%s: %.1e, %.0e allowed", what, found, allowed);
	CHECK(found <= allowed, text);
}

/* The five steps of the small model. */

static void open_small(struct setting *s, const struct golden *golden, const char *const *directories,
		       const char *kind)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_transformer_config config;
	s->golden = golden;
	s->options =
	    options_of(directories, part(golden->json, "run"), part(part(golden->json, "optimizers"), kind));
	s->options.model.precision = s->precision;
	s->options.loss_scale = s->loss_scale;
	s->options.strategy = s->strategy;
	s->options.optimizer.groups = s->groups;
	SUCCEEDS(smalti_transformer_config_parse(part(golden->json, "config"), &config, &error), &error,
		 "config");
	open_setting(s, &config);
}

static void steps_are_those_of_the_reference(void)
{
	static const struct {
		const char *kind;
		double loss, norm, values; /* allowed; values of the rate */
	} cases[] = {{"adamw", 1e-5, 2e-5, 0.02}, {"came", 5e-5, 1e-4, 0.03}};
	struct golden golden = {0};
	open_golden(&golden, "steps");
	const char *const directories[] = {golden.features};
	struct smalti_session *session = session_of(NULL, 2);
	for (int i = 0; i < COUNT(cases); i++) {
		const char *kind = cases[i].kind;
		struct setting s = {.session = session};
		char prefix[32];
		double loss, norm;
		open_small(&s, &golden, directories, kind);
		const double rate = s.options.optimizer.rate;
		run_rows(&s, part(part(golden.json, kind), "rows"), s.options.steps, &loss, &norm);
		check_far("loss", loss, cases[i].loss);
		check_far("norm", norm, cases[i].norm);
		snprintf(prefix, sizeof(prefix), "%s.final", kind);
		check_far(prefix, far_from(&s.trainer, s.trainer.parameters, &golden, prefix) / rate,
			  cases[i].values);
		snprintf(prefix, sizeof(prefix), "%s.ema", kind);
		check_far(prefix, far_from(&s.trainer, &s.trainer.averages, &golden, prefix) / rate,
			  cases[i].values);
		close_setting(&s);
	}
	smalti_session_close(session, NULL);
	close_golden(&golden);
}

static void first_values_are_those_of_the_reference(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_transformer_config config;
	cJSON *file = smalti_json_read(test_data("train/draws.json"), 1 << 20, NULL);
	const cJSON *init = part(file, "init"), *tensors = part(init, "tensors");
	SUCCEEDS(smalti_transformer_config_parse(part(init, "config"), &config, &error), &error, "config");
	const struct smalti_train_options options = {.optimizer.kind = SMALTI_OPTIMIZER_CAME};
	struct smalti_session *session = session_of(NULL, 1);
	struct smalti_trainer trainer;
	SUCCEEDS(smalti_trainer_open(&trainer, session, &options, &config, &error), &error, "trainer");
	smalti_initial_values(trainer.parameters, trainer.task_group, (uint64_t)number(init, "seed"));
	CU_ASSERT_EQUAL(trainer.parameters->count, cJSON_GetArraySize(tensors));
	for (int64_t i = 0; i < trainer.parameters->count; i++) {
		const struct smalti_parameter *p = &trainer.parameters->list[i];
		const cJSON *expected = part(tensors, p->name);
		float *values = values_of(&trainer, p);
		double sum = 0, squares = 0;
		for (int64_t k = 0; k < p->count; k++) {
			sum += (double)values[k];
			squares += (double)values[k] * (double)values[k];
		}
		const double norm = number(expected, "norm");
		CHECK(fabs(sum - number(expected, "sum")) <= 1e-5 * norm, p->name);
		CHECK(fabs(sqrt(squares) - norm) <= 1e-5 * norm, p->name);
		for (int k = 0; k < 3; k++)
			CHECK(fabs(values[k] - element(part(expected, "first"), k)) <= 1e-6, p->name);
		free(values);
	}
	smalti_trainer_close(&trainer);
	smalti_session_close(session, NULL);
	cJSON_Delete(file);
}

/* Which tensors have factors together is seen in the names of the state. */
static void pixart_stacks_what_attention_reads(void)
{
	static const char *const there[] = {
	    "factors.transformer_blocks.1.attn1.to_k.weight", "factors.transformer_blocks.1.attn2.to_k.bias",
	    "factors.transformer_blocks.1.attn2.to_q.weight", "mean.transformer_blocks.1.attn1.to_v.weight"};
	static const char *const absent[] = {"factors.transformer_blocks.1.attn1.to_q.weight",
					     "factors.transformer_blocks.1.attn1.to_v.bias",
					     "factors.transformer_blocks.1.attn2.to_v.weight"};
	struct golden golden = {0};
	open_golden(&golden, "steps");
	const char *const directories[] = {golden.features};
	struct setting s = {.session = session_of(NULL, 2), .groups = SMALTI_CAME_GROUPS_PIXART};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_step_result result;
	open_small(&s, &golden, directories, "came");
	const struct smalti_optimizer *optimizer = s.trainer.optimizer;
	for (int k = 0; k < COUNT(there) + COUNT(absent); k++) {
		const char *name = k < COUNT(there) ? there[k] : absent[k - COUNT(there)];
		bool found = false;
		for (int64_t i = 0; i < optimizer->state_count; i++)
			found = found || strcmp(optimizer->state[i].name, name) == 0;
		CHECK(found == (k < COUNT(there)), name);
	}
	for (int i = 0; i < 3; i++) {
		SUCCEEDS(smalti_training_data_next(s.data, s.samples, &error), &error, "batch");
		SUCCEEDS(smalti_trainer_step(&s.trainer, s.samples, &result, &error), &error, "step");
	}
	close_setting(&s);
	smalti_session_close(s.session, NULL);
	close_golden(&golden);
}

/* ‖a − b‖ of all parameters; b NULL: of none. */
static double norm_of(float *const *a, float *const *b, const struct smalti_parameters *parameters)
{
	double sum = 0;
	for (int64_t i = 0; i < parameters->count; i++)
		for (int64_t k = 0;
		     k < parameters->list[i].count && !strstr(parameters->list[i].name, "to_k.bias"); k++)
			sum += pow((double)a[i][k] - (b ? (double)b[i][k] : 0), 2);
	return sqrt(sum);
}

static void keep_parameters(const struct smalti_trainer *trainer, float **values)
{
	for (int64_t i = 0; i < trainer->parameters->count; i++)
		values[i] = values_of(trainer, &trainer->parameters->list[i]);
}

enum { PARAMETERS_MAX = 128 };

/* Begins with the rows' first batch, whatever becomes of it, and ends behind their last. */
static void run_half(struct setting *s, const cJSON *half, float **values)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const cJSON *row;
	int made = 0;
	const bool scales = s->precision == SMALTI_PRECISION_F16;
	cJSON_ArrayForEach (row, part(half, "rows")) {
		const bool skipped = cJSON_IsTrue(part(row, "skipped"));
		struct smalti_step_result result;
		SUCCEEDS(smalti_training_data_next(s->data, s->samples, &error), &error, "batch");
		for (int i = 0; i < s->options.batch; i++)
			CU_ASSERT_EQUAL(s->samples[i].index, (int64_t)element(part(row, "items"), i));
		if (skipped && !scales) {
			for (int i = 0; i < s->options.batch; i++)
				smalti_training_sample_free(&s->samples[i]);
			continue;
		}
		SUCCEEDS(smalti_trainer_step(&s->trainer, s->samples, &result, &error), &error, "step");
		CU_ASSERT_EQUAL(result.skipped, skipped);
		CU_ASSERT_DOUBLE_EQUAL(result.rate, number(row, "lr"), 1e-15);
		if (scales) {
			CHECK(result.scale == number(row, "scale"), "scale");
			CHECK(s->trainer.state.scale.scale == number(row, "scale_after"), "scale after");
			CHECK(s->trainer.state.scale.good == (int64_t)number(row, "good_after"),
			      "good steps");
		}
		if (!skipped) {
			const cJSON *reference = cJSON_GetArrayItem(part(half, "reference"), made++);
			check_far("loss in f16", fabs(result.loss / number(reference, "loss") - 1), 1e-3);
			check_far("norm in f16", fabs(result.norm / number(reference, "grad_norm") - 1),
				  4e-3);
		}
	}
	CHECK(made == cJSON_GetArraySize(part(half, "reference")), "steps");
	keep_parameters(&s->trainer, values);
}

/* S = 2^32 overflows in the first step: it is left out, and the others are as in f32 without its batch. */
static void bad_steps_are_left_out(void)
{
	static const enum smalti_precision precisions[] = {SMALTI_PRECISION_F16, SMALTI_PRECISION_F32};
	static float *values[2][PARAMETERS_MAX], *first[PARAMETERS_MAX];
	struct golden golden = {0};
	open_golden(&golden, "steps");
	const char *const directories[] = {golden.features};
	cJSON *file = smalti_json_read(test_data("train/scaler.json"), 1 << 20, NULL);
	const cJSON *half = part(file, "f16 run"), *scaler = part(half, "scaler");
	struct smalti_session *session = session_of(NULL, 2);
	for (int i = 0; i < 2; i++) {
		struct setting s = {.session = session, .precision = precisions[i]};
		s.loss_scale = (struct smalti_loss_scale_options){
		    number(scaler, "init_scale"), number(scaler, "growth_factor"),
		    number(scaler, "backoff_factor"), (int64_t)number(scaler, "growth_interval")};
		open_small(&s, &golden, directories, "adamw");
		CHECK(s.trainer.parameters->count <= PARAMETERS_MAX, "room");
		if (i == 0)
			keep_parameters(&s.trainer, first);
		run_half(&s, half, values[i]);
		if (i == 1) {
			const double far = norm_of(values[0], values[1], s.trainer.parameters);
			check_far("update in f16", far / norm_of(values[1], first, s.trainer.parameters),
				  5e-3);
		}
		close_setting(&s);
	}
	for (int i = 0; i < PARAMETERS_MAX; i++) {
		free(values[0][i]);
		free(values[1][i]);
		free(first[i]);
	}
	smalti_session_close(session, NULL);
	cJSON_Delete(file);
	close_golden(&golden);
}

/* As far from the reference as rounding operands to bf16 may bring it. */
static void steps_in_bf16_are_near(void)
{
	struct golden golden = {0};
	open_golden(&golden, "steps");
	const char *const directories[] = {golden.features};
	struct setting s = {.session = session_of(NULL, 2), .precision = SMALTI_PRECISION_BF16};
	double loss, norm;
	open_small(&s, &golden, directories, "adamw");
	run_rows(&s, part(part(golden.json, "adamw"), "rows"), s.options.steps, &loss, &norm);
	check_far("loss in bf16", loss, 3e-3);
	check_far("norm in bf16", norm, 1e-2);
	close_setting(&s);
	smalti_session_close(s.session, NULL);
	close_golden(&golden);
}

static void how_it_is_computed_changes_no_bit(void)
{
	static const struct {
		const char *policy;
		int64_t cpus, micro;
		enum smalti_recomputation recomputation;
	} cases[] = {{"lws", 2, 0, 0},
		     {"lws", 1, 1, 0},
		     {"dmda", 2, 4, SMALTI_RECOMPUTE_BLOCK},
		     {"eager", 2, 3, 0},
		     {"eager", 2, 3, SMALTI_RECOMPUTE_AUTO},
		     {"random", 2, 2, 0}};
	struct golden golden = {0};
	open_golden(&golden, "steps");
	const char *const directories[] = {golden.features};
	uint64_t first = 0;
	for (int i = 0; i < COUNT(cases); i++) {
		struct setting s = {.session = session_of(cases[i].policy, cases[i].cpus)};
		double loss, norm;
		open_small(&s, &golden, directories, "adamw");
		s.options.micro = cases[i].micro;
		s.options.recomputation = cases[i].recomputation;
		run_rows(&s, part(part(golden.json, "adamw"), "rows"), s.options.steps, &loss, &norm);
		const uint64_t digest = digest_of(&s.trainer);
		first = i == 0 ? digest : first;
		CHECK(digest == first, cases[i].policy);
		close_setting(&s);
		smalti_session_close(s.session, NULL);
	}
	close_golden(&golden);
}

/* By the tree of docs/training.md, sample by sample: a sum is there when its samples have ended. */
static int64_t lanes_step_by_step(int64_t batch, int64_t lanes, int64_t micro_batch)
{
	bool there[16] = {false};
	int64_t sums[16], added = 0, gone = 0, inserted = 0, max = 0;
	for (int64_t lane = 0; lane < lanes; lane++) {
		there[lane] = true;
		for (int64_t i = lane; i < batch; i += lanes, inserted++) {
			while (gone < added && sums[gone] <= inserted - micro_batch + 1)
				gone++;
			max = lane + 1 - gone > max ? lane + 1 - gone : max;
		}
		for (int64_t s = 1; s < lanes; s *= 2)
			for (int64_t k = 0; k + s < lanes; k += 2 * s)
				if (there[k] && there[k + s] &&
				    (k + 2 * s < lanes ? k + 2 * s : lanes) <= lane + 1) {
					there[k + s] = false;
					sums[added++] = inserted;
				}
	}
	return max;
}

static int64_t most_lanes(int64_t batch, int64_t lanes, int64_t micro_batch)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_step_order order;
	int64_t most = 0;
	SUCCEEDS(smalti_step_order_open(&order, &smalti_strategy_none, batch, lanes, &error), &error,
		 "order");
	for (int64_t slot = 0; slot < batch; slot++) {
		int64_t there = 0;
		for (int64_t lane = 0; lane < lanes; lane++)
			there += smalti_step_order_has(&order, lane, slot, micro_batch);
		most = smalti_max(most, there);
	}
	smalti_step_order_close(&order);
	return most;
}

static void lanes_are_counted(void)
{
	for (int64_t batch = 1; batch <= 14; batch++)
		for (int64_t lanes = 1; lanes <= batch; lanes++)
			for (int64_t micro_batch = 1; micro_batch <= batch; micro_batch++) {
				char what[80];
				snprintf(what, sizeof(what),
					 "%" PRId64 " samples, %" PRId64 " lanes, %" PRId64 " together",
					 batch, lanes, micro_batch);
				CHECK(most_lanes(batch, lanes, micro_batch) ==
					  lanes_step_by_step(batch, lanes, micro_batch),
				      what);
			}
}

/* What is counted of a step is what it takes: the tiles that the pool has given out at the same time, and at
 * most what the kernels have for themselves. Samples that are computed at the same time, and layers without
 * barriers, need not be at their largest together. */
static const struct {
	enum smalti_precision precision;
	const char *optimizer, *policy; /* NULL: without StarPU */
	int64_t tokens, micro, lanes;
	enum smalti_recomputation recomputation;
	const char *strategy; /* NULL: none */
	double least;         /* of what is counted */
} counted[] = {
    {SMALTI_PRECISION_F32, "adamw", NULL, 0, 1, 1, SMALTI_RECOMPUTE_BLOCK, NULL, 0.95},
    {SMALTI_PRECISION_F32, "came", "lws", 7, 1, 3, SMALTI_RECOMPUTE_BLOCK, NULL, 0.8},
    {SMALTI_PRECISION_BF16, "adamw", NULL, 4, 1, 1, SMALTI_RECOMPUTE_BLOCK, NULL, 0.95},
    {SMALTI_PRECISION_F16, "adamw", "lws", 7, 2, 4, SMALTI_RECOMPUTE_BLOCK, NULL, 0.6},
    {SMALTI_PRECISION_F32, "adamw", "eager", 0, 3, 2, SMALTI_RECOMPUTE_BLOCK, NULL, 0.6},
    {SMALTI_PRECISION_F32, "adamw", "random", 5, 1, 1, SMALTI_RECOMPUTE_BLOCK, NULL, 0.8},
    {SMALTI_PRECISION_F32, "adamw", "lws", 0, 4, 2, SMALTI_RECOMPUTE_NONE, NULL, 0.4},
    {SMALTI_PRECISION_F32, "adamw", "lws", 4, 2, 2, SMALTI_RECOMPUTE_BLOCK, "data2", 0.6},
    {SMALTI_PRECISION_F32, "adamw", "lws", 4, 1, 2, SMALTI_RECOMPUTE_BLOCK, "patch2", 0.8},
    {SMALTI_PRECISION_F32, "adamw", "lws", 4, 1, 2, SMALTI_RECOMPUTE_BLOCK, "ring2", 0.8},
    {SMALTI_PRECISION_BF16, "adamw", "lws", 4, 1, 2, SMALTI_RECOMPUTE_BLOCK, "tensor2", 0.8},
    {SMALTI_PRECISION_F32, "came", "lws", 4, 1, 2, SMALTI_RECOMPUTE_BLOCK, "hybrid:data2.patch2", 0.8},
    {SMALTI_PRECISION_F32, "adamw", "lws", 4, 2, 2, SMALTI_RECOMPUTE_AUTO, "data2", 0.4},
};

static void memory_is_what_is_counted(void)
{
	struct golden golden = {0};
	open_golden(&golden, "steps");
	const char *const directories[] = {golden.features};
	for (int i = 0; i < COUNT(counted); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_step_result result;
		struct smalti_pool_state pool;
		char what[160];
		struct setting s = {.session = counted[i].policy ? session_of(counted[i].policy, 2)
								 : smalti_session_open_sequential(&error),
				    .precision = counted[i].precision,
				    .strategy = counted[i].strategy,
				    .loss_scale = {.initial = 1024, .interval = 100}};
		open_small(&s, &golden, directories, counted[i].optimizer);
		s.options.recomputation = counted[i].recomputation;
		s.options.tile_tokens = counted[i].tokens;
		s.options.micro = counted[i].micro;
		s.options.lanes = counted[i].lanes;
		SUCCEEDS(smalti_training_data_next(s.data, s.samples, &error), &error, "batch");
		SUCCEEDS(smalti_trainer_step(&s.trainer, s.samples, &result, &error), &error, "step");
		const struct smalti_step_plan plan = s.trainer.plan;
		smalti_pool_state(s.session->pool, &pool);
		snprintf(what, sizeof(what),
			 "case %d, %s: %" PRId64 " of %" PRId64 " bytes, scratch %" PRId64 " of %" PRId64, i,
			 counted[i].strategy ? counted[i].strategy : "one place", pool.max_used, plan.tiles,
			 smalti_scratch_held(), plan.scratch);
		printf("\n    %s", what);
		const double part = (double)pool.max_used / (double)plan.tiles;
		CHECK(part <= (counted[i].strategy ? 1.05 : 1) && smalti_scratch_held() <= plan.scratch,
		      what);
		CHECK(!SMALTI_POOLED || part >= counted[i].least, what);
		close_setting(&s);
		smalti_session_close(s.session, NULL);
	}
	close_golden(&golden);
}

/* The embedded model. */

static void check_evaluation(struct setting *s, const cJSON *expected, bool averages)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_evaluation found;
	struct smalti_train_options options = s->options;
	const char *const directories[] = {s->golden->held_out};
	double max = 0;
	options.data.directories = directories;
	struct smalti_training_data *held_out = smalti_training_data_open(&options, no_damage, NULL, &error);
	SUCCEEDS(held_out ? 0 : -1, &error, "held-out items");
	SUCCEEDS(smalti_trainer_evaluate(&s->trainer, held_out, averages, &found, &error), &error,
		 "evaluate");
	for (int i = 0; i < SMALTI_EVALUATED_TIMESTEPS; i++) {
		largest(&max, found.mse[i], element(part(expected, "mse"), i));
		largest(&max, found.vb[i], element(part(expected, "vb"), i));
	}
	largest(&max, found.mean_mse, number(expected, "mean_mse"));
	largest(&max, found.mean_vb, number(expected, "mean_vb"));
	check_far("evaluation", max, 2e-5);
	smalti_training_data_close(held_out);
}

static void curves_are_those_of_the_reference(void)
{
	static const struct {
		const char *name;
		int64_t steps; /* of 50 that are made in any case: the test is to take seconds */
	} cases[] = {{"plain", SANITIZED ? 3 : 50}, {"min_snr_5", 2}};
	const bool full = getenv("SMALTI_TEST_FULL");
	struct golden golden = {0};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_transformer_config config;
	open_golden(&golden, "curve");
	const char *const directories[] = {golden.features};
	const char *model = test_data("golden/transformer");
	struct smalti_checkpoint *weights =
	    smalti_checkpoint_open(model, SMALTI_STEM_DIFFUSERS, NULL, &error);
	SUCCEEDS(weights ? 0 : -1, &error, model);
	SUCCEEDS(smalti_transformer_config_read(test_data("golden/transformer/config.json"), &config, &error),
		 &error, "config");
	struct smalti_session *session = session_of(NULL, 2);
	for (int i = 0; i < COUNT(cases); i++) {
		const cJSON *curve = part(golden.json, cases[i].name), *gamma = part(curve, "min_snr_gamma");
		struct setting s = {.session = session, .golden = &golden, .weights = weights};
		double loss, norm;
		s.options = options_of(directories, part(golden.json, "run"), part(golden.json, "optimizer"));
		s.options.min_snr = cJSON_IsNumber(gamma) ? gamma->valuedouble : 0;
		open_setting(&s, &config);
		if (i == 0)
			check_evaluation(&s, part(part(curve, "evaluation"), "before"), false);
		const int64_t steps = full ? s.options.steps : cases[i].steps;
		run_rows(&s, part(curve, "rows"), steps, &loss, &norm);
		check_far("loss", loss, 1e-5);
		check_far("norm", norm, 2e-5);
		if (steps == s.options.steps) {
			check_evaluation(&s, part(part(curve, "evaluation"), "after"), false);
			check_evaluation(&s, part(part(curve, "evaluation"), "after, EMA"), true);
		}
		close_setting(&s);
	}
	smalti_session_close(session, NULL);
	smalti_checkpoint_close(weights);
	close_golden(&golden);
}

/* Samples of a step have at least four bands together, of 128 to 1024 tokens. */
static void band_sizes(void)
{
	static const struct {
		int64_t batch, tokens, given, band;
	} bands[] = {
	    {1, 64, 0, 128},   {1, 1024, 0, 256},  {1, 4096, 0, 1024}, {1, 16384, 0, 1024}, {2, 1024, 0, 512},
	    {3, 1024, 0, 512}, {4, 1024, 0, 1024}, {4, 900, 0, 900},   {32, 4096, 0, 1024}, {1, 1024, 7, 7},
	    {1, 256, 0, 128},  {1, 1100, 0, 275},  {2, 2049, 0, 1024},
	};
	for (size_t i = 0; i < COUNT(bands); i++) {
		const struct smalti_train_options options = {.batch = bands[i].batch,
							     .tile_tokens = bands[i].given};
		CHECK(smalti_training_tile_tokens(&options, bands[i].tokens) == bands[i].band, "band");
	}
}

static const struct test tests[] = {
    {"sizes of bands", band_sizes},
    {"steps are those of the reference", steps_are_those_of_the_reference},
    {"first values are those of the reference", first_values_are_those_of_the_reference},
    {"PixArt stacks what attention reads", pixart_stacks_what_attention_reads},
    {"bad steps are left out", bad_steps_are_left_out},
    {"steps in bf16 are near", steps_in_bf16_are_near},
    {"how it is computed changes no bit", how_it_is_computed_changes_no_bit},
    {"lanes are counted", lanes_are_counted},
    {"memory is what is counted", memory_is_what_is_counted},
    {"curves are those of the reference", curves_are_those_of_the_reference},
};

TEST_MAIN("training", tests)
