/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/dit_conditions.h"
#include "graphs/dit_weights.h"
#include "graphs/linear.h"
#include "kernels/conditioning.h"

/* linear_2(SiLU(linear_1(sinusoid(values)))): [rows, width of the embedder]. */
static struct smalti_tile *embed(struct smalti_task_group *task_group,
				 const struct smalti_dit_embedder *embedder, const float *values,
				 int64_t rows)
{
	struct smalti_tile *numbers = smalti_tile_upload(task_group, rows, sizeof(float), values);
	struct smalti_tile *waves =
	    smalti_tile_new(task_group, rows, SMALTI_SINUSOID_SIZE * (int64_t)sizeof(float));
	smalti_insert(sinusoid, task_group, (.values = numbers, .y = waves), .rows = rows);
	struct smalti_tile *hidden = smalti_linear(task_group, &embedder->linear_1, rows, SMALTI_F32, waves,
						   SMALTI_EPILOGUE_SILU, SMALTI_F32);
	struct smalti_tile *y = smalti_linear(task_group, &embedder->linear_2, rows, SMALTI_F32, hidden,
					      SMALTI_EPILOGUE_NONE, SMALTI_F32);
	smalti_tile_release(numbers);
	smalti_tile_release(waves);
	smalti_tile_release(hidden);
	return y;
}

/* e += [r(height) ‖ r(width) ‖ a(height / width)], pixels (3.3). */
static void add_micro_conditions(const struct smalti_dit *dit, struct smalti_task_group *task_group,
				 float height, float width, int64_t steps, struct smalti_tile *e)
{
	const float sides[2] = {height, width}, ratio[1] = {height / width};
	const int64_t third = dit->config.width / 3 * (int64_t)sizeof(float);
	struct smalti_tile *row = smalti_tile_new(task_group, 3, third);
	struct smalti_tile *resolution = embed(task_group, &dit->resolution, sides, 2);
	struct smalti_tile *aspect_ratio = embed(task_group, &dit->aspect_ratio, ratio, 1);
	smalti_insert(join, task_group, (.first = resolution, .second = aspect_ratio, .y = row),
		      .first_bytes = 2 * third, .second_bytes = third);
	smalti_insert(add_row, task_group, (.row = row, .y = e), .rows = steps, .dim = dit->config.width);
	smalti_tile_release(resolution);
	smalti_tile_release(aspect_ratio);
	smalti_tile_release(row);
}

/* g = linear(SiLU(e)): six rows per step. */
static struct smalti_tile *adaln_of(const struct smalti_dit *dit, struct smalti_task_group *task_group,
				    int64_t steps, struct smalti_tile *e)
{
	const int64_t width = dit->config.width;
	struct smalti_tile *activated = smalti_tile_new(task_group, steps, width * (int64_t)sizeof(float));
	smalti_insert(silu, task_group, (.x = e, .y = activated), .count = steps * width);
	struct smalti_tile *g = smalti_linear(task_group, &dit->adaln, steps, SMALTI_F32, activated,
					      SMALTI_EPILOGUE_NONE, SMALTI_F32);
	smalti_tile_release(activated);
	return g;
}

struct smalti_conditions *smalti_dit_conditions(struct smalti_denoiser *denoiser,
						struct smalti_task_group *task_group, const float *timesteps,
						int64_t steps, int64_t height, int64_t width,
						int64_t vae_factor)
{
	const struct smalti_dit *dit = (const struct smalti_dit *)denoiser;
	const struct smalti_transformer_config *c = &dit->config;
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_conditions *conditions = smalti_calloc(1, sizeof(*conditions), &error);
	if (!conditions) {
		smalti_task_group_break(task_group, &error);
		return NULL;
	}
	conditions->timestep = embed(task_group, &dit->timestep, timesteps, steps);
	if (c->additional_conditions)
		add_micro_conditions(dit, task_group, (float)(height * vae_factor),
				     (float)(width * vae_factor), steps, conditions->timestep);
	conditions->adaln = adaln_of(dit, task_group, steps, conditions->timestep);
	const int64_t rows = height / c->patch_size, columns = width / c->patch_size;
	conditions->columns = columns;
	conditions->steps = steps;
	conditions->positions =
	    smalti_tile_new(task_group, columns + rows, c->width / 2 * (int64_t)sizeof(float));
	smalti_insert(positions, task_group, (.table = conditions->positions), .columns = columns,
		      .rows = rows, .dim = c->width, .base = c->sample_size / c->patch_size,
		      .interpolation_scale = c->interpolation_scale);
	return conditions;
}

void smalti_dit_release_conditions(struct smalti_conditions *conditions)
{
	if (!conditions)
		return;
	smalti_tile_release(conditions->timestep);
	smalti_tile_release(conditions->adaln);
	smalti_tile_release(conditions->positions);
	free(conditions);
}
