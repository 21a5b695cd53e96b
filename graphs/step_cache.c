/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/step_cache.h"
#include "codelets/codelets.h"
#include "graphs/denoiser.h"

#include <math.h>

enum { GAPS = SMALTI_STEP_GAPS };

/* The sums of the operation `distances`. */
enum { ABSOLUTE_DIFFERENCE, ABSOLUTE, SQUARED_DIFFERENCE, SQUARED, SUMS };

/* What is measured in a call: its change against that of an earlier one; a guess against its output; its
 * output. */
enum { CHANGE, GUESS = GAPS, OUTPUT = 2 * GAPS, MEASURES };

/* Holds what a later call compares itself with. */
struct full_call {
	int64_t step;
	struct smalti_grid change, rest;
};

struct branch {
	struct smalti_grid change; /* of this call; −z⁰ until z¹ is there */
	struct smalti_grid first;  /* −z¹, if the blocks are computed */
	struct smalti_grid rest;   /* likewise */
	struct full_call full[GAPS];
	int fulls;   /* newest first */
	double norm; /* of the newest one's output */
	double change_distance[GAPS];
	float *rows[MEASURES]; /* [tokens, SUMS], where tasks deliver them */
	bool measured[MEASURES];
	double sums[MEASURES][SUMS];
};

struct smalti_step_cache {
	struct smalti_task_group *task_group;
	struct smalti_step_cache_arguments a;
	int64_t step; /* of the last decision; -1: none */
	struct branch branch[SMALTI_DENOISER_MAX_BRANCHES];
	struct smalti_step_call *calls; /* [steps, branches] */
	smalti_step_ratios *measured;   /* [steps] */
};

/* Returns how many calls in full are remembered. */
static int remembered(enum smalti_step_cache_kind kind)
{
	return kind == SMALTI_STEP_CACHE_CALIBRATION ? GAPS : 1;
}

int64_t smalti_step_cache_bytes(enum smalti_step_cache_kind kind, int64_t tokens, int64_t width, int branches)
{
	const int64_t grids = 2 * remembered(kind) + 3, values = grids * width + (MEASURES + 1) * SUMS;
	return kind == SMALTI_STEP_CACHE_NONE ? 0 : branches * tokens * values * (int64_t)sizeof(float);
}

/* Grids of the stream's shape. Their tiles have no owner at first: they are made where the stream is. */

static void go_to_owners(const struct smalti_step_cache *c)
{
	smalti_task_group_place(c->task_group, SMALTI_ANYWHERE);
}

static struct smalti_grid new_grid(const struct smalti_step_cache *c)
{
	const struct smalti_partition *bands = c->a.bands;
	struct smalti_grid grid = {bands,
				   smalti_task_group_calloc(c->task_group, bands->bands, sizeof(*grid.tile))};
	for (int64_t b = 0; grid.tile && b < bands->bands; b++)
		grid.tile[b] = smalti_tile_new(c->task_group, smalti_partition_rows(bands, b),
					       c->a.width * (int64_t)sizeof(float));
	return grid;
}

/* Inserts y = −x, of a band. */
static void negate(const struct smalti_step_cache *c, int64_t band, struct smalti_tile *x,
		   struct smalti_tile *y)
{
	smalti_insert(scale, c->task_group, (.x = x, .y = y),
		      .count = smalti_partition_rows(c->a.bands, band) * c->a.width, .factor = -1);
}

/* Inserts y += x, of a band. */
static void add(const struct smalti_step_cache *c, int64_t band, struct smalti_tile *x, struct smalti_tile *y)
{
	smalti_insert(add_columns, c->task_group, (.x = x, .y = y),
		      .rows = smalti_partition_rows(c->a.bands, band), .columns = c->a.width,
		      .stride = c->a.width, .first = 0);
}

/* Measures */

static struct distances_arguments columns_of(const struct smalti_step_cache *c, int measure)
{
	const struct smalti_step_cache_arguments *a = &c->a;
	return measure < GUESS ? (struct distances_arguments){0, a->width, a->width, a->width}
			       : (struct distances_arguments){0, a->output, a->channels, a->noises};
}

/* Has two grids compared. The sums are there after the next wait. */
static void measure(struct smalti_step_cache *c, int branch, int measure, const struct smalti_grid *x,
		    const struct smalti_grid *y)
{
	struct branch *k = &c->branch[branch];
	struct distances_arguments a = columns_of(c, measure);
	k->measured[measure] = true;
	for (int64_t b = 0; b < c->a.bands->bands; b++) {
		a.rows = smalti_partition_rows(c->a.bands, b);
		struct smalti_tile *sums =
		    smalti_tile_new(c->task_group, a.rows, SUMS * (int64_t)sizeof(float));
		const struct distances_buffers buffers = {
		    .x = smalti_grid_tile(x, b), .y = smalti_grid_tile(y, b), .sums = sums};
		smalti_insert_distances(c->task_group, &buffers, &a);
		smalti_insert(deliver, c->task_group, (.x = sums), .count = a.rows * SUMS,
			      .sink = smalti_copy_floats,
			      .user = k->rows[measure] + c->a.bands->first[b] * SUMS);
		smalti_tile_release(sums);
	}
}

/* Adds up what was delivered, in the order of the tokens. */
static void add_up(const struct smalti_step_cache *c, struct branch *k)
{
	const int64_t tokens = c->a.bands->first[c->a.bands->bands];
	for (int m = 0; m < MEASURES; m++) {
		if (!k->measured[m])
			continue;
		memset(k->sums[m], 0, sizeof(k->sums[m]));
		for (int64_t i = 0; i < tokens * SUMS; i++)
			k->sums[m][i % SUMS] += (double)k->rows[m][i];
		k->measured[m] = false;
	}
}

static double distance(const struct branch *k, int measure)
{
	return sqrt(k->sums[measure][SQUARED_DIFFERENCE]);
}

static struct smalti_step_call *call_of(const struct smalti_step_cache *c, int branch)
{
	return &c->calls[c->step * c->a.branches + branch];
}

/* Notes what the outputs of the last step tell. */
static void note_outputs(struct smalti_step_cache *c, int branch)
{
	struct branch *k = &c->branch[branch];
	struct smalti_step_call *call = call_of(c, branch);
	if (!call->skipped)
		k->norm = sqrt(k->sums[OUTPUT][SQUARED]);
	else if (c->a.rule.checks)
		call->error = distance(k, GUESS) / k->norm;
	if (c->a.rule.kind != SMALTI_STEP_CACHE_CALIBRATION)
		return;
	for (int g = 0; g < smalti_min(c->step, GAPS); g++) {
		double *ratio = &c->measured[c->step][g];
		*ratio = fmax(*ratio, distance(k, GUESS + g) / k->change_distance[g]);
	}
}

static void wait_for_tasks(const struct smalti_step_cache *c)
{
	if (c->a.wait)
		c->a.wait(c->a.user);
	else
		smalti_task_group_wait(c->task_group);
}

static void wait_for_measures(struct smalti_step_cache *c)
{
	wait_for_tasks(c);
	for (int k = 0; k < c->a.branches; k++) {
		add_up(c, &c->branch[k]);
		if (c->step >= 0)
			note_outputs(c, k);
	}
}

/* Returns what is compared with the threshold; NAN: the call is not skipped. */
static double value_of(const struct smalti_step_cache *c, const struct branch *k)
{
	const struct smalti_step_cache_rule *rule = &c->a.rule;
	const int64_t gap = k->fulls ? c->step - k->full[0].step : 0;
	if (gap == 0)
		return NAN;
	if (rule->kind == SMALTI_STEP_CACHE_FIRST_BLOCK)
		return k->sums[CHANGE][ABSOLUTE_DIFFERENCE] / k->sums[CHANGE][ABSOLUTE];
	if (rule->kind != SMALTI_STEP_CACHE_BOUND || gap > GAPS || c->step == c->a.steps - 1)
		return NAN;
	const double ratio = rule->ratios[c->step][gap - 1];
	return ratio > 0 ? rule->factor * ratio * distance(k, CHANGE) / k->norm : NAN;
}

static void decide(struct smalti_step_cache *c, int branch)
{
	struct branch *k = &c->branch[branch];
	struct smalti_step_call *call = call_of(c, branch);
	const double value = value_of(c, k);
	*call = (struct smalti_step_call){value <= c->a.rule.threshold, value, NAN};
	for (int g = 0; g < k->fulls; g++)
		k->change_distance[g] = distance(k, CHANGE + g);
}

/* A call */

void smalti_step_cache_begin(struct smalti_step_cache *c, int branch, const struct smalti_value *z)
{
	struct branch *k = &c->branch[branch];
	go_to_owners(c);
	k->change = new_grid(c);
	for (int64_t b = 0; b < c->a.bands->bands; b++)
		negate(c, b, z[b].tile, smalti_grid_tile(&k->change, b));
}

/* Has the change of a call compared with those that are remembered. */
static void measure_change(struct smalti_step_cache *c, int branch, const struct smalti_value *z)
{
	struct branch *k = &c->branch[branch];
	for (int64_t b = 0; b < c->a.bands->bands; b++)
		add(c, b, z[b].tile, smalti_grid_tile(&k->change, b));
	for (int g = 0; g < k->fulls; g++)
		measure(c, branch, CHANGE + g, &k->change, &k->full[g].change);
}

void smalti_step_cache_decide(struct smalti_step_cache *c, int64_t step, struct smalti_value *const *z)
{
	go_to_owners(c);
	for (int k = 0; k < c->a.branches; k++)
		measure_change(c, k, z[k]);
	wait_for_measures(c);
	c->step = step;
	for (int k = 0; k < c->a.branches; k++) {
		decide(c, k);
		if (!smalti_step_cache_computes(c, k))
			continue;
		c->branch[k].first = new_grid(c);
		for (int64_t b = 0; b < c->a.bands->bands; b++)
			negate(c, b, z[k][b].tile, smalti_grid_tile(&c->branch[k].first, b));
	}
}

bool smalti_step_cache_skips(const struct smalti_step_cache *c, int branch)
{
	return call_of(c, branch)->skipped;
}

bool smalti_step_cache_computes(const struct smalti_step_cache *c, int branch)
{
	return !smalti_step_cache_skips(c, branch) || c->a.rule.checks;
}

void smalti_step_cache_computed(struct smalti_step_cache *c, int branch, const struct smalti_value *z,
				const struct smalti_grid *output)
{
	struct branch *k = &c->branch[branch];
	if (call_of(c, branch)->skipped)
		return;
	go_to_owners(c);
	k->rest = new_grid(c);
	for (int64_t b = 0; b < c->a.bands->bands; b++)
		smalti_insert(
		    gated_sum, c->task_group,
		    (.x = z[b].tile, .z = smalti_grid_tile(&k->first, b), .y = smalti_grid_tile(&k->rest, b)),
		    .rows = z[b].rows, .dim = z[b].columns);
	if (c->step < c->a.steps - 1) /* else nobody asks */
		measure(c, branch, OUTPUT, output, output);
}

int smalti_step_cache_guesses(const struct smalti_step_cache *c, int branch)
{
	if (c->a.rule.kind == SMALTI_STEP_CACHE_CALIBRATION)
		return c->branch[branch].fulls;
	return smalti_step_cache_skips(c, branch) ? 1 : 0;
}

void smalti_step_cache_guess(struct smalti_step_cache *c, int branch, int guess, struct smalti_value *z)
{
	const struct branch *k = &c->branch[branch];
	go_to_owners(c);
	for (int64_t b = 0; b < c->a.bands->bands; b++) {
		if (smalti_step_cache_computes(c, branch))
			negate(c, b, smalti_grid_tile(&k->first, b), z[b].tile);
		add(c, b, smalti_grid_tile(&k->full[guess].rest, b), z[b].tile);
	}
}

void smalti_step_cache_compare(struct smalti_step_cache *c, int branch, int guess,
			       const struct smalti_grid *guessed, const struct smalti_grid *output)
{
	go_to_owners(c);
	measure(c, branch, GUESS + guess, guessed, output);
}

static void release_full(struct full_call *full)
{
	smalti_grid_release(&full->change);
	smalti_grid_release(&full->rest);
}

/* Remembers a call in full. */
static void remember(const struct smalti_step_cache *c, struct branch *k)
{
	const int most = remembered(c->a.rule.kind);
	if (k->fulls == most)
		release_full(&k->full[most - 1]);
	else
		k->fulls++;
	memmove(&k->full[1], &k->full[0], (size_t)(k->fulls - 1) * sizeof(k->full[0]));
	k->full[0] = (struct full_call){c->step, k->change, k->rest};
	k->change = k->rest = (struct smalti_grid){NULL, NULL};
}

void smalti_step_cache_end(struct smalti_step_cache *c, int branch)
{
	struct branch *k = &c->branch[branch];
	if (!call_of(c, branch)->skipped)
		remember(c, k);
	smalti_grid_release(&k->change);
	smalti_grid_release(&k->first);
}

/* The cache */

static bool allocate(struct smalti_step_cache *c, struct smalti_error *error)
{
	const int64_t tokens = c->a.bands->first[c->a.bands->bands];
	c->calls = smalti_calloc(c->a.steps * c->a.branches, sizeof(*c->calls), error);
	c->measured = smalti_calloc(c->a.steps, sizeof(*c->measured), error);
	bool ok = c->calls && c->measured;
	for (int k = 0; k < c->a.branches; k++)
		for (int m = 0; m < MEASURES; m++) {
			float **rows = &c->branch[k].rows[m];
			*rows = smalti_calloc(tokens, SUMS * (int64_t)sizeof(**rows), error);
			ok = ok && *rows;
		}
	return ok;
}

struct smalti_step_cache *smalti_step_cache_new(struct smalti_task_group *task_group,
						const struct smalti_step_cache_arguments *arguments)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_step_cache *c = smalti_calloc(1, sizeof(*c), &error);
	if (c) {
		*c = (struct smalti_step_cache){.task_group = task_group, .a = *arguments, .step = -1};
		if (allocate(c, &error))
			return c;
	}
	smalti_task_group_break(task_group, &error);
	smalti_step_cache_free(c);
	return NULL;
}

const struct smalti_step_call *smalti_step_cache_calls(const struct smalti_step_cache *c)
{
	return c->calls;
}

const smalti_step_ratios *smalti_step_cache_measured(const struct smalti_step_cache *c)
{
	return c->measured;
}

static bool any_measured(const struct smalti_step_cache *c)
{
	bool any = false;
	for (int k = 0; k < c->a.branches; k++)
		for (int m = 0; m < MEASURES; m++)
			any = any || c->branch[k].measured[m];
	return any;
}

void smalti_step_cache_settle(struct smalti_step_cache *c)
{
	if (any_measured(c))
		wait_for_measures(c);
}

void smalti_step_cache_free(struct smalti_step_cache *c)
{
	if (c)
		smalti_step_cache_settle(c); /* tasks write into it */
	for (int i = 0; c && i < c->a.branches; i++) {
		struct branch *k = &c->branch[i];
		for (int g = 0; g < k->fulls; g++)
			release_full(&k->full[g]);
		smalti_grid_release(&k->change);
		smalti_grid_release(&k->first);
		smalti_grid_release(&k->rest);
		for (int m = 0; m < MEASURES; m++)
			free(k->rows[m]);
	}
	if (c) {
		free(c->calls);
		free(c->measured);
	}
	free(c);
}
