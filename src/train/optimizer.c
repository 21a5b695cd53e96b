/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optimizer.h"
#include "codelets/codelets.h"

/* The parameters that one task updates; with AdamW it is a single one. */
struct smalti_optimizer_group {
	int64_t members[SMALTI_CAME_PARTS]; /* indices in the list */
	int count;
	struct smalti_tile *means[SMALTI_CAME_PARTS];
	struct smalti_tile *second; /* squares or factors */
};

/* Finds the first of an attention's tensors that PixArt stacks: "to_k", "to_q" and "to_v", of cross-attention
 * without "to_q". Returns what follows that part of the name, as in ".weight"; NULL: not the first. */
static const char *stacked_behind(const char *name, bool *with_q)
{
	static const char *const parts[] = {".attn2.to_k", ".attn1.to_k"};
	for (int i = 0; i < 2; i++) {
		const char *found = strstr(name, parts[i]);
		*with_q = i == 1;
		if (found)
			return found + strlen(parts[i]);
	}
	return NULL;
}

/* Returns the index of the tensor with another letter for the "k" of the name at `place`; -1: none. */
static int64_t sibling(const struct smalti_parameters *parameters, int64_t place, const char *behind,
		       char letter)
{
	const char *name = parameters->list[place].name;
	char other[256];
	if (snprintf(other, sizeof(other), "%s", name) >= (int)sizeof(other))
		return -1;
	other[behind - name - 1] = letter;
	return smalti_parameters_find(parameters, other);
}

static void add_stack(const struct smalti_parameters *parameters, struct smalti_optimizer_group *group,
		      bool *taken)
{
	bool with_q;
	const char *behind = stacked_behind(parameters->list[group->members[0]].name, &with_q);
	for (int i = 0; behind && i < 2; i++) {
		const int64_t other =
		    i == 0 && !with_q ? -1 : sibling(parameters, group->members[0], behind, "qv"[i]);
		if (other >= 0) {
			taken[other] = true;
			group->members[group->count++] = other;
		}
	}
}

static int make_groups(struct smalti_optimizer *optimizer, struct smalti_error *error)
{
	const struct smalti_parameters *parameters = optimizer->parameters;
	const bool stacks = optimizer->options->kind == SMALTI_OPTIMIZER_CAME &&
			    optimizer->options->groups == SMALTI_CAME_GROUPS_PIXART;
	SCOPED(free) bool *taken = smalti_calloc(parameters->count, sizeof(*taken), error);
	optimizer->groups = smalti_calloc(parameters->count, sizeof(*optimizer->groups), error);
	if (!taken || !optimizer->groups)
		return -1;
	for (int64_t i = 0; i < parameters->count; i++) {
		if (taken[i]) /* by an earlier group: "to_k" is the first in the order of names */
			continue;
		struct smalti_optimizer_group *group = &optimizer->groups[optimizer->group_count++];
		group->members[group->count++] = i;
		if (stacks)
			add_stack(parameters, group, taken);
	}
	return 0;
}

static struct smalti_came_shape shape_of(const struct smalti_optimizer *optimizer,
					 const struct smalti_optimizer_group *group)
{
	const struct smalti_parameter *first = &optimizer->parameters->list[group->members[0]];
	struct smalti_came_shape shape = {
	    .parts = group->count, .batch = 1, .rows = first->count, .columns = 1};
	if (first->rank < 2)
		return shape;
	shape.factored = true;
	shape.columns = first->shape[first->rank - 1];
	shape.rows = first->shape[first->rank - 2];
	shape.batch = first->count / shape.rows / shape.columns;
	return shape;
}

/* Adds a tensor of zeros, called `kind`.NAME, to the state. */
static struct smalti_tile *add_state(struct smalti_optimizer *optimizer, struct smalti_task_group *task_group,
				     const char *kind, const struct smalti_parameter *like,
				     struct smalti_error *error)
{
	struct smalti_parameter *state = &optimizer->state[optimizer->state_count];
	*state = *like;
	state->name = smalti_format(error, "%s.%s", kind, like->name);
	state->value = state->name ? smalti_parameter_tile(state, task_group) : NULL;
	if (!state->name)
		return NULL;
	optimizer->state_count++;
	if (state->value && like->value)
		state->value->owner = like->value->owner;
	smalti_insert(clear, task_group, (.y = state->value), .bytes = state->count * (int64_t)sizeof(float));
	return state->value;
}

static int add_group_state(struct smalti_optimizer *optimizer, struct smalti_task_group *task_group,
			   struct smalti_optimizer_group *group, struct smalti_error *error)
{
	const struct smalti_parameter *list = optimizer->parameters->list;
	struct smalti_parameter second = list[group->members[0]];
	const bool came = optimizer->options->kind == SMALTI_OPTIMIZER_CAME;
	if (came) {
		const struct smalti_came_shape shape = shape_of(optimizer, group);
		second.rank = 1;
		second.shape[0] = second.count = smalti_came_factors(&shape);
	}
	for (int i = 0; i < group->count; i++) {
		group->means[i] = add_state(optimizer, task_group, "mean", &list[group->members[i]], error);
		if (!group->means[i])
			return -1;
	}
	group->second = add_state(optimizer, task_group, came ? "factors" : "square", &second, error);
	return group->second ? 0 : -1;
}

struct smalti_optimizer *smalti_optimizer_new(struct smalti_task_group *task_group,
					      const struct smalti_parameters *parameters,
					      const struct smalti_optimizer_options *options,
					      struct smalti_error *error)
{
	struct smalti_optimizer *optimizer = smalti_calloc(1, sizeof(*optimizer), error);
	if (!optimizer)
		return NULL;
	optimizer->options = options;
	optimizer->parameters = parameters;
	optimizer->state = smalti_calloc(2 * parameters->count, sizeof(*optimizer->state), error);
	int status = optimizer->state ? make_groups(optimizer, error) : -1;
	for (int64_t i = 0; i < optimizer->group_count && status == 0; i++)
		status = add_group_state(optimizer, task_group, &optimizer->groups[i], error);
	if (status == 0)
		return optimizer;
	smalti_optimizer_free(optimizer);
	return NULL;
}

void smalti_optimizer_free(struct smalti_optimizer *optimizer)
{
	if (!optimizer)
		return;
	for (int64_t i = 0; optimizer->state && i < optimizer->state_count; i++) {
		smalti_tile_release(optimizer->state[i].value);
		free((char *)optimizer->state[i].name);
	}
	free(optimizer->state);
	free(optimizer->groups);
	free(optimizer);
}

static void update_by_adamw(const struct smalti_optimizer *optimizer, struct smalti_task_group *task_group,
			    const struct smalti_optimizer_group *group, struct smalti_tile *gradient,
			    const struct smalti_update *update)
{
	const struct smalti_optimizer_options *o = optimizer->options;
	const struct smalti_parameter *parameter = &optimizer->parameters->list[group->members[0]];
	smalti_insert(adamw, task_group,
		      (.gradient = gradient, .value = parameter->value, .mean = group->means[0],
		       .square = group->second),
		      .adamw = {.lr = update->rate,
				.betas = {o->betas[0], o->betas[1]},
				.epsilon = o->epsilons[0],
				.weight_decay = o->weight_decay,
				.gradient_scale = update->gradient_scale,
				.step = update->step},
		      .count = parameter->count);
}

static void update_by_came(const struct smalti_optimizer *optimizer, struct smalti_task_group *task_group,
			   const struct smalti_optimizer_group *group, struct smalti_tile *const *gradients,
			   const struct smalti_update *update)
{
	const struct smalti_optimizer_options *o = optimizer->options;
	struct smalti_tile *values[SMALTI_CAME_PARTS] = {NULL}, *own[SMALTI_CAME_PARTS] = {NULL};
	for (int i = 0; i < group->count; i++) {
		values[i] = optimizer->parameters->list[group->members[i]].value;
		own[i] = gradients[group->members[i]];
	}
	smalti_insert(came, task_group,
		      (.gradient0 = own[0], .gradient1 = own[1], .gradient2 = own[2], .value0 = values[0],
		       .value1 = values[1], .value2 = values[2], .mean0 = group->means[0],
		       .mean1 = group->means[1], .mean2 = group->means[2], .factors = group->second),
		      .came = {.lr = update->rate,
			       .betas = {o->betas[0], o->betas[1], o->betas[2]},
			       .epsilons = {o->epsilons[0], o->epsilons[1]},
			       .limit = o->limit,
			       .weight_decay = o->weight_decay,
			       .gradient_scale = update->gradient_scale},
		      .shape = shape_of(optimizer, group));
}

void smalti_optimizer_update(const struct smalti_optimizer *optimizer, struct smalti_task_group *task_group,
			     struct smalti_tile *const *gradients, const struct smalti_update *update)
{
	for (int64_t i = 0; i < optimizer->group_count; i++) {
		const struct smalti_optimizer_group *group = &optimizer->groups[i];
		if (optimizer->options->kind == SMALTI_OPTIMIZER_CAME)
			update_by_came(optimizer, task_group, group, gradients, update);
		else
			update_by_adamw(optimizer, task_group, group, gradients[group->members[0]], update);
	}
}
