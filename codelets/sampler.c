/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "kernels/layout.h"
#include "kernels/rows.h"
#include "kernels/scratch.h"

/* Counts guidance, a prediction of two terms, and sums of four and of the history; a corrector has no output,
 * no noise. */
double smalti_sampler_flops(const struct sampler_step_arguments *a)
{
	const int history = a->step.history;
	const double each = 3 + 3 + (7 + 2 * history) + (a->step.corrects ? 1 + 2 * history : 0);
	return each * (double)a->rows * (double)(a->patch * a->patch) * (double)a->channels;
}

/* Computes u + guidance·(c − u) in the order of the latents' tokens (docs/reference.md 3.8); c alone without
 * u. */
static void guide(const struct sampler_step_arguments *a, const struct smalti_patches *patches, int64_t count,
		  const float *conditional, const float *unconditional, float *room, float *output)
{
	smalti_reorder_output(patches, a->out_channels, conditional, output);
	if (!unconditional)
		return;
	smalti_reorder_output(patches, a->out_channels, unconditional, room);
	smalti_guide(count, room, a->guidance, output);
}

int smalti_cpu_sampler_step(const struct sampler_step_data *data, const struct sampler_step_arguments *a,
			    struct smalti_error *error)
{
	const struct smalti_patches patches = {a->channels, a->height, a->width, a->patch, a->left,
					       a->columns,  a->first,  a->rows,  false};
	const int64_t count = a->rows * a->channels * a->patch * a->patch;
	float *output = smalti_scratch(SMALTI_SCRATCH_ROWS, 2 * count * (int64_t)sizeof(float), error);
	if (!output)
		return -1;
	float *room = output + count;
	guide(a, &patches, count, data->conditional, data->unconditional, room, output);
	if (data->noise)
		smalti_patchify(&patches, 1.0f, data->noise, room);
	smalti_sampler_apply(&a->step, count, output, data->noise ? room : NULL, data->x, data->history);
	return 0;
}

int smalti_cpu_draw_latents(const struct draw_latents_data *data, const struct draw_latents_arguments *a,
			    struct smalti_error *error)
{
	const int64_t count = a->channels * a->plane;
	const float *mean = data->moments, *std = mean + count, *scale = data->scale, *noise = data->noise;
	float *y = data->y;
	(void)error;
	for (int64_t i = 0; i < count; i++) {
		const int64_t channel = i / a->plane;
		const float z = noise ? mean[i] + std[i] * noise[i] : mean[i];
		y[i] = scale[channel] * (z - scale[a->channels + channel]);
	}
	return 0;
}

static float noised(struct smalti_sampler_level level, float clean, float noise)
{
	return (float)(level.clean * clean + level.noise * noise);
}

int smalti_cpu_add_noise(const struct add_noise_data *data, const struct add_noise_arguments *a,
			 struct smalti_error *error)
{
	const float *x = data->x, *noise = data->noise;
	float *y = data->y;
	(void)error;
	for (int64_t i = 0; i < a->count; i++)
		y[i] = noised(a->level, x[i], noise[i]);
	return 0;
}

int smalti_cpu_repaint(const struct repaint_data *data, const struct repaint_arguments *a,
		       struct smalti_error *error)
{
	const struct smalti_patches patches = {a->channels, a->height, a->width, a->patch, a->left,
					       a->columns,  a->first,  a->rows,  false};
	const int64_t count = a->rows * a->channels * a->patch * a->patch;
	float *clean = smalti_scratch(SMALTI_SCRATCH_ROWS, 3 * count * (int64_t)sizeof(float), error);
	if (!clean)
		return -1;
	float *noise = clean + count, *mask = noise + count, *x = data->x;
	smalti_patchify(&patches, 1.0f, data->clean, clean);
	smalti_patchify(&patches, 1.0f, data->noise, noise);
	smalti_patchify(&patches, 1.0f, data->mask, mask);
	for (int64_t i = 0; i < count; i++)
		if (mask[i] == 0)
			x[i] = noised(a->level, clean[i], noise[i]);
	return 0;
}
