/* SPDX-License-Identifier: Apache-2.0 */
/* Places the steps among the training timesteps, to the last bit as numpy computes it (docs/reference.md 4.2
 * and 4.4). */
#include "samplers/schedule.h"

#include <math.h>

/* Spaces `points` timesteps below `top` evenly down to 0, and uses the first of them. */
static void spread_linspace(struct smalti_schedule *schedule, int64_t top, int64_t points)
{
	for (int64_t i = 0; i < schedule->steps; i++)
		schedule->timestep[i] = smalti_linspace(0, (double)(top - 1), points, points - 1 - i);
}

static int spread_leading(struct smalti_schedule *schedule, int64_t top, int64_t points,
			  struct smalti_error *error)
{
	int64_t stride = top / points, offset = schedule->config->steps_offset;
	if (stride == 0)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "timestep_spacing leading has no room for %lld steps; ask for at most %lld",
		    (long long)schedule->steps, (long long)(schedule->steps - points + top));
	int64_t first = (points - 1) * stride, room = schedule->train->count - 1 - first;
	if (offset < 0 || offset > room)
		return smalti_fail(error, SMALTI_EINVAL,
				   "steps_offset %lld moves the first of %lld steps out of the training's "
				   "timesteps; 0 to %lld is possible",
				   (long long)offset, (long long)schedule->steps, (long long)room);
	for (int64_t i = 0; i < schedule->steps; i++)
		schedule->timestep[i] = (double)(first - i * stride + offset);
	return 0;
}

/* Computes numpy.arange(top, 0, -train / steps), rounded, less 1; arange multiplies the rounded distance of
 * its first two values. */
static int spread_trailing(struct smalti_schedule *schedule, int64_t top, struct smalti_error *error)
{
	const double first = (double)top, train = (double)schedule->train->count;
	const double distance = (first - train / (double)schedule->steps) - first;
	for (int64_t i = 0; i < schedule->steps; i++)
		schedule->timestep[i] = rint(first + (double)i * distance) - 1;
	if (schedule->timestep[schedule->steps - 1] >= 0)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "timestep_spacing trailing has no room for %lld steps below the timestep %lld of "
			   "\"lambda_min_clipped\"; ask for fewer",
			   (long long)schedule->steps, (long long)top);
}

/* Spreads the timesteps below `top`. Linspace and leading spacing make `points` of them down to 0, and use
 * the first `steps`: solvers that treat 0 apart have one point more. Linspace gives fractions. */
static int spread(struct smalti_schedule *schedule, int64_t top, int64_t points, struct smalti_error *error)
{
	switch (schedule->config->spacing) {
	case SMALTI_SPACING_LINSPACE:
		spread_linspace(schedule, top, points);
		return 0;
	case SMALTI_SPACING_LEADING:
		return spread_leading(schedule, top, points, error);
	case SMALTI_SPACING_TRAILING:
		break;
	}
	return spread_trailing(schedule, top, error);
}

/* Places the sigmas on the configuration's curve, with their fractional timesteps. */
static void place_on_curve(struct smalti_schedule *schedule, double first, double last)
{
	for (int64_t i = 0; i < schedule->steps; i++) {
		const double sigma = smalti_sigma_on_curve(schedule->config, i, schedule->steps, first, last);
		schedule->sigma[i] = (float)sigma;
		schedule->timestep[i] = smalti_train_sigmas_timestep_of(schedule->train, sigma);
	}
}

/* Tells whether timesteps of a curve are rounded before they become integers. */
static bool rounds(const struct smalti_scheduler_config *config)
{
	return (config->sigmas == SMALTI_SIGMAS_KARRAS || config->sigmas == SMALTI_SIGMAS_LU) &&
	       config->beta_schedule != SMALTI_BETAS_SQUARED_COSINE;
}

/* Places the steps of a solver with integer timesteps below `top`. */
static int place_solver(struct smalti_schedule *schedule, int64_t top, struct smalti_error *error)
{
	const struct smalti_train_sigmas *train = schedule->train;
	const bool trained = schedule->config->sigmas == SMALTI_SIGMAS_TRAINED;
	if (!trained)
		place_on_curve(schedule, train->sigma[train->count - 1], train->sigma[0]);
	else if (spread(schedule, top, schedule->steps + 1, error) != 0)
		return -1;
	for (int64_t i = 0; i < schedule->steps; i++) {
		double *timestep = &schedule->timestep[i];
		*timestep = trained || rounds(schedule->config) ? rint(*timestep) : trunc(*timestep);
		if (trained)
			schedule->sigma[i] = train->sigma[(int64_t)*timestep];
	}
	return 0;
}

/* Places step i of a solver of flow at that sigma. */
static void place_flow(struct smalti_schedule *schedule, int64_t i, double sigma)
{
	schedule->sigma[i] = (float)sigma;
	schedule->timestep[i] = trunc(sigma * (double)schedule->train->count);
}

static double final_sigma(const struct smalti_schedule *schedule)
{
	return schedule->config->final_sigma == SMALTI_FINAL_SIGMA_ZERO ? 0 : schedule->train->sigma[0];
}

/* Checks that `what`, which multiplies by e^h, need not go to a level without noise. */
static int check_final_sigma(const struct smalti_scheduler_config *config, const char *what,
			     struct smalti_error *error)
{
	if (!what || config->final_sigma == SMALTI_FINAL_SIGMA_MIN)
		return 0;
	return smalti_fail(error, SMALTI_EUNSUPPORTED,
			   "%s cannot end without noise: expected \"final_sigmas_type\" sigma_min with it, "
			   "found zero",
			   what);
}

/* Returns how many of the training's timesteps are used: those that are not noisier than asked. */
static int64_t unclipped(const struct smalti_schedule *schedule)
{
	int64_t top = schedule->train->count;
	while (top > 0 && -log(schedule->train->sigma[top - 1]) < schedule->config->lambda_min_clipped)
		top--;
	return top;
}

int smalti_place_dpm_solver(struct smalti_schedule *schedule, struct smalti_error *error)
{
	const int64_t steps = schedule->steps, top = unclipped(schedule);
	const bool of_noise = schedule->config->algorithm == SMALTI_DPM_SOLVER_EPSILON;
	if (check_final_sigma(schedule->config, of_noise ? "\"algorithm_type\" dpmsolver" : NULL, error) < 0)
		return -1;
	schedule->sigma[steps] = final_sigma(schedule);
	if (schedule->config->sigmas != SMALTI_SIGMAS_FLOW) {
		if (top > 0)
			return place_solver(schedule, top, error);
		return smalti_fail(error, SMALTI_EINVAL, "\"lambda_min_clipped\" %g is above all levels",
				   schedule->config->lambda_min_clipped);
	}
	for (int64_t i = 0; i < steps; i++) {
		const double clean =
		    smalti_linspace(1, 1 / (double)schedule->train->count, steps + 1, steps - i);
		place_flow(schedule, i, smalti_flow_sigma(schedule->config, 1 - clean));
	}
	return 0;
}

/* Returns what of UniPC's configuration has no step to a level without noise; NULL: nothing. */
static const char *divergent(const struct smalti_scheduler_config *config)
{
	if (config->bh == SMALTI_BH1)
		return "\"solver_type\" bh1";
	if (!config->predict_x0)
		return "\"predict_x0\" false";
	return config->lower_order_final || config->solver_order == 1 ? NULL : "\"lower_order_final\" false";
}

int smalti_place_unipc(struct smalti_schedule *schedule, struct smalti_error *error)
{
	const int64_t steps = schedule->steps;
	const double near = 1e-6; /* sigma 1 has no lambda */
	const bool trained = schedule->config->sigmas == SMALTI_SIGMAS_TRAINED;
	if (check_final_sigma(schedule->config, divergent(schedule->config), error) < 0)
		return -1;
	if (schedule->config->sigmas != SMALTI_SIGMAS_FLOW) {
		if (place_solver(schedule, schedule->train->count, error) != 0)
			return -1;
	} else {
		const double least = 1 / (double)schedule->train->count;
		for (int64_t i = 0; i < steps; i++) {
			const double sigma = smalti_sigma_on_curve(schedule->config, i, steps + 1, 1, least);
			place_flow(schedule, i, sigma > 1 - near ? sigma - near : sigma);
		}
	}
	schedule->sigma[steps] = final_sigma(schedule);
	if (schedule->config->final_sigma == SMALTI_FINAL_SIGMA_MIN && !trained)
		schedule->sigma[steps] = schedule->sigma[steps - 1];
	return 0;
}

int smalti_place_sa_solver(struct smalti_schedule *schedule, struct smalti_error *error)
{
	if (place_solver(schedule, schedule->train->count, error) != 0)
		return -1;
	schedule->sigma[schedule->steps] = schedule->config->sigmas == SMALTI_SIGMAS_KARRAS
					       ? schedule->sigma[schedule->steps - 1]
					       : schedule->train->sigma[0];
	return 0;
}

int smalti_place_euler(struct smalti_schedule *schedule, struct smalti_error *error)
{
	if (spread(schedule, schedule->train->count, schedule->steps, error) != 0)
		return -1;
	for (int64_t i = 0; i < schedule->steps; i++) {
		schedule->timestep[i] = (float)schedule->timestep[i];
		schedule->sigma[i] = smalti_train_sigmas_sigma_at(schedule->train, schedule->timestep[i]);
	}
	if (schedule->config->sigmas != SMALTI_SIGMAS_TRAINED)
		place_on_curve(schedule, schedule->sigma[0], schedule->sigma[schedule->steps - 1]);
	for (int64_t i = 0; i < schedule->steps; i++) {
		schedule->timestep[i] = (float)schedule->timestep[i];
		schedule->sigma[i] = (float)schedule->sigma[i];
	}
	schedule->sigma[schedule->steps] = final_sigma(schedule);
	return 0;
}

/* Shifts twice, as diffusers does: the ends, and then all. */
int smalti_place_flow_match(struct smalti_schedule *schedule, struct smalti_error *error)
{
	const struct smalti_scheduler_config *config = schedule->config;
	const double train = (double)schedule->train->count;
	const double least = smalti_flow_sigma(config, 1 / train);
	(void)error;
	for (int64_t i = 0; i < schedule->steps; i++) {
		const double sigma = smalti_sigma_on_curve(config, i, schedule->steps, 1, least);
		schedule->sigma[i] = (float)sigma;
		schedule->timestep[i] = (float)(sigma * train);
	}
	return 0;
}

int smalti_place_ddim(struct smalti_schedule *schedule, struct smalti_error *error)
{
	if (spread(schedule, schedule->train->count, schedule->steps, error) != 0)
		return -1;
	for (int64_t i = 0; i < schedule->steps; i++)
		schedule->timestep[i] = rint(schedule->timestep[i]);
	return 0;
}

/* Selects from the first of the `original` timesteps of the distillation, as many as the strength says. */
int smalti_place_lcm(struct smalti_schedule *schedule, struct smalti_error *error)
{
	const struct smalti_scheduler_config *config = schedule->config;
	const double strength = config->strength > 0 ? config->strength : 1;
	const int64_t original = config->original_inference_steps, train = schedule->train->count;
	const int64_t usable = (int64_t)((double)original * strength);
	if (schedule->steps > usable)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "the LCM scheduler cannot do %lld steps at strength %g; ask for at most %lld, "
		    "that share of original_inference_steps, %lld",
		    (long long)schedule->steps, strength, (long long)usable, (long long)original);
	const int64_t ratio = train / original;
	for (int64_t i = 0; i < schedule->steps; i++) {
		int64_t skipped = (int64_t)((double)i * ((double)usable / (double)schedule->steps));
		schedule->timestep[i] = (double)((usable - skipped) * ratio - 1);
	}
	return 0;
}

/* Takes, for a single step, the timestep that one-step models are distilled for. */
int smalti_place_ddpm(struct smalti_schedule *schedule, struct smalti_error *error)
{
	const int64_t one_step = 400;
	if (schedule->steps == 1 && schedule->train->count > one_step)
		schedule->timestep[0] = (double)one_step;
	else if (schedule->config->variance == SMALTI_VARIANCE_OTHER)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "DDPMScheduler with %lld steps: \"variance_type\" should be "
				   "\"fixed_small\"; ask for 1 step, or another scheduler",
				   (long long)schedule->steps);
	else if (smalti_place_ddim(schedule, error) != 0)
		return -1;
	return 0;
}
