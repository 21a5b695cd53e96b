/* SPDX-License-Identifier: Apache-2.0
 *
 * Whatever a plan of the VAE keeps, offloads or makes again, and whoever runs it: the same bands give the
 * same bits, other bands change rounding only. And a plan holds what it promises of memory. */
#include "embedded.h"
#include "graphs/vae/cost.h"
#include "graphs/vae/plan.h"
#include "harness.h"
#include "host/pool.h"
#include "jobs/model.h"
#include "judge.h"
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct judge_schedule schedules[] = {{"lws", 1},   {"lws", 2},    {"eager", 2},
						  {"dmdas", 2}, {"random", 2}, {NULL, 1}};

enum { SCHEDULES = COUNT(schedules), PLANS_EACH = 10, LATENT_CHANNELS = 4 };
enum { WHOLE = 1 << 20, UNEQUAL = -1, VERY_UNEQUAL = -2 };

static struct smalti_session *session;
static struct smalti_model *model;
static struct smalti_offload *file;

static void open_model(const struct judge_schedule *schedule)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	session = judge_session(schedule);
	model = embedded_open(session);
	file = smalti_offload_open(".", 1 << 20, &error);
	SUCCEEDS(file ? 0 : -1, &error, "a file");
	if (!file)
		exit(1);
}

static void close_model(void)
{
	smalti_offload_close(file);
	embedded_close(session, model);
}

/* Bands of `tile` rows, or unequal ones of 1, 2, 3 … rows, or of 1 and then as many as are left. */
static struct smalti_partition cut_of(int64_t rows, int64_t tile, int64_t factor)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_partition partition = {0}, scaled = {0};
	SUCCEEDS(smalti_partition_even(&partition, rows, tile > 0 ? tile : 1, &error), &error, "cut");
	if (tile < 0) {
		int64_t bands = 0, row = 0;
		for (int64_t height = 1; row < rows; height = tile == UNEQUAL ? height + 1 : rows) {
			partition.first[bands++] = row;
			row = row + height < rows ? row + height : rows;
		}
		partition.first[bands] = rows;
		partition.bands = bands;
	}
	SUCCEEDS(smalti_partition_scale(&scaled, &partition, factor, 1, &error), &error, "cut");
	smalti_partition_free(&partition);
	return scaled;
}

/* Any storage of any map that may have it. */
static void shuffle(struct smalti_vae_plan *plan, const struct smalti_vae_net *layers,
		    const struct smalti_vae_budget *budget, uint64_t *state)
{
	static const int64_t storages[] = {SMALTI_RECOMPUTE, SMALTI_KEEP, SMALTI_OFFLOAD};
	struct smalti_error error = SMALTI_NO_ERROR;
	for (int map = 0; map < layers->count; map++) {
		const enum smalti_storage before = plan->storage[map];
		plan->storage[map] = (enum smalti_storage)judge_draw(state, storages, 3);
		struct smalti_error refused = SMALTI_NO_ERROR;
		if (smalti_vae_plan_predict(plan, layers, budget, &refused) < 0)
			plan->storage[map] = before;
	}
	SUCCEEDS(smalti_vae_plan_predict(plan, layers, budget, &error), &error, "shuffled");
	plan->file = file;
	plan->window = judge_draw(state, (const int64_t[]){3, 4, 7}, 3);
}

static void make_plan(struct smalti_vae_plan *plan, const struct smalti_vae_net *layers, int64_t rows,
		      int64_t tile, int64_t factor, int64_t width, uint64_t *state)
{
	const struct smalti_vae_budget all = smalti_vae_no_budget(session->workers);
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_partition partition = cut_of(rows, tile, factor);
	SUCCEEDS(smalti_vae_plan_make(plan, layers, &partition, width, &all, &error), &error, "plan");
	smalti_partition_free(&partition);
	shuffle(plan, layers, &all, state);
}

static const int64_t tiles[] = {1, 2, 3, 7, WHOLE, UNEQUAL, VERY_UNEQUAL};
enum { TILES = COUNT(tiles) };

static void plan_decoder(uint64_t *state, const char *schedule)
{
	static const int64_t sides[4][2] = {{1, 1}, {6, 10}, {14, 10}, {23, 4}};
	const int64_t *side = sides[judge_draw(state, (const int64_t[]){0, 1, 2, 3}, 4)];
	const int64_t factor = smalti_model_factor(model);
	struct judge_result result = {.stage = JUDGE_DECODER, .height = side[0], .width = side[1]};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae_plan plan;
	result.tile = judge_draw_tile(state, tiles, TILES, side[0], side[0]);
	result.count = 3 * factor * side[0] * factor * side[1];
	result.values = judge_array(result.count);
	float *z = judge_filled(LATENT_CHANNELS * side[0] * side[1], 0.3, 0.4);
	model->vae->weights->transient = test_random(state) > 0;
	make_plan(&plan, model->vae, side[0], result.tile, 1, side[1], state);
	SUCCEEDS(stage_decode_by(session, model->vae, z, &plan, result.values, &error), &error, schedule);
	smalti_vae_plan_free(&plan);
	judge(&result, schedule);
	free(z);
}

static void plan_encoder(uint64_t *state, const char *schedule)
{
	static const int64_t sides[5][2] = {{1, 1}, {1, 3}, {6, 10}, {14, 5}, {23, 4}};
	const int64_t *side = sides[judge_draw(state, (const int64_t[]){0, 1, 2, 3, 4}, 5)];
	const int64_t factor = smalti_model_factor(model);
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae_net *encoder = stage_encoder(model, &error);
	SUCCEEDS(encoder ? 0 : -1, &error, schedule);
	struct judge_result result = {.stage = JUDGE_ENCODER, .height = side[0], .width = side[1]};
	struct smalti_vae_plan plan;
	result.tile = judge_draw_tile(state, tiles, TILES, side[0], side[0]);
	result.count = 2 * LATENT_CHANNELS * side[0] * side[1];
	result.values = judge_array(result.count);
	float *pixels = judge_filled(3 * factor * side[0] * factor * side[1], 0.05, 0.1);
	make_plan(&plan, encoder, side[0], result.tile, factor, factor * side[1], state);
	SUCCEEDS(stage_encode_by(session, encoder, pixels, &plan, result.values, &error), &error, schedule);
	smalti_vae_plan_free(&plan);
	smalti_vae_net_free(encoder);
	judge(&result, schedule);
	free(pixels);
}

static void plans(void)
{
	uint64_t state = 1;
	for (int i = 0; i < SCHEDULES; i++) {
		const char *schedule = judge_schedule_name(&schedules[i]);
		open_model(&schedules[i]);
		for (int plan = 0; plan < PLANS_EACH; plan++) {
			plan_decoder(&state, schedule);
			plan_encoder(&state, schedule);
		}
		close_model();
	}
	judge_forget();
}

/* Latents that a tiling with statistics of its own would get wrong: a ramp over four standard deviations, and
 * one hot pixel. */
static void global_statistics(void)
{
	enum { SIDE = 16, VALUES = LATENT_CHANNELS * SIDE * SIDE };
	static float latents[2][VALUES];
	struct smalti_error error = SMALTI_NO_ERROR;
	open_model(&(const struct judge_schedule){"lws", 2});
	for (int i = 0; i < VALUES; i++)
		latents[0][i] = -2 + 4 * (float)(i / SIDE % SIDE) / (SIDE - 1);
	latents[1][SIDE * SIDE + 5 * SIDE + 9] = 40;
	const int64_t side = SIDE * smalti_model_factor(model), count = 3 * side * side;
	for (int kind = 0; kind < 2; kind++) {
		float *one = judge_array(count), *many = judge_array(count);
		SUCCEEDS(stage_decode(session, model->vae, latents[kind], SIDE, SIDE, SIDE, one, &error),
			 &error, "one band");
		for (int64_t bands = 2; bands <= 8; bands *= 2) {
			char what[64];
			snprintf(what, sizeof(what), "%s in %lld bands", kind ? "hot pixel" : "ramp",
				 (long long)bands);
			SUCCEEDS(stage_decode(session, model->vae, latents[kind], SIDE, SIDE, SIDE / bands,
					      many, &error),
				 &error, what);
			CHECK(test_max_error(one, many, count) <= 1e-5 * test_max_abs(one, count), what);
		}
		free(one);
		free(many);
	}
	close_model();
}

/* What a decoding by the plan takes of tiles beside the weights; its bits are those of `whole`, if given. */
static int64_t max_used(const struct smalti_vae_plan *plan, const float *z, float *whole, int64_t count,
			bool keep)
{
	float *image = keep ? whole : judge_array(count);
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_pool_state state;
	SUCCEEDS(stage_decode_by(session, model->vae, z, plan, image, &error), &error, "decode");
	smalti_pool_state(session->pool, &state);
	CHECK(memcmp(image, whole, (size_t)count * sizeof(float)) == 0, "the same bits");
	if (!keep)
		free(image);
	return state.max_used - smalti_weights_bytes(model->vae->weights);
}

/* Under ever smaller budgets: what is held stays below what was promised, and the bits do not change. */
static void budgets(void)
{
	enum { SIDE = 64, BAND = 2 };
	struct smalti_vae_budget budget = smalti_vae_no_budget(2);
	float *z = judge_filled(LATENT_CHANNELS * SIDE * SIDE, 0.3, 0.4), *whole = NULL;
	double flops = 0;
	int fitting = 0;
	for (bool fits = true; fits; fitting += fits) {
		struct smalti_vae_plan plan;
		struct smalti_error refused = SMALTI_NO_ERROR;
		open_model(&(const struct judge_schedule){"lws", 2});
		model->vae->weights->transient = false;
		fits = smalti_vae_net_plan(model->vae, SIDE, SIDE, BAND, &budget, &plan, &refused) == 0;
		if (fits) {
			const int64_t side = SIDE * smalti_model_factor(model), count = 3 * side * side;
			const bool first = !whole;
			whole = first ? judge_array(count) : whole;
			const int64_t used = max_used(&plan, z, whole, count, first);
			char what[96];
			snprintf(what, sizeof(what), "promised %lld, used %lld", (long long)plan.memory,
				 (long long)used);
			CHECK(!SMALTI_POOLED || used <= plan.memory, what);
			CHECK(!SMALTI_POOLED || used > plan.memory / 3, what);
			CHECK(plan.memory <= budget.memory && plan.flops >= flops,
			      "less memory, more arithmetic");
			flops = plan.flops;
			budget.memory = plan.memory - 1;
		} else {
			CHECK(refused.code == SMALTI_ENOMEM && plan.memory > budget.memory, refused.message);
		}
		smalti_vae_plan_free(&plan);
		close_model();
	}
	CHECK(fitting >= 4, "several plans");
	free(z);
	free(whole);
}

/* A plan whose maps fit at once lets all of its tasks be inserted, and counts what that may take. */
static void maps_at_once(void)
{
	enum { SIDE = 64, BAND = 2 };
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae_budget budget = smalti_vae_no_budget(2);
	float *z = judge_filled(LATENT_CHANNELS * SIDE * SIDE, 0.3, 0.4), *whole = NULL;
	int64_t memory[2] = {0};
	budget.memory = INT64_C(1) << 40;
	for (int at_once = 0; at_once < 2; at_once++) {
		struct smalti_vae_plan plan;
		open_model(&(const struct judge_schedule){"lws", 2});
		model->vae->weights->transient = false;
		const int64_t side = SIDE * smalti_model_factor(model), count = 3 * side * side;
		budget.at_once = at_once ? budget.memory : 0;
		SUCCEEDS(smalti_vae_net_plan(model->vae, SIDE, SIDE, BAND, &budget, &plan, &error), &error,
			 "plan");
		whole = whole ? whole : judge_array(count);
		const int64_t used = max_used(&plan, z, whole, count, !at_once);
		memory[at_once] = plan.memory;
		CHECK(plan.bounded == !at_once, "bounded where maps do not fit at once");
		CHECK(!SMALTI_POOLED || used <= plan.memory, "it keeps to what was promised");
		budget.at_once = plan.memory - 1;
		SUCCEEDS(smalti_vae_plan_predict(&plan, model->vae, &budget, &error), &error, "predict");
		CHECK(plan.bounded, "a byte less than all maps take");
		smalti_vae_plan_free(&plan);
		close_model();
	}
	CHECK(memory[0] < memory[1], "maps at once take more memory");
	free(z);
	free(whole);
}

/* What is stored in bf16 takes less, and is off by bf16's rounding: by every plan that the search makes, and
 * with every other map stored so or offloaded so. */
static void rounded_storage(void)
{
	enum { SIDE = 64, BAND = 2 };
	static const double tolerance = 5e-2;
	struct smalti_error error = SMALTI_NO_ERROR, refused = SMALTI_NO_ERROR;
	open_model(&(const struct judge_schedule){"lws", 2});
	const struct smalti_vae_net *layers = model->vae;
	const int64_t side = SIDE * smalti_model_factor(model), count = 3 * side * side;
	float *z = judge_filled(LATENT_CHANNELS * SIDE * SIDE, 0.3, 0.4);
	float *exact = judge_array(count), *rounded = judge_array(count);
	SUCCEEDS(stage_decode(session, model->vae, z, SIDE, SIDE, BAND, exact, &error), &error, "exact");
	struct smalti_vae_budget budget = smalti_vae_no_budget(2);
	struct smalti_vae_plan plan;
	budget.memory = 1;
	FAILS(smalti_vae_net_plan(model->vae, SIDE, SIDE, BAND, &budget, &plan, &refused), &refused,
	      SMALTI_ENOMEM, "exact in no memory", "MB at least");
	budget.memory = plan.memory;
	smalti_vae_plan_free(&plan);
	SUCCEEDS(smalti_vae_net_plan(model->vae, SIDE, SIDE, BAND, &budget, &plan, &error), &error, "exact");
	const double seconds = plan.seconds;
	smalti_vae_plan_free(&plan);
	budget.bf16 = true;
	for (int kind = 0; kind < 3; kind++) {
		SUCCEEDS(smalti_vae_net_plan(model->vae, SIDE, SIDE, BAND, &budget, &plan, &error), &error,
			 "rounded");
		CHECK(plan.memory <= budget.memory && plan.seconds < seconds, "less work in the same memory");
		for (int map = 1; kind && map < layers->count; map++)
			if (!smalti_vae_has_to_be_kept(layers, map))
				plan.storage[map] = kind == 1 ? SMALTI_KEEP_BF16
						    : map % 2 ? SMALTI_OFFLOAD
							      : SMALTI_RECOMPUTE;
		SUCCEEDS(smalti_vae_plan_predict(&plan, layers, &budget, &error), &error, "stored in bf16");
		plan.file = file;
		SUCCEEDS(stage_decode_by(session, model->vae, z, &plan, rounded, &error), &error, "rounded");
		const double off = test_max_error(exact, rounded, count) / test_max_abs(exact, count);
		char what[64];
		snprintf(what, sizeof(what), "kind %d is off by %g", kind, off);
		CHECK(off > 1e-5 && off < tolerance, what);
		smalti_vae_plan_free(&plan);
	}
	free(z);
	free(exact);
	free(rounded);
	close_model();
}

/* The arithmetic that the busiest of `workers` gets when bands are dealt out layer by layer, each layer's to
 * who has least: of all of it. */
static double largest_share(const struct smalti_vae_net *layers, const struct smalti_vae_plan *plan,
			    int workers)
{
	enum { MOST = 16 };
	double load[MOST] = {0}, all = 0, largest = 0;
	const double rows = (double)plan->partition.first[plan->partition.bands],
		     pixels = rows * (double)plan->width;
	for (int layer = 0; layer < layers->count; layer++)
		for (int64_t band = 0; band < plan->partition.bands; band++) {
			int min = 0;
			for (int i = 1; i < workers; i++)
				min = load[i] < load[min] ? i : min;
			const double part = smalti_vae_layer_flops(layers, layer, pixels) *
					    (double)smalti_partition_rows(&plan->partition, band) / rows;
			load[min] += part;
			all += part;
		}
	for (int i = 0; i < workers; i++)
		largest = load[i] > largest ? load[i] : largest;
	return largest / all;
}

/* No layer is computed twice, and attention is shared out like all else. */
static void shares_of_workers(void)
{
	static const int workers[] = {1, 2, 3, 4, 8, 16};
	static const int64_t heights[] = {8, 4, 2, 1};
	enum { SIDE = 128 };
	struct smalti_error error = SMALTI_NO_ERROR;
	open_model(&(const struct judge_schedule){"lws", 2});
	const struct smalti_vae_net *layers = model->vae;
	for (size_t i = 0; i < COUNT(workers); i++) {
		const struct smalti_vae_budget budget = smalti_vae_no_budget(workers[i]);
		double seconds = 0, share = 1;
		char what[96];
		for (size_t j = 0; j < COUNT(heights); j++) {
			struct smalti_vae_plan plan;
			SUCCEEDS(
			    smalti_vae_net_plan(model->vae, SIDE, SIDE, heights[j], &budget, &plan, &error),
			    &error, "plan");
			if (j == 0 || plan.seconds < seconds) {
				seconds = plan.seconds;
				share = largest_share(layers, &plan, workers[i]);
			}
			CHECK(plan.flops == smalti_vae_net_flops(layers, (double)SIDE * SIDE),
			      "nothing is computed twice");
			smalti_vae_plan_free(&plan);
		}
		snprintf(what, sizeof(what), "%d workers: the busiest has %.4f of the work", workers[i],
			 share);
		CHECK(share <= 1.05 / workers[i], what);
	}
	close_model();
}

/* Predicts at so many seconds for each operation of every layer. */
static double predicted(struct smalti_vae_plan *plan, double seconds_per_flop)
{
	enum { LAYERS = 64 };
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae_budget budget = smalti_vae_no_budget(2);
	double speeds[LAYERS];
	for (int i = 0; i < LAYERS; i++)
		speeds[i] = seconds_per_flop;
	CU_ASSERT_FATAL(model->vae->count <= LAYERS);
	budget.seconds_per_flop = speeds;
	SUCCEEDS(smalti_vae_plan_predict(plan, model->vae, &budget, &error), &error, "predict");
	return plan->seconds;
}

/* Where computing takes longer than the file, the file takes no time, and the other way round. */
static void a_file_beside_computing(void)
{
	enum { SIDE = 64, BAND = 2 };
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae_plan plan;
	open_model(&(const struct judge_schedule){"lws", 2});
	const struct smalti_vae_budget budget = smalti_vae_no_budget(2);
	SUCCEEDS(smalti_vae_net_plan(model->vae, SIDE, SIDE, BAND, &budget, &plan, &error), &error, "plan");
	for (int map = 1; map < model->vae->count; map++)
		if (!smalti_vae_has_to_be_kept(model->vae, map))
			plan.storage[map] = map % 2 ? SMALTI_OFFLOAD : SMALTI_RECOMPUTE;
	const double computing = predicted(&plan, 1), twice = predicted(&plan, 2);
	CHECK(plan.offloaded > 0 && twice == 2 * computing, "slow computing hides the file");
	const double reading = predicted(&plan, 0);
	CHECK(reading > 0 && predicted(&plan, 1e-40) == reading, "a slow file hides computing");
	smalti_vae_plan_free(&plan);
	close_model();
}

static const struct test tests[] = {
    {"the same bands, the same bits", plans},
    {"statistics of all bands", global_statistics},
    {"smaller and smaller budgets", budgets},
    {"maps at once", maps_at_once},
    {"rounded storage", rounded_storage},
    {"shares of workers", shares_of_workers},
    {"a file beside computing", a_file_beside_computing},
};

TEST_MAIN("plans of the VAE", tests)
