/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/denoising_count.h"
#include "codelets/codelets.h"
#include "rt/counting.h"
#include "rt/session.h"

enum { MAX_PASSES = 3, LATENT_PIXELS = 8 };

/* What is counted, and for which places. */
struct question {
	const struct smalti_denoising *denoising;
	struct smalti_strategy strategy; /* owns nothing */
	struct smalti_tokens tokens;
	int64_t passes; /* the last is like all later ones */
	bool devices;
	int places;
};

/* A count under way. */
struct counting {
	const struct question *of;
	struct smalti_session *session;
	struct smalti_task_group *task_group;
	struct smalti_inventory inventory;
	struct smalti_checkpoint *checkpoint;
	struct smalti_denoiser *denoiser; /* with few layers */
	struct smalti_grid x;
	struct smalti_cross_cache *caches[SMALTI_DENOISER_MAX_BRANCHES];
	struct smalti_conditions *conditions;
};

static int open_counting(struct counting *c, int64_t layers, struct smalti_error *error)
{
	const struct smalti_denoiser *of = c->of->denoising->denoiser;
	if (!(c->session = smalti_session_open_counting(c->of->places, c->of->devices, error)) ||
	    !(c->task_group = smalti_task_group_new(c->session, "count", 0, error)) ||
	    !(c->checkpoint = smalti_checkpoint_record(&c->inventory, SMALTI_F32, error)))
		return -1;
	c->checkpoint->like = of->weights ? of->weights->checkpoint : NULL;
	c->checkpoint->wants_w8a8 = c->checkpoint->like && c->checkpoint->like->wants_w8a8;
	c->denoiser = of->functions->sketch(of, c->task_group, c->checkpoint, layers, error);
	return c->denoiser ? 0 : -1;
}

static void close_counting(struct counting *c)
{
	smalti_denoiser_free(c->denoiser);
	smalti_checkpoint_close(c->checkpoint);
	smalti_inventory_free(&c->inventory);
	smalti_task_group_free(c->task_group);
	smalti_session_close(c->session, NULL);
}

/* Inserts what all passes read. */
static void begin(struct counting *c)
{
	const struct smalti_denoising *d = c->of->denoising;
	const struct smalti_denoiser_functions *f = c->denoiser->functions;
	const int64_t patch = c->denoiser->patch_size, size = sizeof(float);
	const int64_t row = patch * patch * c->denoiser->in_channels * size;
	static const float timesteps[MAX_PASSES];
	for (int k = 0; k < d->branches; k++) {
		struct smalti_tile *text =
		    smalti_tile_new(c->task_group, d->prompt_tokens[k], c->denoiser->text_width * size);
		c->caches[k] = f->cross_cache(c->denoiser, c->task_group, text, d->prompt_tokens[k]);
		smalti_tile_release(text);
	}
	c->conditions = f->conditions(c->denoiser, c->task_group, &c->of->tokens, timesteps, c->of->passes,
				      d->tokens / d->columns * patch, d->columns * patch, LATENT_PIXELS);
	c->x = smalti_grid_new(c->task_group, &c->of->tokens.partition, 1, row);
	for (int64_t b = 0; b < c->of->tokens.partition.bands; b++)
		smalti_insert(clear, c->task_group, (.y = smalti_grid_tile(&c->x, b)),
			      .bytes = smalti_partition_rows(&c->of->tokens.partition, b) * row);
}

static void end(struct counting *c)
{
	const struct smalti_denoiser_functions *f = c->denoiser->functions;
	for (int k = 0; k < c->of->denoising->branches; k++)
		f->release_cross_cache(c->caches[k]);
	f->release_conditions(c->conditions);
	smalti_grid_release(&c->x);
}

/* Inserts a forward and the sampler's step behind it. */
static void insert_pass(struct counting *c, int64_t pass)
{
	const struct smalti_denoiser *d = c->denoiser;
	const bool guided = c->of->denoising->branches == 2;
	struct smalti_grid v[SMALTI_DENOISER_MAX_BRANCHES];
	d->functions->forward(c->denoiser, c->task_group, c->conditions, pass, 1, &c->x, c->caches,
			      c->of->denoising->branches, NULL, v);
	for (int64_t b = 0; b < c->of->tokens.partition.bands; b++)
		smalti_insert(sampler_step, c->task_group,
			      (.conditional = smalti_grid_tile(&v[guided], b),
			       .unconditional = guided ? smalti_grid_tile(&v[0], b) : NULL,
			       .x = smalti_grid_tile(&c->x, b)),
			      .rows = smalti_partition_rows(&c->of->tokens.partition, b),
			      .channels = d->in_channels, .out_channels = d->out_channels,
			      .patch = d->patch_size);
	for (int k = 0; k < c->of->denoising->branches; k++)
		smalti_grid_release(&v[k]);
}

/* A load is an array of numbers. */
enum { NUMBERS = sizeof(struct smalti_load) / sizeof(double) };

/* Adds factor · other. */
static void add(struct smalti_load *load, double factor, const struct smalti_load *other)
{
	double *to = (double *)load;
	const double *from = (const double *)other;
	for (int i = 0; i < NUMBERS; i++)
		to[i] += factor * from[i];
}

/* Returns the load that was counted so far; a band stands for as many tasks as its rows need. */
static struct smalti_load load_of(const struct smalti_counted *counted, double tasks)
{
	struct smalti_load load = {.flops = counted->flops,
				   .attention = counted->foreign_attention,
				   .blocks = counted->blocks,
				   .operations = tasks * counted->operations,
				   .weights = counted->weights,
				   .activations = counted->max[SMALTI_COUNTED_OWN],
				   .buffers = counted->max[SMALTI_COUNTED_FOREIGN]};
	memcpy(load.transfers, counted->transfers, sizeof(load.transfers));
	return load;
}

/* Returns the tokens of a band: those of a task, or more, so that a part has two bands at most. */
static int64_t band_of(const struct smalti_denoising *d, const struct smalti_strategy *strategy)
{
	enum { BANDS = 2 };
	const int parts = strategy->parts[SMALTI_AXIS_SHARD] * strategy->parts[SMALTI_AXIS_RANK];
	return smalti_max(d->band_tokens, (d->tokens - 1) / (BANDS * parts) + 1);
}

/* Returns the load that was counted at a place so far; for a strategy that places nothing, of all tasks. */
static struct smalti_load load_at(const struct counting *c, int place)
{
	const struct smalti_counting *counting = c->session->counting;
	const struct smalti_partition *bands = &c->of->tokens.partition;
	const int64_t rows = smalti_partition_rows(bands, 0);
	const int64_t tasks = (rows - 1) / c->of->denoising->band_tokens + 1;
	return load_of(c->of->strategy.count > 0 ? &counting->at[place] : &counting->all, (double)tasks);
}

/* Returns what the last pass adds to a load, but all bytes that stay at a place. */
static struct smalti_load last_pass(struct smalti_load load, struct smalti_load before)
{
	before.weights = before.activations = before.buffers = 0;
	add(&load, -1, &before);
	return load;
}

static void count_passes(struct counting *c, struct smalti_load *loads)
{
	const int64_t last = c->of->passes - 1;
	begin(c);
	for (int64_t pass = 0; pass < last; pass++)
		insert_pass(c, pass);
	for (int i = 0; i < c->of->places; i++)
		loads[i] = load_at(c, i);
	insert_pass(c, last);
	for (int i = 0; i < c->of->places; i++)
		loads[i] = last_pass(load_at(c, i), loads[i]);
	end(c);
}

static int count(const struct question *of, int64_t layers, struct smalti_load *loads,
		 struct smalti_error *error)
{
	struct counting c = {.of = of};
	int status = open_counting(&c, layers, error);
	if (status == 0) {
		count_passes(&c, loads);
		status = smalti_task_group_status(c.task_group, error);
	}
	close_counting(&c);
	return status;
}

/* Counts two layers and three layers, and takes each further layer to be like the third. That is exact if no
 * stages cut the layers. */
static int count_few(const struct question *of, struct smalti_load *loads, struct smalti_error *error)
{
	enum { FEW = 2 };
	const double others = (double)(of->denoising->denoiser->layers - FEW);
	SCOPED(free) struct smalti_load *more = smalti_calloc(of->places, sizeof(*more), error);
	if (!more || count(of, FEW, loads, error) < 0 || count(of, FEW + 1, more, error) < 0)
		return -1;
	for (int i = 0; i < of->places; i++) {
		add(&more[i], -1, &loads[i]);
		add(&loads[i], others, &more[i]);
	}
	return 0;
}

int smalti_denoising_loads(const struct smalti_denoising *denoising, const struct smalti_strategy *strategy,
			   bool devices, int places, struct smalti_load *loads, struct smalti_error *error)
{
	struct question of = {
	    .denoising = denoising, .strategy = *strategy, .devices = devices, .places = places};
	of.strategy.warmup = 1;
	of.passes = smalti_strategy_keeps(strategy) ? MAX_PASSES : MAX_PASSES - 1;
	if (smalti_tokens_cut(&of.tokens, &of.strategy, denoising->tokens, denoising->columns,
			      band_of(denoising, strategy), error) < 0)
		return -1;
	const int64_t layers = denoising->denoiser->layers;
	const int status = strategy->parts[SMALTI_AXIS_STAGE] > 1 || layers == 1
			       ? count(&of, layers, loads, error)
			       : count_few(&of, loads, error);
	smalti_tokens_free(&of.tokens);
	return status;
}
