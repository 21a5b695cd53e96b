/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "graphs/parameters.h"
#include "graphs/weight_parts.h"
#include "kernels/backward.h"
#include "rt/session.h"

struct smalti_weights *smalti_weights_of_parameters(const struct smalti_parameters *parameters,
						    enum smalti_dtype compute, struct smalti_error *error)
{
	struct smalti_weights *weights = smalti_weights_new(NULL, NULL, compute, error);
	if (weights)
		weights->parameters = parameters;
	return weights;
}

bool smalti_weight_is_trained(const struct smalti_weight *weight)
{
	return weight->weights->parameters;
}

int64_t smalti_weight_parameter(const struct smalti_weight *weight, int index)
{
	return smalti_max(weight->parameter[index], -1);
}

/* Returns a trained parameter, whose number is 0 or more, or one of the base, whose number is below 0. */
static const struct smalti_parameter *parameter_of(const struct smalti_weight *weight, int index)
{
	const struct smalti_parameters *parameters = weight->weights->parameters;
	const int64_t i = weight->parameter[index];
	return i >= 0 ? &parameters->list[i] : &parameters->base->list[-1 - i];
}

/* Makes part `index` a parameter as the list has it: it may be a shard's part of a tensor. */
static void set_part(struct smalti_weight *weight, int index, int64_t parameter)
{
	weight->parameter[index] = parameter;
	const struct smalti_parameter *p = parameter_of(weight, index);
	struct smalti_tensor_view *view = &weight->source.part[index];
	*view = (struct smalti_tensor_view){.name = p->name,
					    .dtype = p->dtype,
					    .rank = p->rank,
					    .bytes = p->count * smalti_dtype_bytes(p->dtype)};
	memcpy(view->shape, p->shape, sizeof(p->shape));
}

void smalti_weight_add_parameter(struct smalti_weight *weight, const char *name)
{
	struct smalti_weights *weights = weight->weights;
	const struct smalti_parameters *base = weights->parameters->base;
	int64_t parameter = smalti_parameters_find(weights->parameters, name);
	const int64_t kept = parameter < 0 && base ? smalti_parameters_find(base, name) : -1;
	if (kept >= 0)
		parameter = -1 - kept;
	if (parameter < 0 && kept < 0)
		smalti_fail(&weights->error, SMALTI_EINVAL, "the parameters to be trained have no tensor %s",
			    name);
	else
		set_part(weight, weight->source.parts++, parameter);
}

void smalti_weight_take_parameter(struct smalti_weight *weight, const struct smalti_weight *of, int index,
				  int64_t first)
{
	const struct smalti_parameters *parameters = of->weights->parameters; /* adapters' are not cut */
	int64_t i = of->parameter[index];
	while (i + 1 < parameters->count && parameters->list[i].cut.first != first)
		i++;
	set_part(weight, index, i);
}

/* Copies within a step */

/* Tells whether operations read it. Those of a sharded tensor read its slices instead. */
static bool is_read(const struct smalti_weight *weight)
{
	return weight->slice || !parameter_of(weight, 0)->cut.is_part;
}

/* Tells whether products round the weight to 16 bits. */
static bool is_rounded(const struct smalti_weight *weight)
{
	const struct smalti_weight_source *source = &weight->source;
	return source->kind == SMALTI_WEIGHT_MATRIX && source->compute != SMALTI_F32 && is_read(weight);
}

/* Tells whether part `index` is rounded in each step. That of an adapter's base is rounded once, when it is
 * read. */
static bool is_rounded_anew(const struct smalti_weight *weight, int index)
{
	return is_rounded(weight) && parameter_of(weight, index)->dtype == SMALTI_F32;
}

void smalti_weights_store_base(struct smalti_weights *weights, struct smalti_task_group *task_group)
{
	struct smalti_parameters *base = weights->parameters->base;
	for (struct smalti_weight *weight = base ? weights->first : NULL; weight; weight = weight->next)
		for (int i = 0; i < weight->source.parts; i++) {
			const int64_t parameter = weight->parameter[i];
			if (parameter >= 0 || !is_rounded_anew(weight, i))
				continue;
			smalti_parameter_store_as(&base->list[-1 - parameter], task_group,
						  weight->source.compute);
			set_part(weight, i, parameter);
		}
}

/* Tells whether operations read a copy that joins its parts. */
static bool is_joined(const struct smalti_weight *weight)
{
	return weight->source.kind == SMALTI_WEIGHT_VECTOR && weight->source.parts > 1 && is_read(weight);
}

/* Tells whether rounded copies save time: they are smaller to move, and rounded once. */
static bool copies_save_time(const struct smalti_weights *weights, const struct smalti_session *session)
{
	return smalti_session_place_count(session) > 1 ||
	       smalti_product_dtype(weights->compute) != weights->compute;
}

struct smalti_tile *smalti_weight_step_part(const struct smalti_weight *weight, int index)
{
	return weight->part[index] ? weight->part[index] : parameter_of(weight, index)->value;
}

static void round_parts(struct smalti_weight *weight, struct smalti_task_group *task_group)
{
	const enum smalti_dtype compute = weight->source.compute;
	for (int i = 0; i < weight->source.parts; i++) {
		const struct smalti_parameter *p = parameter_of(weight, i);
		if (!is_rounded_anew(weight, i))
			continue;
		weight->part[i] = smalti_tile_new(task_group, p->shape[0],
						  p->count / p->shape[0] * smalti_dtype_bytes(compute));
		smalti_insert(convert, task_group, (.x = p->value, .y = weight->part[i]), .count = p->count,
			      .from = SMALTI_F32, .to = compute);
		weight->source.part[i].dtype = compute;
	}
}

/* Joins two biases. */
static void join_parts(struct smalti_weight *weight, struct smalti_task_group *task_group)
{
	const struct smalti_tensor_view *part = weight->source.part;
	weight->tile = smalti_tile_new(task_group, 1, part[0].bytes + part[1].bytes);
	smalti_insert(concat, task_group,
		      (.first = smalti_weight_step_part(weight, 0),
		       .second = smalti_weight_step_part(weight, 1), .y = weight->tile),
		      .first_bytes = part[0].bytes, .second_bytes = part[1].bytes);
}

void smalti_weights_begin_step(struct smalti_weights *weights, struct smalti_task_group *task_group)
{
	const bool rounds = copies_save_time(weights, task_group->session);
	for (struct smalti_weight *weight = weights->first; weight; weight = weight->next)
		if (rounds && is_rounded(weight))
			round_parts(weight, task_group);
		else if (is_joined(weight))
			join_parts(weight, task_group);
}

void smalti_weights_end_step(struct smalti_weights *weights)
{
	for (struct smalti_weight *weight = weights->first; weight; weight = weight->next) {
		smalti_tile_release(weight->tile);
		weight->tile = NULL;
		for (int i = 0; i < weight->source.parts; i++) {
			smalti_tile_release(weight->part[i]);
			weight->part[i] = NULL;
			weight->source.part[i].dtype = parameter_of(weight, i)->dtype;
		}
	}
}
