/* SPDX-License-Identifier: Apache-2.0
 *
 * Another architecture than PixArt (toy_model.c), through the same interfaces: a step of an image, and
 * training. */
#include "codelets/codelets.h"
#include "graphs/parameters.h"
#include "harness.h"
#include "rt/session.h"
#include "stage.h"
#include "synthetic.h"
#include "toy_model.h"

#include <math.h>
#include <stdio.h>

enum { SIDE = 8, TOKENS = 5, TIMESTEP = 321, INPUT = 4 * SIDE * SIDE, PARAMETERS = 32 };

static const struct smalti_transformer_config config = {.layers = 2,
							.heads = 2,
							.head_dim = 12,
							.width = 24,
							.in_channels = 4,
							.out_channels = 4,
							.patch_size = 2,
							.sample_size = SIDE,
							.caption_channels = 20,
							.norm_eps = 1e-6};

static struct smalti_session *session;
static struct smalti_checkpoint *checkpoint;

/* Returns the checkpoint, made at the first call. */
static struct smalti_checkpoint *weights(void)
{
	if (checkpoint)
		return checkpoint;
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_inventory inventory = {.count = 0};
	struct smalti_checkpoint *all = smalti_checkpoint_record(&inventory, SMALTI_F32, &error);
	struct smalti_denoiser *toy = toy_model_new(NULL, &config, all, SMALTI_F32, &error);
	SUCCEEDS(toy ? 0 : -1, &error, "the tensors of the toy");
	smalti_denoiser_free(toy);
	smalti_checkpoint_close(all);
	smalti_inventory_sort(&inventory);
	return checkpoint = synthetic_checkpoint(&inventory, 0.3);
}

static void fill(float *values, int64_t count, double factor)
{
	for (int64_t i = 0; i < count; i++)
		values[i] = (float)sin(factor * (double)(i + 1));
}

/* What is computed, and how. */
struct plan {
	int64_t band, recomputed;
	int64_t parameter, value; /* this value of this parameter is larger by `change` */
	float change;
};

struct outcome {
	float out[INPUT], *gradients[PARAMETERS];
	int64_t count[PARAMETERS], parameters;
	char name[PARAMETERS][64];
};

static void deliver(struct smalti_task_group *task_group, struct smalti_tile *x, int64_t count, float *to)
{
	smalti_insert(deliver, task_group, (.x = x), .count = count, .sink = smalti_copy_floats, .user = to);
}

/* Adds to one value, as a file with another one would. */
static void change(struct smalti_task_group *task_group, const struct smalti_parameter *parameter,
		   const struct plan *plan)
{
	float *values = calloc((size_t)parameter->count, sizeof(*values));
	if (!values)
		abort();
	values[plan->value] = plan->change;
	struct smalti_tile *tile =
	    smalti_tile_upload(task_group, 1, parameter->count * (int64_t)sizeof(float), values);
	smalti_insert(add, task_group, (.x = tile, .y = parameter->value), .count = parameter->count);
	smalti_tile_release(tile);
	free(values);
}

static void insert(struct smalti_task_group *task_group, struct smalti_trained *trained,
		   const struct smalti_tokens *tokens, const struct plan *plan,
		   struct smalti_tile **gradients, struct outcome *o)
{
	float x[INPUT], text[TOKENS * 20], weights[INPUT];
	struct smalti_tile *out, *const *const sets[] = {gradients};
	fill(x, INPUT, 0.7);
	fill(text, TOKENS * 20, 1.9);
	fill(weights, INPUT, 0.3);
	const struct smalti_trained_sample sample = {
	    .x = smalti_tile_upload(task_group, 1, sizeof(x), x),
	    .height = SIDE,
	    .width = SIDE,
	    .tokens = tokens,
	    .text = smalti_tile_upload(task_group, TOKENS, 20 * sizeof(float), text),
	    .text_tokens = TOKENS,
	    .timestep = TIMESTEP,
	    .recomputed = plan->recomputed};
	struct smalti_tile *gout = smalti_tile_upload(task_group, 1, sizeof(weights), weights);
	smalti_trained_begin_step(trained, task_group);
	struct smalti_trained_pass *pass = smalti_trained_forward(trained, task_group, &sample, &out);
	smalti_trained_backward(pass, gout, sets, false);
	smalti_trained_end_step(trained);
	deliver(task_group, out, INPUT, o->out);
	struct smalti_tile *const mine[] = {sample.x, sample.text, gout, out};
	for (size_t i = 0; i < COUNT_OF(mine); i++)
		smalti_tile_release(mine[i]);
}

static struct outcome step(const struct plan *plan)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct outcome o = {.parameters = 0};
	struct smalti_tile *gradients[PARAMETERS] = {NULL};
	struct smalti_tokens tokens;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "toy", 0, &error);
	struct smalti_parameters *parameters =
	    smalti_parameters_new(task_group, &toy_model_trained, &config, &smalti_strategy_none, &error);
	SUCCEEDS(smalti_parameters_read(parameters, task_group, &config, weights(), true, &error), &error,
		 "read");
	o.parameters = parameters->count;
	for (int64_t i = 0; i < o.parameters; i++) {
		const struct smalti_parameter *p = &parameters->list[i];
		snprintf(o.name[i], sizeof(o.name[i]), "%s", p->name);
		o.count[i] = p->count;
		o.gradients[i] = calloc((size_t)p->count, sizeof(float));
		gradients[i] = smalti_parameter_tile(p, task_group);
		if (plan->change != 0 && plan->parameter == i)
			change(task_group, p, plan);
	}
	struct smalti_trained *trained = smalti_trained_new(&config, parameters, SMALTI_F32, &error);
	SUCCEEDS(trained ? 0 : -1, &error, "in training");
	SUCCEEDS(
	    smalti_tokens_cut(&tokens, &smalti_strategy_none, SIDE * SIDE / 4, SIDE / 2, plan->band, &error),
	    &error, "tokens");
	insert(task_group, trained, &tokens, plan, gradients, &o);
	for (int64_t i = 0; i < o.parameters; i++) {
		deliver(task_group, gradients[i], o.count[i], o.gradients[i]);
		smalti_tile_release(gradients[i]);
	}
	smalti_task_group_wait(task_group);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, "a step");
	smalti_trained_free(trained);
	smalti_parameters_free(parameters);
	smalti_tokens_free(&tokens);
	smalti_task_group_free(task_group);
	return o;
}

static void drop(struct outcome *o)
{
	for (int64_t i = 0; i < o->parameters; i++)
		free(o->gradients[i]);
}

static void generates(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	float x[INPUT], text[TOKENS * 20], v[INPUT], largest = 0;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "toy", 0, &error);
	struct smalti_denoiser *toy = toy_model_new(task_group, &config, weights(), SMALTI_F32, &error);
	SUCCEEDS(toy ? 0 : -1, &error, "the toy");
	fill(x, INPUT, 0.7);
	fill(text, TOKENS * 20, 1.9);
	SUCCEEDS(stage_dit(session, toy, x, SIDE, SIDE, TIMESTEP, text, TOKENS, 6, 8, v, &error), &error,
		 "a step of an image");
	struct outcome o = step(&(struct plan){.band = 16});
	for (int i = 0; i < INPUT; i++) {
		largest = fmaxf(largest, fabsf(v[i]));
		CHECK(fabsf(v[i] - o.out[i]) < 1e-5F, "as in training");
	}
	CHECK(largest > 0.01F, "not only zeros");
	drop(&o);
	smalti_denoiser_free(toy);
	smalti_task_group_free(task_group);
}

static double weighted(const struct outcome *o)
{
	float weights[INPUT];
	double sum = 0;
	fill(weights, INPUT, 0.3);
	for (int i = 0; i < INPUT; i++)
		sum += (double)weights[i] * (double)o->out[i];
	return sum;
}

/* A value of each parameter. */
static void has_gradients(void)
{
	const float difference = 0x1p-6F;
	struct outcome o = step(&(struct plan){.band = 16});
	CHECK(o.parameters == 25, "parameters");
	for (int64_t i = 0; i < o.parameters; i++) {
		struct plan plan = {
		    .band = 16, .parameter = i, .value = o.count[i] / 3, .change = difference};
		struct outcome more = step(&plan);
		plan.change = -difference;
		struct outcome less = step(&plan);
		const double slope = (weighted(&more) - weighted(&less)) / (2 * (double)difference);
		const double found = (double)o.gradients[i][plan.value];
		CHECK(fabs(slope - found) < 2e-3 + 2e-3 * fabs(slope), o.name[i]);
		drop(&more);
		drop(&less);
	}
	drop(&o);
}

static void recomputing_changes_no_bit(void)
{
	struct outcome kept = step(&(struct plan){.band = 6});
	for (int64_t recomputed = 1; recomputed <= 2; recomputed++) {
		struct outcome again = step(&(struct plan){.band = 6, .recomputed = recomputed});
		for (int64_t i = 0; i < kept.parameters; i++)
			CHECK(!memcmp(kept.gradients[i], again.gradients[i],
				      (size_t)kept.count[i] * sizeof(float)),
			      kept.name[i]);
		drop(&again);
	}
	drop(&kept);
}

static const struct test tests[] = {
    {"generates", generates},
    {"has gradients", has_gradients},
    {"recomputing changes no bit", recomputing_changes_no_bit},
};

TEST_PROGRAM()
{
	session = stage_session("lws", 2);
	const int status = test_main("toy model", tests, COUNT(tests));
	smalti_checkpoint_close(checkpoint);
	smalti_session_close(session, NULL);
	return status;
}
