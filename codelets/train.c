/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "kernels/optimizers.h"
#include "kernels/scratch.h"
#include "samplers/diffusion_loss.h"
#include "samplers/draws.h"

/* Draws latents of a posterior [mean, std] whose means are in x0: x0 = mean + std·ξ. ξ is drawn after the
 * noise. */
static void draw_latents(struct smalti_generator *generator, const struct training_sample_arguments *a,
			 const float *std, float *room, float *x0)
{
	smalti_randn(generator, SMALTI_F32, a->count, room);
	for (int64_t i = 0; i < a->count; i++)
		x0[i] += std[i] * room[i];
}

int smalti_cpu_training_sample(const struct training_sample_data *data,
			       const struct training_sample_arguments *a, struct smalti_error *error)
{
	struct smalti_generator generator;
	float *std = smalti_scratch(SMALTI_SCRATCH_ROWS, 2 * a->count * (int64_t)sizeof(float), error);
	float *x0 = data->x0;
	if (!std)
		return -1;
	smalti_generator_seed(&generator, (uint64_t)a->seed);
	for (int64_t i = 0; i < a->skip; i++)
		smalti_mt19937_next(&generator.mt);
	smalti_randn(&generator, SMALTI_F32, a->count, data->noise);
	smalti_widen(a->dtype, data->moments, a->count, x0);
	if (a->draws) {
		const char *moments = data->moments;
		smalti_widen(a->dtype, moments + a->count * smalti_dtype_bytes(a->dtype), a->count, std);
		draw_latents(&generator, a, std, std + a->count, x0);
	}
	for (int64_t i = 0; i < a->count; i++)
		x0[i] *= a->factor;
	smalti_add_noise(a->t, a->count, x0, data->noise, data->xt);
	return 0;
}

int smalti_cpu_diffusion_loss(const struct diffusion_loss_data *data,
			      const struct diffusion_loss_arguments *a, struct smalti_error *error)
{
	(void)error;
	const struct smalti_diffusion_loss loss = {.t = a->t,
						   .count = a->count,
						   .has_variance = a->has_variance,
						   .learns_variance = a->learns_variance,
						   .weight = a->weight,
						   .scale = a->scale};
	const struct smalti_loss_parts parts =
	    smalti_diffusion_loss(&loss, data->x0, data->noise, data->output, data->gradient);
	memcpy(data->parts, &parts, sizeof(parts));
	return 0;
}

int smalti_cpu_initial_value(const struct initial_value_data *data, const struct initial_value_arguments *a,
			     struct smalti_error *error)
{
	(void)error;
	struct smalti_generator generator;
	float *value = data->value;
	smalti_generator_seed(&generator, (uint64_t)a->seed);
	if (a->normal)
		smalti_randn(&generator, SMALTI_F32, a->count, value);
	else
		smalti_rand(&generator, a->count, value);
	for (int64_t i = 0; i < a->count; i++)
		value[i] = a->offset + a->factor * value[i];
	return 0;
}

static double elements(const struct came_arguments *a)
{
	return (double)a->shape.parts * (double)a->shape.batch * (double)a->shape.rows *
	       (double)a->shape.columns;
}

double smalti_came_flops(const struct came_arguments *a)
{
	return (a->shape.factored ? 25.0 : 15.0) * elements(a);
}

double smalti_came_bytes(const struct came_arguments *a)
{
	return sizeof(float) * (5.0 * elements(a) + 2.0 * (double)smalti_came_factors(&a->shape));
}

int smalti_cpu_came(const struct came_data *data, const struct came_arguments *a, struct smalti_error *error)
{
	const float *const gradient[] = {data->gradient0, data->gradient1, data->gradient2};
	float *const value[] = {data->value0, data->value1, data->value2};
	float *const mean[] = {data->mean0, data->mean1, data->mean2};
	return smalti_came(&a->came, &a->shape, gradient, value, mean, data->factors, error);
}
