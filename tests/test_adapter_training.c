/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "codelets/codelets.h"
#include "golden.h"
#include "harness.h"
#include "rt/op_use.h"
#include "samplers/diffusion_loss.h"
#include "stage.h"
#include "train/optimizer.h"
#include "train_graph.h"

#include <math.h>
#include <stdio.h>

/* Three steps of adapters on the embedded model against PyTorch and peft (tests/data/train/README.md). */

enum { CHANNELS = 4, STEPS = 3, BATCH = 2, CASES = 3 };

static struct smalti_session *session;
static struct smalti_safetensors *file;
static cJSON *json;

static const struct adapter_case {
	const char *name, *targets;
	int64_t rank;
	double alpha; /* divided by the rank it is s */
	bool variance;
	double clip;
} cases[CASES] = {
    {"attention", "attention", 4, 4, true, 1},
    {"script", "all", 2, 8, true, 0},
    {"zero-b", "to_q,to_v", 4, 16, false, 0}, /* rank-stabilised: 8 / sqrt(4) is 16 / 4 */
};

static const struct smalti_optimizer_options adamw = {.kind = SMALTI_OPTIMIZER_ADAMW,
						      .rate = 1e-3,
						      .betas = {0.9, 0.999},
						      .epsilons = {1e-8},
						      .weight_decay = 0.01};

/* A model with adapters of a case. */
struct trial {
	const struct adapter_case *c;
	struct smalti_task_group *task_group;
	struct smalti_checkpoint *checkpoint;
	struct smalti_parameters *base, *adapters;
	struct smalti_trained *trained;
	struct smalti_optimizer *optimizer;
	struct smalti_tile **gradients;
	float **found; /* the gradients of the last step */
	struct smalti_loss_parts parts[BATCH];
};

static const struct smalti_tensor_view *tensor(const char *name)
{
	const struct smalti_tensor_view *view = smalti_safetensors_find(file, name);
	CHECK(view != NULL, name);
	return view;
}

static const struct smalti_tensor_view *numbered(const char *format, int i, int j)
{
	char name[64];
	snprintf(name, sizeof(name), format, i, j);
	return tensor(name);
}

/* Returns CASE.WHICH.NAME. */
static const float *of_parameter(const struct trial *t, const char *which, int64_t i)
{
	char name[200];
	snprintf(name, sizeof(name), "%s.%s.%s", t->c->name, which,
		 smalti_parameter_module(t->adapters->list[i].name));
	return tensor(name)->data;
}

static void reference(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	if (file)
		return;
	file = golden_open("train/lora.safetensors");
	json = smalti_json_read(test_data("train/lora.json"), 1 << 20, &error);
	SUCCEEDS(json ? 0 : -1, &error, "lora.json");
}

/* Opens a trial, whose base is `stored` in 16 bits where products round it. */
static void open_trial(struct trial *t, const struct adapter_case *c, enum smalti_dtype compute, bool stored)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_transformer_config config;
	const struct smalti_lora_shape shape = {c->rank, c->alpha, c->targets};
	*t = (struct trial){.c = c};
	reference();
	SUCCEEDS(
	    smalti_transformer_config_read(test_data("golden/transformer-2/config.json"), &config, &error),
	    &error, c->name);
	t->checkpoint =
	    smalti_checkpoint_open(test_data("golden/transformer-2"), SMALTI_STEM_DIFFUSERS, NULL, &error);
	t->task_group = smalti_task_group_new(session, "adapters", 0, &error);
	t->base =
	    smalti_parameters_new(t->task_group, &smalti_dit_trained, &config, &smalti_strategy_none, &error);
	t->adapters = smalti_adapter_parameters_new(t->task_group, t->base, &shape, &error);
	SUCCEEDS(t->adapters ? 0 : -1, &error, c->name);
	t->trained = smalti_trained_new(&config, t->adapters, compute, &error);
	SUCCEEDS(t->trained ? 0 : -1, &error, c->name);
	if (stored)
		smalti_trained_store_base(t->trained, t->task_group);
	SUCCEEDS(smalti_parameters_read(t->base, t->task_group, &config, t->checkpoint, false, &error),
		 &error, c->name);
	t->optimizer = smalti_optimizer_new(t->task_group, t->adapters, &adamw, &error);
	SUCCEEDS(t->optimizer ? 0 : -1, &error, c->name);
	t->gradients = train_graph_room(t->adapters->count, sizeof(*t->gradients));
	t->found = train_graph_room(t->adapters->count, sizeof(*t->found));
	for (int64_t i = 0; i < t->adapters->count; i++) {
		const struct smalti_parameter *p = &t->adapters->list[i];
		struct smalti_tile *given =
		    smalti_tile_upload(t->task_group, 1, p->count * 4, of_parameter(t, "init", i));
		smalti_parameter_take(p, t->task_group, given);
		smalti_tile_release(given);
		t->gradients[i] = smalti_parameter_tile(p, t->task_group);
		t->found[i] = train_graph_room(p->count, sizeof(float));
	}
}

static void close_trial(struct trial *t)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	smalti_task_group_wait(t->task_group);
	SUCCEEDS(smalti_task_group_status(t->task_group, &error), &error, t->c->name);
	for (int64_t i = 0; i < t->adapters->count; i++) {
		smalti_tile_release(t->gradients[i]);
		free(t->found[i]);
	}
	free(t->gradients);
	free(t->found);
	smalti_optimizer_free(t->optimizer);
	smalti_trained_free(t->trained);
	smalti_parameters_free(t->adapters);
	smalti_parameters_free(t->base);
	smalti_task_group_free(t->task_group);
	smalti_checkpoint_close(t->checkpoint);
}

static void deliver(const struct trial *t, struct smalti_tile *x, int64_t count, void *to)
{
	smalti_insert(deliver, t->task_group, (.x = x), .count = count, .sink = smalti_copy_floats,
		      .user = to);
}

static const cJSON *planned(int step, int j)
{
	return cJSON_GetArrayItem(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "plan"), step), j);
}

/* Forward, loss and backward of sample j of a step; `recomputed` blocks are computed again. */
static void insert_sample(struct trial *t, int step, int j, int64_t recomputed)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const int item = cJSON_GetArrayItem(planned(step, j), 0)->valueint;
	const int64_t timestep = cJSON_GetArrayItem(planned(step, j), 1)->valueint;
	const struct smalti_tensor_view *x0 = numbered("item%d.x0", item, 0),
					*text = numbered("item%d.text", item, 0);
	const struct smalti_tensor_view *noise = numbered("step%d.noise%d", step, j);
	const int64_t height = x0->shape[1], width = x0->shape[2], count = CHANNELS * height * width;
	struct smalti_tokens tokens;
	float *noisy = train_graph_room(count, sizeof(*noisy));
	smalti_add_noise(timestep, count, x0->data, noise->data, noisy);
	SUCCEEDS(smalti_tokens_cut(&tokens, &smalti_strategy_none, height * width / 4, width / 2, 37, &error),
		 &error, t->c->name);
	struct smalti_tile *clean = smalti_tile_upload(t->task_group, 1, count * 4, x0->data);
	struct smalti_tile *drawn = smalti_tile_upload(t->task_group, 1, count * 4, noise->data);
	const struct smalti_trained_sample sample = {
	    .x = smalti_tile_upload(t->task_group, 1, count * 4, noisy),
	    .height = height,
	    .width = width,
	    .tokens = &tokens,
	    .text = smalti_tile_upload(t->task_group, text->shape[0], text->shape[1] * 4, text->data),
	    .text_tokens = text->shape[0],
	    .timestep = timestep,
	    .recomputed = recomputed};
	free(noisy);
	struct smalti_tile *out, *gout = smalti_tile_new(t->task_group, 1, 2 * count * 4);
	struct smalti_tile *parts = smalti_tile_new(t->task_group, 1, sizeof(struct smalti_loss_parts));
	struct smalti_trained_pass *pass = smalti_trained_forward(t->trained, t->task_group, &sample, &out);
	smalti_insert(diffusion_loss, t->task_group,
		      (.x0 = clean, .noise = drawn, .output = out, .gradient = gout, .parts = parts),
		      .count = count, .t = timestep, .has_variance = true, .learns_variance = t->c->variance,
		      .weight = 1, .scale = 1.0 / BATCH);
	struct smalti_tile *const *part = t->gradients;
	smalti_trained_backward(pass, gout, &part, j > 0);
	deliver(t, parts, (int64_t)(sizeof(t->parts[j]) / sizeof(float)), &t->parts[j]);
	struct smalti_tile *const mine[] = {clean, drawn, sample.x, sample.text, out, gout, parts};
	for (size_t i = 0; i < COUNT_OF(mine); i++)
		smalti_tile_release(mine[i]);
	smalti_task_group_wait(t->task_group);
	smalti_tokens_free(&tokens);
}

/* Makes the gradients of a step; returns their norm. */
static double compute(struct trial *t, int step, int64_t recomputed)
{
	double sum = 0;
	smalti_trained_begin_step(t->trained, t->task_group);
	for (int j = 0; j < BATCH; j++)
		insert_sample(t, step, j, recomputed);
	smalti_trained_end_step(t->trained);
	for (int64_t i = 0; i < t->adapters->count; i++)
		deliver(t, t->gradients[i], t->adapters->list[i].count, t->found[i]);
	smalti_task_group_wait(t->task_group);
	for (int64_t i = 0; i < t->adapters->count; i++)
		for (int64_t k = 0; k < t->adapters->list[i].count; k++)
			sum += (double)t->found[i][k] * (double)t->found[i][k];
	return sqrt(sum);
}

static void check_losses(const struct trial *t, int step, double norm)
{
	const cJSON *of = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "cases"), t->c->name);
	const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(of, "rows"), step);
	for (int j = 0; j < BATCH; j++) {
		const double mse = cJSON_GetArrayItem(cJSON_GetObjectItem(row, "mse"), j)->valuedouble;
		const double vb = cJSON_GetArrayItem(cJSON_GetObjectItem(row, "vb"), j)->valuedouble;
		CHECK(fabs(t->parts[j].mse / mse - 1) < 1e-5, t->c->name);
		CHECK(!t->c->variance || fabs(t->parts[j].vb - vb) < 1e-5 * fmax(vb, 1e-2), t->c->name);
	}
	const double expected = cJSON_GetObjectItem(row, "grad_norm")->valuedouble;
	CHECK(fabs(norm / expected - 1) < 2e-5, t->c->name);
}

/* B = 0 has gradients of A that are 0 to the bit. */
static void check_gradients(const struct trial *t)
{
	double worst = 0;
	for (int64_t i = 0; i < t->adapters->count; i++) {
		const int64_t count = t->adapters->list[i].count;
		const float *expected = of_parameter(t, "grad", i);
		const double largest = test_max_abs(expected, count);
		if (largest == 0)
			CHECK(test_max_abs(t->found[i], count) == 0, t->adapters->list[i].name);
		else
			golden_near(t->found[i], expected, count, 1e-4, t->adapters->list[i].name);
		if (largest > 0)
			worst = fmax(worst, test_max_error(t->found[i], expected, count) / largest);
	}
	printf("\n    %s: gradients off by %.1e of the largest", t->c->name, worst);
}

static void check_values(const struct trial *t, const char *which)
{
	for (int64_t i = 0; i < t->adapters->count; i++) {
		const struct smalti_parameter *p = &t->adapters->list[i];
		float *values = train_graph_room(p->count, sizeof(*values));
		deliver(t, p->value, p->count, values);
		smalti_task_group_wait(t->task_group);
		CHECK(test_max_error(values, of_parameter(t, which, i), p->count) <= 0.1 * adamw.rate,
		      p->name);
		free(values);
	}
}

static void steps(const struct adapter_case *c)
{
	struct trial t;
	open_trial(&t, c, SMALTI_F32, true);
	for (int step = 0; step < STEPS; step++) {
		const double norm = compute(&t, step, step == 1 ? 3 : 0);
		check_losses(&t, step, norm);
		if (step == 0)
			check_gradients(&t);
		smalti_optimizer_update(
		    t.optimizer, t.task_group, t.gradients,
		    &(struct smalti_update){.step = step + 1,
					    .rate = adamw.rate,
					    .gradient_scale =
						c->clip > 0 && norm > c->clip ? c->clip / norm : 1});
		smalti_task_group_wait(t.task_group);
		if (step != 1)
			check_values(&t, step == 0 ? "after1" : "after3");
	}
	close_trial(&t);
}

static void three_steps(void)
{
	for (int i = 0; i < CASES; i++)
		steps(&cases[i]);
}

static void check_same(const struct trial *a, const struct trial *b)
{
	for (int64_t i = 0; i < a->adapters->count; i++)
		CHECK(memcmp(a->found[i], b->found[i], (size_t)a->adapters->list[i].count * sizeof(float)) ==
			  0,
		      a->adapters->list[i].name);
}

/* Recomputed blocks have the same bits; bf16 is near. */
static void other_ways(void)
{
	struct trial whole, again, rounded;
	open_trial(&whole, &cases[1], SMALTI_F32, false);
	open_trial(&again, &cases[1], SMALTI_F32, true);
	open_trial(&rounded, &cases[1], SMALTI_BF16, false);
	const double norm = compute(&whole, 0, 0), same = compute(&again, 0, 6),
		     near = compute(&rounded, 0, 0);
	CHECK(norm == same, "norm");
	CHECK(fabs(near / norm - 1) < 0.05, "bf16");
	check_same(&whole, &again);
	close_trial(&whole);
	close_trial(&again);
	close_trial(&rounded);
}

static int64_t base_bytes(const struct trial *t)
{
	int64_t bytes = 0;
	for (int64_t i = 0; i < t->base->count; i++)
		bytes += t->base->list[i].count * smalti_dtype_bytes(t->base->list[i].dtype);
	return bytes;
}

/* A base of 16 bits has the bits of one that each step rounds. */
static void stored_base(void)
{
	static const enum smalti_dtype dtypes[] = {SMALTI_BF16, SMALTI_F16};
	for (size_t i = 0; i < COUNT(dtypes); i++) {
		struct trial stored, plain;
		open_trial(&stored, &cases[1], dtypes[i], true);
		open_trial(&plain, &cases[1], dtypes[i], false);
		CHECK(compute(&stored, 0, 2) == compute(&plain, 0, 2), "norm");
		check_same(&stored, &plain);
		CHECK(base_bytes(&stored) < 0.65 * base_bytes(&plain), "bytes");
		close_trial(&stored);
		close_trial(&plain);
	}
}

/* Returns how often an operation ran in a step of a case. */
static int64_t count_in_step(const struct adapter_case *c, const char *operation)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct trial t;
	int64_t count = 0;
	open_trial(&t, c, SMALTI_F32, true);
	smalti_task_group_wait(t.task_group);
	struct smalti_op_use *before = smalti_op_counters_sum(session->op_counters, session->workers, &error);
	compute(&t, 0, 3);
	struct smalti_op_use *after = smalti_op_counters_sum(session->op_counters, session->workers, &error);
	cJSON *uses = smalti_op_uses_json(before, after);
	for (const cJSON *use = uses->child; use; use = use->next)
		if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(use, "name")), operation) == 0)
			count += (int64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(use, "count"));
	cJSON_Delete(uses);
	free(before);
	free(after);
	close_trial(&t);
	return count;
}

/* The backward makes no gradient that no adapter needs: the conditions have adapters in "all", and in
 * "attention" nothing behind them is trained. */
static void frozen_parts(void)
{
	CHECK(count_in_step(&cases[1], "silu_backward") > 0, "with adapters of the conditions");
	CHECK(count_in_step(&cases[0], "silu_backward") == 0, "without");
}

static const struct test tests[] = {
    {"three steps", three_steps},
    {"frozen parts", frozen_parts},
    {"recomputed, and in bf16", other_ways},
    {"a base of 16 bits", stored_base},
};

TEST_PROGRAM()
{
	session = stage_session(NULL, 0);
	const int status = test_main("training of adapters", tests, COUNT(tests));
	struct smalti_error error = SMALTI_NO_ERROR;
	cJSON_Delete(json);
	smalti_safetensors_close(file);
	return smalti_session_close(session, &error) < 0 ? 1 : status;
}
