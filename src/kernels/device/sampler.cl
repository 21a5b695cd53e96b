/* SPDX-License-Identifier: Apache-2.0 */

/* Where element `i` of the tokens' order lies in the transformer's output, [rows, patch², out_channels]. */
DEVICE int64_t output_of(const struct sampler_step_arguments *a, int64_t i)
{
	const int64_t area = a->patch * a->patch, token = i / (area * a->channels);
	const int64_t pixel = i % area, channel = i / area % a->channels;
	return (token * area + pixel) * a->out_channels + channel;
}

/* samplers/sampler.h: x [rows, channels·patch²], history [.., step.history]. A thread for each element;
 * arithmetic in double, so that the steps of all samplers are linear combinations without a loss. */
KERNEL(sampler_step)(GLOBAL const float *conditional, GLOBAL const float *unconditional,
		     GLOBAL const float *noise, GLOBAL float *x, GLOBAL float *history,
		     struct sampler_step_arguments a)
{
	const int64_t i = INDEX, count = a.rows * a.channels * a.patch * a.patch;
	if (i >= count)
		return;
	float output = conditional[output_of(&a, i)];
	if (unconditional) {
		const float without = unconditional[output_of(&a, i)];
		output = without + a.guidance * (output - without);
	}
	const float drawn = noise ? noise[pixel_of(a.channels, a.height, a.width, a.patch, a.left, a.columns,
						   a.first, i)]
				  : 0;
	float last[SMALTI_SAMPLER_HISTORY] = {0};
	for (int k = 0; k < a.step.history; k++)
		last[k] = history[i * a.step.history + k];
	x[i] = smalti_sampler_move(&a.step, x[i], output, drawn, last);
	for (int k = 0; k < a.step.history; k++)
		history[i * a.step.history + k] = last[k];
}

KERNEL(draw_latents)(GLOBAL const float *moments, GLOBAL const float *scale, GLOBAL const float *noise,
		     GLOBAL float *y, struct draw_latents_arguments a)
{
	const int64_t i = INDEX, count = a.channels * a.plane, channel = i / a.plane;
	if (i >= count)
		return;
	const float z = noise ? moments[i] + moments[count + i] * noise[i] : moments[i];
	y[i] = scale[channel] * (z - scale[a.channels + channel]);
}

DEVICE float noised(struct smalti_sampler_level level, float clean, float noise)
{
	return (float)(level.clean * clean + level.noise * noise);
}

KERNEL(add_noise)(GLOBAL const float *x, GLOBAL const float *noise, GLOBAL float *y, struct add_noise_arguments a)
{
	if (INDEX < a.count)
		y[INDEX] = noised(a.level, x[INDEX], noise[INDEX]);
}

KERNEL(repaint)(GLOBAL const float *clean, GLOBAL const float *noise, GLOBAL const float *mask, GLOBAL float *x,
		struct repaint_arguments a)
{
	const int64_t i = INDEX;
	if (i >= a.rows * a.channels * a.patch * a.patch)
		return;
	const int64_t at = pixel_of(a.channels, a.height, a.width, a.patch, a.left, a.columns, a.first, i);
	if (mask[at] == 0)
		x[i] = noised(a.level, clean[at], noise[at]);
}
