/* SPDX-License-Identifier: Apache-2.0
 *
 * A decoding whose bands are distributed over devices: the bits of one device, an even part of the work on
 * each, and nothing moves but rows at the borders, statistics, and what attention reads.
 */
#include "embedded.h"
#include "graphs/vae/plan.h"
#include "harness.h"
#include "judge.h"
#include "kernels/groupnorm.h"
#include "kernels/many.h"
#include "moved.h"
#include "stage.h"

#include <math.h>

enum { HEIGHT = 24, WIDTH = 10, DEVICES = 4, PLACES = DEVICES + 1, FEW_BYTES = 1024 };

static struct smalti_session *session;
static struct smalti_model *model;

static void make_plan(int devices, struct smalti_vae_plan *plan)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_vae_budget budget = smalti_vae_no_budget(session->workers);
	double shares[PLACES] = {0};
	for (int device = 1; device <= devices; device++)
		shares[device] = 1;
	SUCCEEDS(smalti_vae_net_plan(model->vae, HEIGHT, WIDTH, 1, &budget, plan, &error), &error, "plan");
	SUCCEEDS(smalti_partition_distribute(&plan->partition, shares, PLACES, &error), &error, "places");
}

static double rows_bytes(const struct smalti_vae_shape *map, int64_t rows)
{
	return (double)(rows * (WIDTH * map->up / map->down) * map->channels) * sizeof(float);
}

/* One row of map `map` of each neighbour that is elsewhere. */
static double borders(const struct smalti_vae_plan *plan, const struct smalti_vae_shape *map, int place)
{
	const struct smalti_partition *p = &plan->partition;
	double bytes = 0;
	for (int64_t b = 1; b < p->bands; b++)
		if (p->owner[b - 1] != p->owner[b] && (p->owner[b] == place || p->owner[b - 1] == place))
			bytes += rows_bytes(map, 1);
	return bytes;
}

/* Of a normalised map: parts are merged where the first of each SMALTI_MANY is, what comes of it where the
 * first band is, from where it goes to all. */
static double statistics(const struct smalti_vae_plan *plan, int map, int place)
{
	const struct smalti_partition *p = &plan->partition;
	const double bytes = (double)smalti_vae_map_groups(model->vae, map) * sizeof(struct smalti_moments);
	double tiles = place == p->owner[0] ? 0 : 1;
	for (int64_t b = 0; b < p->bands; b++)
		tiles += p->owner[b - b % SMALTI_MANY] == place && p->owner[b] != place;
	for (int64_t b = 0; b < p->bands; b += SMALTI_MANY)
		tiles += place == p->owner[0] && p->owner[b] != place;
	return tiles * bytes;
}

static double planned(const struct smalti_vae_plan *plan, int place)
{
	const struct smalti_vae_net *net = model->vae;
	const struct smalti_partition *p = &plan->partition;
	double bytes = (double)(net->map[0].channels * HEIGHT * WIDTH) * sizeof(float); /* the latents */
	bool used = false;
	for (int64_t b = 0; b < p->bands; b++)
		used = used || p->owner[b] == place;
	for (int i = 0; used && i < net->count; i++) {
		const struct smalti_vae_shape *map = &net->map[i];
		const enum smalti_vae_layer_kind kind = net->layer[i].kind;
		if (kind == SMALTI_VAE_CONV || kind == SMALTI_VAE_RESIDUAL)
			bytes += borders(plan, map, place);
		if (smalti_vae_map_groups(net, i))
			bytes += statistics(plan, i, place);
		for (int64_t b = 0; kind == SMALTI_VAE_ATTENTION && b < p->bands; b++)
			if (p->owner[b] != place)
				bytes +=
				    2 * rows_bytes(map, smalti_partition_rows(p, b) * map->up / map->down);
	}
	return used ? bytes : 0;
}

static void decode(const struct smalti_vae_plan *plan, float *image)
{
	static float latents[16 * HEIGHT * WIDTH];
	struct smalti_error error = SMALTI_NO_ERROR;
	test_fill(latents, model->vae->map[0].channels * HEIGHT * WIDTH, 0.3, 0.4);
	SUCCEEDS(stage_decode_by(session, model->vae, latents, plan, image, &error), &error, "decode");
}

static void on_devices(int devices, const float *one, float *image)
{
	struct smalti_vae_plan plan;
	double bytes[PLACES];
	char what[120];
	make_plan(devices, &plan);
	decode(&plan, image); /* weights come */
	moved_bytes(session, PLACES, bytes);
	decode(&plan, image);
	moved_bytes(session, PLACES, bytes);
	for (int place = 1; place < PLACES; place++) {
		const double expected = planned(&plan, place);
		int64_t rows = 0;
		for (int64_t b = 0; b < plan.partition.bands; b++)
			rows +=
			    plan.partition.owner[b] == place ? smalti_partition_rows(&plan.partition, b) : 0;
		snprintf(what, sizeof(what), "%d devices, %d: %lld rows, %.0f bytes, %.0f planned", devices,
			 place, (long long)rows, bytes[place], expected);
		printf("\n    %s", what);
		CHECK(fabs(bytes[place] - expected) <= 0.02 * expected + FEW_BYTES, what);
		CHECK((double)rows * devices <= 1.05 * HEIGHT, what);
	}
	const int64_t factor = smalti_model_factor(model);
	CHECK(memcmp(one, image, (size_t)(3 * HEIGHT * WIDTH * factor * factor) * sizeof(float)) == 0, what);
	smalti_vae_plan_free(&plan);
}

static void devices(void)
{
	const int64_t factor = smalti_model_factor(model);
	float *one = judge_array(3 * HEIGHT * WIDTH * factor * factor);
	float *image = judge_array(3 * HEIGHT * WIDTH * factor * factor);
	struct smalti_vae_plan plan;
	make_plan(1, &plan);
	decode(&plan, one);
	smalti_vae_plan_free(&plan);
	for (int count = 2; count <= DEVICES; count++)
		on_devices(count, one, image);
	free(one);
	free(image);
	embedded_close(session, model);
}

static const struct test tests[] = {{"devices", devices}};

TEST_PROGRAM()
{
	session = moved_session(DEVICES);
	if (!session)
		return 77;
	model = embedded_open(session);
	return test_main("decoding over places", tests, COUNT(tests));
}
