/* SPDX-License-Identifier: Apache-2.0 */
#include "train_graph.h"
#include "base/json.h"
#include "bench/fill.h"
#include "codelets/codelets.h"
#include "golden.h"
#include "harness.h"
#include "rt/counting.h"
#include "rt/session.h"
#include "stage.h"

#include <math.h>
#include <stdio.h>

enum { CHANNELS = 4, TEXT_WIDTH = 32 };

static struct smalti_safetensors *golden;

static const struct smalti_tensor_view *tensor(const char *name, const char *part)
{
	char full[160];
	snprintf(full, sizeof(full), "%s.%s", name, part);
	return smalti_safetensors_find(golden, full);
}

const float *train_graph_floats(const char *name, const char *part)
{
	const struct smalti_tensor_view *view = tensor(name, part);
	return view ? view->data : NULL;
}

static double number(const cJSON *object, const char *key, int index)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
	return cJSON_IsArray(item) ? cJSON_GetArrayItem(item, index)->valuedouble : item->valuedouble;
}

static void read_samples(const cJSON *json, struct train_graph_case *c)
{
	for (int i = 0; i < c->samples; i++) {
		c->t[i] = (int64_t)number(json, "t", i);
		c->tokens[i] = (int64_t)number(json, "tokens", i);
		c->weight[i] = number(json, "weight", i);
		c->mse[i] = number(json, "mse", i);
		c->vb[i] = number(json, "vb", i);
	}
	c->norm = number(json, "global norm", 0);
}

struct train_graph_case train_graph_case(const char *name)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct train_graph_case c = {.name = name};
	if (!golden)
		golden = golden_open("train/gradients.safetensors");
	cJSON *file = smalti_json_read(test_data("train/gradients.json"), 1 << 20, &error);
	SUCCEEDS(file ? 0 : -1, &error, name);
	const cJSON *json = cJSON_GetObjectItemCaseSensitive(file, name);
	SUCCEEDS(smalti_transformer_config_parse(cJSON_GetObjectItemCaseSensitive(json, "config"), &c.config,
						 &error),
		 &error, name);
	const struct smalti_tensor_view *x0 = tensor(name, "x0"), *text = tensor(name, "text");
	c.samples = (int)x0->shape[0];
	c.height = x0->shape[2];
	c.width = x0->shape[3];
	c.text_rows = text->shape[1];
	c.x0 = x0->data;
	c.text = text->data;
	c.noise = train_graph_floats(name, "noise");
	c.sides = train_graph_floats(name, "size");
	c.ratio = train_graph_floats(name, "ratio");
	read_samples(json, &c);
	cJSON_Delete(file);
	return c;
}

static const struct smalti_strategy *strategy_of(const struct train_graph_plan *plan)
{
	return plan->strategy ? plan->strategy : &smalti_strategy_none;
}

int train_graph_replicas(const struct train_graph_plan *plan)
{
	return strategy_of(plan)->parts[SMALTI_AXIS_BRANCH];
}

static int parts_of(const struct train_graph_plan *plan)
{
	return smalti_trained_parts(strategy_of(plan));
}

void *train_graph_room(int64_t count, size_t size)
{
	void *memory = calloc((size_t)count, size);
	if (!memory)
		abort();
	return memory;
}

void train_graph_drop(struct train_graph_outcome *o)
{
	free(o->first);
	free(o->name);
	free(o->gradients);
	free(o->out);
	free(o->gx);
}

static int64_t count_of(const struct smalti_tensor_view *tensor)
{
	int64_t count = 1;
	for (int i = 0; i < tensor->rank; i++)
		count *= tensor->shape[i];
	return count;
}

static void deliver(struct smalti_task_group *task_group, struct smalti_tile *x, int64_t count, void *to)
{
	smalti_insert(deliver, task_group, (.x = x), .count = count, .sink = smalti_copy_floats, .user = to);
}

/* A tensor's values, the same however it is cut. */
static void fill_tensor(const struct smalti_parameters *parameters, const struct smalti_parameter *tensor,
			const struct train_graph_plan *plan, float *values)
{
	const struct smalti_fill fill =
	    smalti_fill_of(&parameters->inventory.tensors[tensor->tensor], (int)tensor->tensor);
	int64_t first = 0;
	for (int64_t i = 0; i < tensor->tensor; i++)
		first += count_of(&parameters->inventory.tensors[i]);
	smalti_fill(&fill, 0, tensor->count, values);
	if (plan->value >= first && plan->value < first + tensor->count)
		values[plan->value - first] += plan->change;
}

static void fill_parameters(struct smalti_parameters *parameters, struct smalti_task_group *task_group,
			    const struct train_graph_plan *plan)
{
	for (int64_t i = 0; i < parameters->count; i++) {
		const struct smalti_parameter *p = &parameters->list[i], tensor = smalti_parameter_whole(p);
		float *values = train_graph_room(tensor.count, sizeof(*values));
		fill_tensor(parameters, &tensor, plan, values);
		struct smalti_tile *whole =
		    smalti_tile_upload(task_group, 1, tensor.count * (int64_t)sizeof(float), values);
		smalti_task_group_place(task_group, 0);
		smalti_parameter_take(p, task_group, whole);
		smalti_task_group_place(task_group, SMALTI_ANYWHERE);
		smalti_tile_release(whole);
		free(values);
	}
}

/* Forward, loss and backward of a sample. */
static void insert_sample(struct smalti_task_group *task_group, struct smalti_trained *train,
			  const struct train_graph_case *c, const struct train_graph_plan *plan,
			  const struct smalti_tokens *tokens, int i,
			  struct smalti_tile *const *const *gradients, struct train_graph_outcome *o)
{
	const int64_t count = CHANNELS * c->height * c->width;
	float *noisy = train_graph_room(count, sizeof(*noisy));
	smalti_add_noise(c->t[i], count, c->x0 + i * count, c->noise + i * count, noisy);
	struct smalti_tile *x0 = smalti_tile_upload(task_group, 1, count * 4, c->x0 + i * count);
	struct smalti_tile *noise = smalti_tile_upload(task_group, 1, count * 4, c->noise + i * count);
	struct smalti_tile *gx = smalti_tile_new(task_group, 1, count * 4);
	struct smalti_trained_sample sample = {
	    .gx = plan->forget ? NULL : gx,
	    .x = smalti_tile_upload(task_group, 1, count * 4, noisy),
	    .height = c->height,
	    .width = c->width,
	    .tokens = tokens,
	    .replica = i % train_graph_replicas(plan),
	    .text = smalti_tile_upload(task_group, c->tokens[i], TEXT_WIDTH * 4,
				       c->text + i * c->text_rows * TEXT_WIDTH),
	    .text_tokens = c->tokens[i],
	    .timestep = c->t[i],
	    .sides = {c->sides ? c->sides[2 * i] : 0, c->sides ? c->sides[2 * i + 1] : 0},
	    .ratio = c->ratio ? c->ratio[i] : 0,
	    .recomputed = plan->recomputed,
	    .bounded = plan->bounded,
	};
	free(noisy);
	struct smalti_tile *out, *gout = smalti_tile_new(task_group, 1, 2 * count * 4);
	struct smalti_tile *parts = smalti_tile_new(task_group, 1, sizeof(struct smalti_loss_parts));
	struct smalti_trained_pass *pass = smalti_trained_forward(train, task_group, &sample, &out);
	smalti_insert(diffusion_loss, task_group,
		      (.x0 = x0, .noise = noise, .output = out, .gradient = gout, .parts = parts),
		      .count = count, .t = c->t[i], .has_variance = true, .learns_variance = true,
		      .weight = c->weight[i], .scale = plan->scale / c->samples);
	struct smalti_tile *given =
	    plan->gout ? smalti_tile_upload(task_group, 1, 2 * count * 4, plan->gout + 2 * count * i) : gout;
	smalti_trained_backward(pass, given, gradients + sample.replica * parts_of(plan),
				i >= train_graph_replicas(plan));
	if (given != gout)
		smalti_tile_release(given);
	deliver(task_group, out, 2 * count, o->out + 2 * count * i);
	if (!plan->forget)
		deliver(task_group, gx, count, o->gx + count * i);
	deliver(task_group, parts, (int64_t)(sizeof(struct smalti_loss_parts) / sizeof(float)), &o->parts[i]);
	struct smalti_tile *const mine[] = {x0, noise, sample.x, sample.text, out, gout, gx, parts};
	for (size_t t = 0; t < COUNT_OF(mine); t++)
		smalti_tile_release(mine[t]);
}

static struct train_graph_outcome outcome_of(const struct train_graph_case *c,
					     const struct smalti_parameters *parameters)
{
	const struct smalti_inventory *inventory = &parameters->inventory;
	struct train_graph_outcome o = {.parameters = inventory->count,
					.latent = c->samples * CHANNELS * c->height * c->width};
	o.first = train_graph_room(o.parameters + 1, sizeof(*o.first));
	o.name = train_graph_room(o.parameters, sizeof(*o.name));
	for (int64_t i = 0; i < o.parameters; i++) {
		snprintf(o.name[i], sizeof(o.name[i]), "%s", inventory->tensors[i].name);
		o.first[i + 1] = o.first[i] + count_of(&inventory->tensors[i]);
	}
	o.values = o.first[o.parameters];
	o.gradients = train_graph_room(o.values, sizeof(float));
	o.out = train_graph_room(2 * o.latent, sizeof(float));
	o.gx = train_graph_room(o.latent, sizeof(float));
	return o;
}

/* Of each replica and in it each part, a tile for each parameter that it has something of. */
static struct smalti_tile ***make_gradients(struct smalti_task_group *task_group,
					    const struct train_graph_plan *plan,
					    const struct smalti_trained *train,
					    const struct smalti_parameters *parameters)
{
	const int sets = train_graph_replicas(plan) * parts_of(plan);
	struct smalti_tile ***gradients = train_graph_room(sets, sizeof(*gradients));
	for (int set = 0; set < sets; set++) {
		gradients[set] = train_graph_room(parameters->count, sizeof(**gradients));
		for (int64_t i = 0; i < parameters->count; i++)
			if (smalti_trained_gives(train, set % parts_of(plan), i))
				gradients[set][i] = smalti_parameter_tile(&parameters->list[i], task_group);
	}
	return gradients;
}

/* A parameter's gradient on its way into its tensor's. */
struct landing {
	struct smalti_parameter_layout layout;
	float *to;
};

static int land(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)count;
	(void)error;
	const struct landing *landing = user;
	const struct smalti_parameter_layout *l = &landing->layout;
	for (int64_t row = 0; row < l->rows; row++)
		memcpy(landing->to + row * l->in + l->first, values + row * l->columns,
		       (size_t)l->columns * sizeof(*values));
	return 0;
}

/* The sum over the sets that samples were added to, in their order; NULL: there is nothing. */
static struct smalti_tile *sum_sets(struct smalti_task_group *task_group, const struct train_graph_plan *plan,
				    int samples, struct smalti_tile ***gradients, int64_t i, int64_t count)
{
	struct smalti_tile *sum = NULL;
	for (int set = 0; set < train_graph_replicas(plan) * parts_of(plan); set++) {
		struct smalti_tile *own = set / parts_of(plan) < samples ? gradients[set][i] : NULL;
		if (sum && own)
			smalti_insert(add, task_group, (.x = own, .y = sum), .count = count);
		sum = sum ? sum : own;
	}
	return sum;
}

/* All sets' gradients out; the landings are to be freed when the tasks have ended. */
static struct landing *take_gradients(struct smalti_task_group *task_group,
				      const struct train_graph_plan *plan, int samples,
				      const struct smalti_parameters *parameters,
				      struct smalti_tile ***gradients, struct train_graph_outcome *o)
{
	const int sets = train_graph_replicas(plan) * parts_of(plan);
	struct landing *landings = train_graph_room(parameters->count, sizeof(*landings));
	for (int64_t i = 0; i < parameters->count; i++) {
		const struct smalti_parameter *p = &parameters->list[i];
		struct smalti_tile *sum = sum_sets(task_group, plan, samples, gradients, i, p->count);
		landings[i] =
		    (struct landing){smalti_parameter_layout(p), o->gradients + o->first[p->tensor]};
		smalti_insert(deliver, task_group, (.x = sum), .count = p->count, .sink = land,
			      .user = &landings[i]);
		for (int set = 0; set < sets; set++)
			smalti_tile_release(gradients[set][i]);
	}
	for (int set = 0; set < sets; set++)
		free(gradients[set]);
	free(gradients);
	return landings;
}

struct train_graph_outcome train_graph_step(struct smalti_session *on, const struct train_graph_case *c,
					    const struct train_graph_plan *plan)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t patches = c->height * c->width / 4;
	struct smalti_tokens tokens;
	struct smalti_task_group *task_group = smalti_task_group_new(on, "train", 0, &error);
	task_group->grain = plan->grain;
	struct smalti_parameters *parameters =
	    smalti_parameters_new(task_group, &smalti_dit_trained, &c->config, strategy_of(plan), &error);
	SUCCEEDS(parameters ? 0 : -1, &error, c->name);
	fill_parameters(parameters, task_group, plan);
	struct smalti_trained *train = smalti_trained_new(&c->config, parameters, plan->compute, &error);
	SUCCEEDS(train ? 0 : -1, &error, c->name);
	SUCCEEDS(smalti_tokens_cut(&tokens, strategy_of(plan), patches, c->width / 2,
				   plan->band ? plan->band : patches, &error),
		 &error, c->name);
	struct train_graph_outcome o = outcome_of(c, parameters);
	struct smalti_tile ***gradients = make_gradients(task_group, plan, train, parameters);
	smalti_trained_begin_step(train, task_group);
	if (on->counting) {
		o.around = (int64_t)on->counting->all.held[SMALTI_COUNTED_OWN];
		smalti_counting_mark(on->counting);
	}
	for (int i = 0; i < c->samples; i++)
		insert_sample(task_group, train, c, plan, &tokens, i,
			      (struct smalti_tile *const *const *)(uintptr_t)gradients, &o);
	smalti_trained_end_step(train);
	struct landing *landings = take_gradients(task_group, plan, c->samples, parameters, gradients, &o);
	smalti_trained_free(train);
	smalti_parameters_free(parameters);
	smalti_task_group_wait(task_group);
	free(landings);
	SUCCEEDS(smalti_task_group_status(task_group, &error), &error, c->name);
	smalti_task_group_free(task_group);
	smalti_tokens_free(&tokens);
	for (int64_t i = 0; i < o.values; i++)
		o.gradients[i] /= (float)plan->scale;
	return o;
}

bool train_graph_is_rounding(const char *name)
{
	const char *end = strstr(name, "to_k.bias");
	return end && !end[strlen("to_k.bias")];
}

double train_graph_distance(const struct train_graph_outcome *o, const float *a, const float *b)
{
	double sum = 0;
	for (int64_t p = 0; p < o->parameters; p++)
		for (int64_t i = o->first[p]; i < o->first[p + 1] && !train_graph_is_rounding(o->name[p]);
		     i++) {
			const double difference = (double)a[i] - (b ? (double)b[i] : 0);
			sum += difference * difference;
		}
	return sqrt(sum);
}

void train_graph_losses(const struct train_graph_case *c, const struct train_graph_outcome *o)
{
	for (int i = 0; i < c->samples; i++) {
		CHECK(fabs(o->parts[i].mse / c->mse[i] - 1) < 1e-5, c->name);
		CHECK(fabs(o->parts[i].vb / c->vb[i] - 1) < 1e-5, c->name);
	}
	CHECK(fabs(train_graph_distance(o, o->gradients, NULL) / c->norm - 1) < 2e-5, "global norm");
}

int train_graph_gradients(const struct train_graph_case *c, const struct train_graph_outcome *o)
{
	int compared = 0;
	for (int64_t p = 0; p < o->parameters; p++) {
		char part[128], what[160];
		const float *found = o->gradients + o->first[p];
		const int64_t count = o->first[p + 1] - o->first[p];
		snprintf(part, sizeof(part), "grad.%s", o->name[p]);
		snprintf(what, sizeof(what), "%s, %s", c->name, o->name[p]);
		const float *expected = train_graph_floats(c->name, part);
		if (train_graph_is_rounding(o->name[p]))
			CHECK(test_max_abs(found, count) <= 1e-7, what);
		if (!expected)
			continue;
		golden_near(found, expected, count, 1e-4, what);
		compared++;
	}
	return compared;
}

bool train_graph_same_bits(const struct train_graph_outcome *a, const struct train_graph_outcome *b)
{
	return !memcmp(a->gradients, b->gradients, (size_t)a->values * sizeof(float)) &&
	       !memcmp(a->out, b->out, (size_t)(2 * a->latent) * sizeof(float)) &&
	       !memcmp(a->gx, b->gx, (size_t)a->latent * sizeof(float));
}

void train_graph_near(const struct train_graph_case *c, const struct train_graph_outcome *whole,
		      const struct train_graph_outcome *o, const char *what)
{
	const double all = train_graph_distance(o, o->gradients, whole->gradients) /
			   train_graph_distance(whole, whole->gradients, NULL);
	char line[160];
	snprintf(line, sizeof(line), "%s, %s: gradients off by %.1e of their norm", c->name, what, all);
	printf("\n    %s", line);
	CHECK(all <= 1e-5, line);
	golden_near(o->out, whole->out, 2 * o->latent, 1e-5, what);
	for (int64_t p = 0; p < o->parameters; p++)
		if (!train_graph_is_rounding(o->name[p]))
			golden_near(o->gradients + o->first[p], whole->gradients + o->first[p],
				    o->first[p + 1] - o->first[p], 1e-5, o->name[p]);
}

const struct train_graph_scheduler train_graph_schedulers[TRAIN_GRAPH_SCHEDULERS] = {
    {"lws", 1}, {"lws", 2}, {"dmda", 2}, {"eager", 2}};

void train_graph_close(void)
{
	smalti_safetensors_close(golden);
	golden = NULL;
}
