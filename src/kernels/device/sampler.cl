/* SPDX-License-Identifier: Apache-2.0 */

/* 0 without a look at the array, which may be absent or hold anything. */
DEVICE double term(double coefficient, GLOBAL const float *array, int64_t i)
{
	return coefficient == 0 ? 0 : coefficient * array[i];
}

/* Where element `i` of the tokens' order lies in the transformer's output, [rows, patch², out_channels]. */
DEVICE int64_t output_of(const struct sampler_step_arguments *a, int64_t i)
{
	const int64_t area = a->patch * a->patch, token = i / (area * a->channels);
	const int64_t pixel = i % area, channel = i / area % a->channels;
	return (token * area + pixel) * a->out_channels + channel;
}

/* samplers/sampler.h: x [rows, channels·patch²], history step.history values of each of these. A thread for each
 * element; arithmetic in double, so that the steps of all samplers are linear combinations without a loss. */
KERNEL(sampler_step)(GLOBAL const float *conditional, GLOBAL const float *unconditional,
		     GLOBAL const float *noise, GLOBAL float *x, GLOBAL float *history,
		     struct sampler_step_arguments a)
{
	const int64_t i = INDEX, count = a.rows * a.channels * a.patch * a.patch;
	if (i >= count)
		return;
	GLOBAL float *last = history + i * a.step.history; /* m, x, noise */
	float output = conditional[output_of(&a, i)];
	if (unconditional) {
		const float without = unconditional[output_of(&a, i)];
		output = without + a.guidance * (output - without);
	}
	const float drawn = noise ? noise[pixel_of(a.channels, a.height, a.width, a.patch, a.left, a.columns,
						   a.first, i)]
				  : 0;
	double now = x[i];
	double m = term(a.step.x0.x, x, i) + (a.step.x0.output == 0 ? 0 : a.step.x0.output * output);
	if (a.step.clip != 0 && fabs(m) > a.step.clip && fabs(m) < INFINITY)
		m = copysign(a.step.clip, m);
	if (a.step.corrects)
		now = term(a.step.correct.x, last, 1) + a.step.correct.m * m +
		      term(a.step.correct.previous_m, last, 0) + term(a.step.correct.noise, last, 2);
	const double from = a.step.next.x == 0 ? 0 : a.step.next.x * now;
	const double after = from + a.step.next.m * m + term(a.step.next.previous_m, last, 0) +
			     (a.step.next.output == 0 ? 0 : a.step.next.output * output) +
			     (a.step.next.noise == 0 ? 0 : a.step.next.noise * drawn);
	if (a.step.history > 0)
		last[0] = (float)m;
	if (a.step.history > 1)
		last[1] = (float)now;
	if (a.step.history > 2)
		last[2] = drawn;
	x[i] = (float)after;
}
