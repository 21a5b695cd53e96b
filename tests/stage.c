/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include "harness.h"

#include "codelets/codelets.h"
#include "graphs/vae/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct smalti_session *stage_session(const char *policy, int64_t cpus)
{
	struct smalti_session_options options;
	smalti_session_defaults(&options);
	options.policy = policy;
	options.cpus = cpus;
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = smalti_session_open(&options, &error);
	if (!session) {
		fprintf(stderr, "%s\n", error.message);
		exit(1);
	}
	return session;
}

static void deliver(struct smalti_task_group *task_group, struct smalti_tile *x, int64_t count, float *y)
{
	smalti_insert(deliver, task_group, (.x = x), .count = count, .sink = smalti_copy_floats, .user = y);
}

static int finish(struct smalti_task_group *task_group, struct smalti_error *error)
{
	smalti_task_group_wait(task_group);
	int status = smalti_task_group_status(task_group, error);
	smalti_task_group_free(task_group);
	return status;
}

int stage_t5_together(struct smalti_session *session, struct smalti_text_encoder *t5,
		      const struct smalti_token_ids *captions, int64_t count,
		      const struct smalti_strategy *strategy, float *const *y, struct smalti_error *error)
{
	struct smalti_task_group *task_group = smalti_task_group_new(session, "t5", 0, error);
	struct smalti_tile **hidden = calloc((size_t)count, sizeof(*hidden));
	if (!hidden)
		abort();
	t5->functions->encode(t5, task_group, captions, count, strategy, hidden);
	for (int64_t i = 0; i < count; i++) {
		deliver(task_group, hidden[i], captions[i].count * t5->width, y[i]);
		smalti_tile_release(hidden[i]);
	}
	free(hidden);
	return finish(task_group, error);
}

int stage_t5(struct smalti_session *session, struct smalti_text_encoder *t5, const int32_t *ids,
	     int64_t count, float *y, struct smalti_error *error)
{
	const struct smalti_token_ids words = {.ids = ids, .count = count};
	return stage_t5_together(session, t5, &words, 1, &smalti_strategy_none, &y, error);
}

/* Output tokens hold (row, column, channel). */
static void to_planes(const struct smalti_denoiser *c, int64_t height, int64_t width, const float *tokens,
		      float *planes)
{
	const int64_t p = c->patch_size;
	for (int64_t y = 0; y < height; y++)
		for (int64_t x = 0; x < width; x++)
			for (int64_t channel = 0; channel < c->out_channels; channel++) {
				int64_t token = y / p * (width / p) + x / p;
				int64_t column = (y % p * p + x % p) * c->out_channels + channel;
				planes[(channel * height + y) * width + x] =
				    tokens[token * p * p * c->out_channels + column];
			}
}

static struct smalti_grid tokens_of(struct smalti_task_group *task_group, const struct smalti_denoiser *c,
				    const struct smalti_partition *partition, int64_t height, int64_t width,
				    const float *x)
{
	const int64_t columns = c->in_channels * c->patch_size * c->patch_size;
	struct smalti_tile *planes =
	    smalti_tile_upload(task_group, c->in_channels * height * width, sizeof(float), x);
	struct smalti_grid grid = smalti_grid_new(task_group, partition, 1, columns * (int64_t)sizeof(float));
	for (int64_t b = 0; b < partition->bands; b++)
		smalti_insert(patchify, task_group, (.planes = planes, .tokens = smalti_grid_tile(&grid, b)),
			      .channels = c->in_channels, .height = height, .width = width,
			      .patch = c->patch_size, .columns = width / c->patch_size,
			      .first = partition->first[b], .rows = smalti_partition_rows(partition, b),
			      .scale = 1.0f);
	smalti_tile_release(planes);
	return grid;
}

int stage_dit(struct smalti_session *session, struct smalti_denoiser *dit, const float *x, int64_t height,
	      int64_t width, float timestep, const float *text, int64_t tokens, int64_t band_tokens,
	      int64_t vae_factor, float *v, struct smalti_error *error)
{
	const struct smalti_denoiser *c = dit;
	const int64_t patches = height / c->patch_size * (width / c->patch_size);
	const int64_t columns = c->patch_size * c->patch_size * c->out_channels;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "dit", 0, error);
	struct smalti_tokens cut;
	float *out = malloc((size_t)(patches * columns) * sizeof(*out));
	if (!out || smalti_tokens_cut(&cut, &smalti_strategy_none, patches, width / c->patch_size,
				      band_tokens, error) < 0)
		abort();
	struct smalti_tile *hidden =
	    smalti_tile_upload(task_group, tokens, c->text_width * (int64_t)sizeof(float), text);
	struct smalti_cross_cache *caption = dit->functions->cross_cache(dit, task_group, hidden, tokens);
	struct smalti_conditions *conditions =
	    dit->functions->conditions(dit, task_group, &cut, &timestep, 1, height, width, vae_factor);
	struct smalti_grid grid = tokens_of(task_group, c, &cut.partition, height, width, x), result;
	dit->functions->forward(dit, task_group, conditions, 0, 1.0f, &grid, &caption, 1, NULL, &result);
	for (int64_t b = 0; b < cut.partition.bands; b++)
		deliver(task_group, smalti_grid_tile(&result, b),
			smalti_partition_rows(&cut.partition, b) * columns,
			out + cut.partition.first[b] * columns);
	smalti_grid_release(&grid);
	smalti_grid_release(&result);
	dit->functions->release_conditions(conditions);
	dit->functions->release_cross_cache(caption);
	smalti_tile_release(hidden);
	int status = finish(task_group, error);
	to_planes(c, height, width, out, v);
	smalti_tokens_free(&cut);
	free(out);
	return status;
}

/* What a plan estimates, counted by rules, is what its run inserts. */
static void estimated(struct smalti_task_group *task_group, const struct smalti_vae_plan *plan)
{
	struct smalti_task_group_progress progress;
	char text[96];
	smalti_task_group_progress(task_group, &progress);
	snprintf(text, sizeof(text), "plan: %g estimated, %g inserted", plan->flops, progress.inserted);
	CHECK(smalti_task_group_broken(task_group) ||
		  task_group->session->sequential || /* which counts nothing */
		  (plan->flops > 0.97 * progress.inserted && plan->flops <= 1.001 * progress.inserted),
	      text);
}

struct canvas {
	int64_t height;
	float *image;
};

static int paint(void *user, int64_t first, int64_t rows, int64_t width, const float *pixels,
		 struct smalti_error *error)
{
	(void)error;
	const struct canvas *canvas = user;
	for (int64_t row = 0; row < rows; row++)
		for (int64_t x = 0; x < width; x++)
			for (int64_t channel = 0; channel < 3; channel++)
				canvas->image[(channel * canvas->height + first + row) * width + x] =
				    *pixels++;
	return 0;
}

int stage_decode_by(struct smalti_session *session, struct smalti_vae_net *vae, const float *latents,
		    const struct smalti_vae_plan *plan, float *image, struct smalti_error *error)
{
	const struct smalti_vae_config *c = &vae->config;
	const int64_t height = plan->partition.first[plan->partition.bands];
	struct canvas canvas = {height * smalti_vae_factor(c), image};
	struct smalti_task_group *task_group = smalti_task_group_new(session, "vae", 0, error);
	struct smalti_tile *planes =
	    smalti_tile_upload(task_group, c->latent_channels * height * plan->width, sizeof(float), latents);
	smalti_vae_decode(vae, task_group, planes, false, plan, paint, &canvas);
	smalti_tile_release(planes);
	estimated(task_group, plan);
	return finish(task_group, error);
}

int stage_decode(struct smalti_session *session, struct smalti_vae_net *vae, const float *latents,
		 int64_t height, int64_t width, int64_t band_rows, float *image, struct smalti_error *error)
{
	const struct smalti_vae_budget all = smalti_vae_no_budget(session->workers);
	struct smalti_vae_plan plan;
	int status = smalti_vae_net_plan(vae, height, width, band_rows, &all, &plan, error);
	if (status == 0)
		status = stage_decode_by(session, vae, latents, &plan, image, error);
	smalti_vae_plan_free(&plan);
	return status;
}

void stage_insert_decoding(struct smalti_vae_net *vae, struct smalti_task_group *task_group,
			   struct smalti_tile *latents, int64_t height, int64_t width, int64_t band_rows,
			   smalti_row_sink sink, void *user)
{
	const struct smalti_vae_budget all = smalti_vae_no_budget(task_group->session->workers);
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_vae_plan plan;
	if (smalti_vae_net_plan(vae, height, width, band_rows, &all, &plan, &error) < 0)
		smalti_task_group_break(task_group, &error);
	smalti_vae_decode(vae, task_group, latents, false, &plan, sink, user);
	smalti_vae_plan_free(&plan);
}

struct scanner {
	const float *pixels;
	int64_t next;
};

static int scan(void *user, int64_t first, int64_t rows, int64_t width, float *pixels,
		struct smalti_error *error)
{
	struct scanner *scanner = user;
	if (first != scanner->next)
		return smalti_fail(error, SMALTI_EINVAL, "row %lld is read after row %lld", (long long)first,
				   (long long)scanner->next - 1);
	memcpy(pixels, scanner->pixels + first * width * 3, (size_t)(rows * width * 3) * sizeof(*pixels));
	scanner->next += rows;
	return 0;
}

int stage_encode_by(struct smalti_session *session, struct smalti_vae_net *vae, const float *pixels,
		    const struct smalti_vae_plan *plan, float *planes, struct smalti_error *error)
{
	const struct smalti_vae_config *c = &vae->config;
	const int64_t factor = smalti_vae_factor(c);
	const int64_t count = 2 * c->latent_channels *
			      (plan->partition.first[plan->partition.bands] / factor) *
			      (plan->width / factor);
	struct scanner scanner = {pixels, 0};
	struct smalti_task_group *task_group = smalti_task_group_new(session, "vae", 0, error);
	struct smalti_tile *result = smalti_vae_encode(vae, task_group, plan, scan, &scanner);
	deliver(task_group, result, count, planes);
	smalti_tile_release(result);
	estimated(task_group, plan);
	return finish(task_group, error);
}

int stage_encode(struct smalti_session *session, struct smalti_vae_net *vae, const float *pixels,
		 int64_t height, int64_t width, int64_t band_rows, float *planes, struct smalti_error *error)
{
	const struct smalti_vae_budget all = smalti_vae_no_budget(session->workers);
	struct smalti_vae_plan plan;
	int status = smalti_vae_net_plan(vae, height, width, band_rows, &all, &plan, error);
	if (status == 0)
		status = stage_encode_by(session, vae, pixels, &plan, planes, error);
	smalti_vae_plan_free(&plan);
	return status;
}

struct smalti_vae_net *stage_encoder(struct smalti_model *model, struct smalti_error *error)
{
	return smalti_vae_net_new(SMALTI_VAE_ENCODE, model->task_group, &model->vae->config,
				  model->vae_checkpoint, model->vae->compute, error);
}
