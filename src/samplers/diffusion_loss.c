/* SPDX-License-Identifier: Apache-2.0 */
#include "samplers/diffusion_loss.h"

#include <math.h>

enum { T = SMALTI_TRAINING_TIMESTEPS };

static struct smalti_noise_level levels[T];

static void fill_levels(void)
{
	const double first = 1e-4, last = 0.02;
	double before = 1;
	for (int t = 0; t < T; t++) {
		struct smalti_noise_level *level = &levels[t];
		level->beta = t == T - 1 ? last : first + t * ((last - first) / (T - 1));
		level->log_beta = log(level->beta);
		level->alpha_bar = before * (1 - level->beta);
		const double rest = 1 - level->alpha_bar;
		level->variance = level->beta * (1 - before) / rest;
		level->log_variance = log(level->variance);
		level->x0_factor = level->beta * sqrt(before) / rest;
		level->xt_factor = (1 - before) * sqrt(1 - level->beta) / rest;
		before = level->alpha_bar;
	}
	levels[0].log_variance = levels[1].log_variance;
}

const struct smalti_noise_level *smalti_noise_level(int64_t t)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, fill_levels);
	return &levels[t];
}

double smalti_min_snr(int64_t t, double gamma)
{
	const double alpha_bar = smalti_noise_level(t)->alpha_bar, ratio = alpha_bar / (1 - alpha_bar);
	return gamma > 0 ? fmin(ratio, gamma) / ratio : 1;
}

void smalti_add_noise(int64_t t, int64_t count, const float *x0, const float *noise, float *xt)
{
	const double alpha_bar = smalti_noise_level(t)->alpha_bar;
	const float kept = (float)sqrt(alpha_bar), added = (float)sqrt(1 - alpha_bar);
	for (int64_t i = 0; i < count; i++)
		xt[i] = kept * x0[i] + added * noise[i];
}

/* An element of the variational bound in nats, and its derivative by the logarithm of the variance. */
struct element {
	double value, slope;
};

/* Returns the Kullback-Leibler divergence of two Gaussians whose means are `apart`. */
static struct element divergence(double apart, double true_log_variance, double log_variance)
{
	const double ratio = exp(true_log_variance - log_variance);
	const double distance = apart * apart * exp(-log_variance);
	return (struct element){0.5 * (log_variance - true_log_variance - 1 + ratio + distance),
				0.5 * (1 - ratio - distance)};
}

/* Approximates the Gaussian distribution function by tanh. */
static double cumulated(double z)
{
	return 0.5 * (1 + tanh(sqrt(M_2_PI) * (z + 0.044715 * z * z * z)));
}

static double density(double z)
{
	const double tangent = tanh(sqrt(M_2_PI) * (z + 0.044715 * z * z * z));
	return 0.5 * sqrt(M_2_PI) * (1 + 0.134145 * z * z) * (1 - tangent * tangent);
}

/* Returns −ln of the probability of x₀'s bin, one of 255 in [−1, 1]; the outermost bins have no end. */
static struct element bin(double x0, double mean, double log_variance)
{
	const double min = 1e-12, edge = 0.999, inverse = exp(-log_variance / 2);
	const double above = inverse * (x0 - mean + 1. / 255), below = inverse * (x0 - mean - 1. / 255);
	const bool is_last = x0 > edge, is_first = x0 < -edge;
	const double probability = (is_last ? 1 : cumulated(above)) - (is_first ? 0 : cumulated(below));
	const double change =
	    -0.5 * ((is_last ? 0 : above * density(above)) - (is_first ? 0 : below * density(below)));
	return (struct element){-log(fmax(probability, min)), probability >= min ? -change / probability : 0};
}

/* Returns the bound of one value. The model predicts the noise and, from −1 to 1, where the log variance is
 * between its bounds. The bound's mean comes from the predicted noise, which gets no gradient from it. */
static struct element bound(const struct smalti_noise_level *level, int64_t t, double x0, double noise,
			    double said_noise, double said_variance)
{
	const double kept = sqrt(level->alpha_bar), added = sqrt(1 - level->alpha_bar);
	const double fraction = (said_variance + 1) / 2;
	const double log_variance = fraction * level->log_beta + (1 - fraction) * level->log_variance;
	const double xt = kept * x0 + added * noise;
	const double said_x0 = (xt - added * said_noise) / kept;
	if (t > 0)
		return divergence(level->x0_factor * (x0 - said_x0), level->log_variance, log_variance);
	return bin(x0, level->x0_factor * said_x0 + level->xt_factor * xt, log_variance);
}

static double mean_square_error(const struct smalti_diffusion_loss *loss, const float *noise,
				const float *output, float *gradient)
{
	const double factor = loss->scale * loss->weight * 2 / (double)loss->count;
	double sum = 0;
	for (int64_t i = 0; i < loss->count; i++) {
		const double difference = (double)output[i] - noise[i];
		sum += difference * difference;
		if (gradient)
			gradient[i] = (float)(factor * difference);
	}
	return sum / (double)loss->count;
}

static double variational_bound(const struct smalti_diffusion_loss *loss, const float *x0, const float *noise,
				const float *output, float *gradient)
{
	const struct smalti_noise_level *level = smalti_noise_level(loss->t);
	const double bits = 1 / ((double)loss->count * M_LN2);
	const double factor = loss->scale * bits * (level->log_beta - level->log_variance) / 2;
	double sum = 0;
	for (int64_t i = 0; i < loss->count; i++) {
		const struct element element =
		    bound(level, loss->t, x0[i], noise[i], output[i], output[loss->count + i]);
		sum += element.value;
		if (gradient)
			gradient[i] = (float)(factor * element.slope);
	}
	return sum * bits;
}

struct smalti_loss_parts smalti_diffusion_loss(const struct smalti_diffusion_loss *loss, const float *x0,
					       const float *noise, const float *output, float *gradient)
{
	struct smalti_loss_parts parts = {.mse = mean_square_error(loss, noise, output, gradient)};
	float *variance = gradient && loss->has_variance ? gradient + loss->count : NULL;
	if (loss->has_variance && loss->learns_variance)
		parts.vb = variational_bound(loss, x0, noise, output, variance);
	else if (variance)
		memset(variance, 0, (size_t)loss->count * sizeof(*variance));
	return parts;
}
