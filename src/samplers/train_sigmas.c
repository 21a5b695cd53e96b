/* SPDX-License-Identifier: Apache-2.0 */
#include "samplers/schedule.h"

#include <float.h>
#include <math.h>

/* Computes torch.linspace in f32: it is filled from both ends with fused multiply-adds. */
static float torch_linspace(float from, float to, int64_t count, int64_t index)
{
	float step = (to - from) / (float)(count - 1);
	return index < count / 2 ? fmaf(step, (float)index, from)
				 : fmaf(-step, (float)(count - 1 - index), to);
}

static double squared_cosine(int64_t index, int64_t count)
{
	const double angle = ((double)index / (double)count + 0.008) / 1.008 * acos(-1) / 2;
	return cos(angle) * cos(angle);
}

static float beta_at(const struct smalti_scheduler_config *config, int64_t index)
{
	int64_t count = config->train_timesteps;
	if (config->beta_schedule == SMALTI_BETAS_LINEAR)
		return torch_linspace((float)config->beta_start, (float)config->beta_end, count, index);
	if (config->beta_schedule == SMALTI_BETAS_SQUARED_COSINE)
		return (float)fmin(1 - squared_cosine(index + 1, count) / squared_cosine(index, count),
				   0.999);
	float root =
	    torch_linspace((float)sqrt(config->beta_start), (float)sqrt(config->beta_end), count, index);
	return root * root;
}

/* Keeps the running product in double, rounded per entry, as torch.cumprod. */
static void fill_alpha_bar(struct smalti_train_sigmas *train, const struct smalti_scheduler_config *config)
{
	double product = 1;
	for (int64_t i = 0; i < train->count; i++) {
		product *= 1.f - beta_at(config, i);
		train->alpha_bar[i] = (float)product;
	}
}

/* Tells whether the scheduler divides by the last alpha_bar, so that it has to stay above 0. */
static bool keeps_signal(enum smalti_scheduler scheduler)
{
	return scheduler == SMALTI_SCHEDULER_DPM_SOLVER || scheduler == SMALTI_SCHEDULER_UNIPC ||
	       scheduler == SMALTI_SCHEDULER_EULER || scheduler == SMALTI_SCHEDULER_EULER_ANCESTRAL;
}

/* Moves the roots of alpha_bar so that the last is 0, and the first stays. */
static void rescale(struct smalti_train_sigmas *train, enum smalti_scheduler scheduler)
{
	const double least = 0x1p-24, first = sqrt(train->alpha_bar[0]),
		     last = sqrt(train->alpha_bar[train->count - 1]);
	for (int64_t i = 0; i < train->count; i++) {
		const double root = (sqrt(train->alpha_bar[i]) - last) * (first / (first - last));
		train->alpha_bar[i] = (float)(root * root);
	}
	if (keeps_signal(scheduler))
		train->alpha_bar[train->count - 1] = least;
}

/* Fills sigma. Returns false unless the noise rises from above 0 to a finite level; with zero_snr the last
 * one may be anything. */
static bool fill_sigma(struct smalti_train_sigmas *train, bool zero_snr)
{
	const int64_t count = zero_snr ? train->count - 1 : train->count;
	bool rises = true;
	for (int64_t i = 0; i < train->count; i++) {
		const float alpha_bar = (float)train->alpha_bar[i];
		train->sigma[i] = sqrtf((1.f - alpha_bar) / alpha_bar);
		rises = rises && (i >= count || train->sigma[i] >= (i > 0 ? train->sigma[i - 1] : FLT_MIN));
	}
	return rises && isfinite(train->sigma[count - 1]);
}

int smalti_train_sigmas_init(struct smalti_train_sigmas *train, const struct smalti_scheduler_config *config,
			     struct smalti_error *error)
{
	train->count = config->train_timesteps;
	train->alpha_bar = smalti_calloc(train->count, sizeof(double), error);
	train->sigma = smalti_calloc(train->count, sizeof(double), error);
	if (!train->alpha_bar || !train->sigma)
		return -1;
	fill_alpha_bar(train, config);
	if (config->zero_snr)
		rescale(train, config->scheduler);
	if (fill_sigma(train, config->zero_snr))
		return 0;
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "beta_start %g and beta_end %g over num_train_timesteps %lld leave no usable noise "
	    "levels; usual values are 0.0001, 0.02 and 1000",
	    config->beta_start, config->beta_end, (long long)config->train_timesteps);
}

void smalti_train_sigmas_clear(struct smalti_train_sigmas *train)
{
	free(train->alpha_bar);
	free(train->sigma);
}

double smalti_train_sigmas_sigma_at(const struct smalti_train_sigmas *train, double timestep)
{
	int64_t low = (int64_t)timestep;
	double below = train->sigma[low];
	if (low == train->count - 1)
		return below;
	return (train->sigma[low + 1] - below) * (timestep - (double)low) + below;
}

double smalti_train_sigmas_timestep_of(const struct smalti_train_sigmas *train, double sigma)
{
	double target = log(sigma);
	int64_t low = 0, high = train->count - 1;
	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;
		if (logf((float)train->sigma[middle]) <= target)
			low = middle;
		else
			high = middle;
	}
	double below = logf((float)train->sigma[low]), above = logf((float)train->sigma[high]);
	double weight = fmin(fmax((below - target) / (below - above), 0), 1);
	return (1 - weight) * (double)low + weight * (double)high;
}

struct smalti_point smalti_point_of_alpha_bar(double alpha_bar)
{
	double alpha = sqrt(alpha_bar), sigma = sqrt(1 - alpha_bar);
	return (struct smalti_point){alpha, sigma, log(alpha / sigma)};
}

struct smalti_point smalti_schedule_point(const struct smalti_schedule *schedule, int64_t i)
{
	const double sigma = schedule->sigma[i];
	if (schedule->config->sigmas == SMALTI_SIGMAS_FLOW)
		return (struct smalti_point){1 - sigma, sigma, log((1 - sigma) / sigma)};
	const double alpha = 1 / sqrt(sigma * sigma + 1);
	return (struct smalti_point){alpha, sigma * alpha, -log(sigma)};
}
