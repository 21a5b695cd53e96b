/* SPDX-License-Identifier: Apache-2.0 */
/* Places the steps among the training timesteps, to the last bit as numpy computes it (docs/reference.md 4.2
 * and 4.4). */
#include "samplers/schedule.h"

#include <math.h>

/* Returns numpy.linspace(0, to, count)[index]. */
static double linspace(double to, int64_t count, int64_t index)
{
	if (count > 1 && index == count - 1)
		return to;
	return count == 1 ? 0 : (double)index * (to / (double)(count - 1));
}

static int spread_linspace(struct smalti_schedule *schedule, int64_t points, struct smalti_error *error)
{
	if (points == 1)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "timestep_spacing linspace puts the only step at timestep 0, where there is "
		    "no noise; ask for 2 steps or more, or another scheduler");
	for (int64_t i = 0; i < schedule->steps; i++)
		schedule->timestep[i] =
		    linspace((double)(schedule->train->count - 1), points, points - 1 - i);
	return 0;
}

static int spread_leading(struct smalti_schedule *schedule, int64_t points, struct smalti_error *error)
{
	int64_t stride = schedule->train->count / points, offset = schedule->config->steps_offset;
	if (stride == 0)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "timestep_spacing leading has no room for %lld steps; ask for at most %lld",
		    (long long)schedule->steps, (long long)schedule->steps - 1);
	int64_t top = (points - 1) * stride, room = schedule->train->count - 1 - top;
	if (offset < 0 || offset > room)
		return smalti_fail(error, SMALTI_EINVAL,
				   "steps_offset %lld moves the first of %lld steps out of the training's "
				   "timesteps; 0 to %lld is possible",
				   (long long)offset, (long long)schedule->steps, (long long)room);
	for (int64_t i = 0; i < schedule->steps; i++)
		schedule->timestep[i] = (double)(top - i * stride + offset);
	return 0;
}

/* Computes numpy.arange(train, 0, -train / steps), rounded, less 1; arange multiplies the rounded distance of
 * its first two values. */
static void spread_trailing(struct smalti_schedule *schedule)
{
	double first = (double)schedule->train->count;
	double distance = (first - first / (double)schedule->steps) - first;
	for (int64_t i = 0; i < schedule->steps; i++)
		schedule->timestep[i] = rint(first + (double)i * distance) - 1;
}

/* Spreads the timesteps. Linspace and leading spacing make `points` of them from the top down to 0, and use
 * the first `steps`: solvers that treat 0 apart have one point more. Linspace gives fractions. */
static int spread(struct smalti_schedule *schedule, int64_t points, struct smalti_error *error)
{
	if (schedule->config->spacing == SMALTI_SPACING_LINSPACE)
		return spread_linspace(schedule, points, error);
	if (schedule->config->spacing == SMALTI_SPACING_LEADING)
		return spread_leading(schedule, points, error);
	spread_trailing(schedule);
	return 0;
}

/* Spaces sigmas as Karras et al. (2022), with the fractional timesteps of those sigmas. */
static void place_karras(struct smalti_schedule *schedule, double first, double last)
{
	const double rho = 7;
	double top = pow(first, 1 / rho), bottom = pow(last, 1 / rho);
	for (int64_t i = 0; i < schedule->steps; i++) {
		double sigma = pow(top + linspace(1, schedule->steps, i) * (bottom - top), rho);
		schedule->sigma[i] = (float)sigma;
		schedule->timestep[i] = smalti_train_sigmas_timestep_of(schedule->train, sigma);
	}
}

static int place_solver(struct smalti_schedule *schedule, struct smalti_error *error)
{
	const struct smalti_train_sigmas *train = schedule->train;
	if (schedule->config->karras_sigmas)
		place_karras(schedule, train->sigma[train->count - 1], train->sigma[0]);
	else if (spread(schedule, schedule->steps + 1, error) != 0)
		return -1;
	for (int64_t i = 0; i < schedule->steps; i++) {
		schedule->timestep[i] = rint(schedule->timestep[i]);
		if (!schedule->config->karras_sigmas)
			schedule->sigma[i] = train->sigma[(int64_t)schedule->timestep[i]];
	}
	return 0;
}

static double final_sigma(const struct smalti_schedule *schedule)
{
	return schedule->config->final_sigma == SMALTI_FINAL_SIGMA_ZERO ? 0 : schedule->train->sigma[0];
}

int smalti_place_dpm_solver(struct smalti_schedule *schedule, struct smalti_error *error)
{
	schedule->sigma[schedule->steps] = final_sigma(schedule);
	return place_solver(schedule, error);
}

int smalti_place_sa_solver(struct smalti_schedule *schedule, struct smalti_error *error)
{
	if (place_solver(schedule, error) != 0)
		return -1;
	schedule->sigma[schedule->steps] = schedule->config->karras_sigmas
					       ? schedule->sigma[schedule->steps - 1]
					       : schedule->train->sigma[0];
	return 0;
}

int smalti_place_euler(struct smalti_schedule *schedule, struct smalti_error *error)
{
	if (spread(schedule, schedule->steps, error) != 0)
		return -1;
	for (int64_t i = 0; i < schedule->steps; i++) {
		schedule->timestep[i] = (float)schedule->timestep[i];
		schedule->sigma[i] = smalti_train_sigmas_sigma_at(schedule->train, schedule->timestep[i]);
	}
	if (schedule->config->karras_sigmas)
		place_karras(schedule, schedule->sigma[0], schedule->sigma[schedule->steps - 1]);
	for (int64_t i = 0; i < schedule->steps; i++) {
		schedule->timestep[i] = (float)schedule->timestep[i];
		schedule->sigma[i] = (float)schedule->sigma[i];
	}
	schedule->sigma[schedule->steps] = final_sigma(schedule);
	return 0;
}

int smalti_place_ddim(struct smalti_schedule *schedule, struct smalti_error *error)
{
	if (spread(schedule, schedule->steps, error) != 0)
		return -1;
	for (int64_t i = 0; i < schedule->steps; i++)
		schedule->timestep[i] = rint(schedule->timestep[i]);
	return 0;
}

/* Selects from the `original` timesteps of the distillation. */
int smalti_place_lcm(struct smalti_schedule *schedule, struct smalti_error *error)
{
	int64_t original = schedule->config->original_inference_steps, train = schedule->train->count;
	if (schedule->steps > original)
		return smalti_fail(error, SMALTI_EINVAL,
				   "the LCM scheduler cannot do %lld steps; ask for at most "
				   "original_inference_steps, %lld",
				   (long long)schedule->steps, (long long)original);
	const int64_t ratio = train / original;
	for (int64_t i = 0; i < schedule->steps; i++) {
		int64_t skipped = (int64_t)((double)i * ((double)original / (double)schedule->steps));
		schedule->timestep[i] = (double)((original - skipped) * ratio - 1);
	}
	return 0;
}

/* Takes the timestep that one-step models are distilled for. */
int smalti_place_dmd(struct smalti_schedule *schedule, struct smalti_error *error)
{
	const int64_t timestep = 400;
	if (schedule->steps != 1 || schedule->train->count <= timestep)
		return smalti_fail(
		    error, SMALTI_EUNSUPPORTED,
		    "DDPMScheduler with %lld steps of %lld training timesteps; only one-step (DMD) "
		    "models are supported with it: ask for 1 step, or another scheduler",
		    (long long)schedule->steps, (long long)schedule->train->count);
	schedule->timestep[0] = (double)timestep;
	return 0;
}
