/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/adapter_names.h"
#include "graphs/parameters.h"

/* Names of lists of targets. A name is a target that is one of these, or ends in a dot and one of these. */
static const struct {
	const char *name, *targets;
} lists[] = {
    {"attention", "to_q,to_k,to_v,to_out.0"},
    {"all", "to_q,to_k,to_v,to_out.0,proj_out,ff.net.0.proj,ff.net.2,proj,linear,linear_1,linear_2"},
};

static const char *targets_of(const char *text)
{
	for (size_t i = 0; i < COUNT_OF(lists); i++)
		if (strcmp(text, lists[i].name) == 0)
			return lists[i].targets;
	return text;
}

const char *smalti_parameter_module(const char *name)
{
	return strncmp(name, SMALTI_PEFT_PREFIX, strlen(SMALTI_PEFT_PREFIX)) == 0
		   ? name + strlen(SMALTI_PEFT_PREFIX)
		   : name;
}

/* Returns the bytes of a matrix's module in its name; 0: it is no matrix. */
static size_t module_length(const struct smalti_parameter *parameter)
{
	const int64_t stem = smalti_stem(parameter->name, ".weight");
	return parameter->rank >= 2 && stem > 0 ? (size_t)stem : 0;
}

static bool ends_in(const char *name, size_t length, const char *target, size_t size)
{
	return size > 0 && length >= size && memcmp(name + length - size, target, size) == 0 &&
	       (length == size || name[length - size - 1] == '.');
}

/* Returns the target behind `at`, a list with commas; NULL behind the last. */
static const char *next_target(const char *at)
{
	at += strcspn(at, ",");
	return *at ? at + 1 : NULL;
}

/* Tells whether a module is one of the targets. */
static bool is_target(const char *name, size_t length, const char *targets)
{
	bool found = false;
	for (const char *at = targets; at && !found; at = next_target(at))
		found = ends_in(name, length, at, strcspn(at, ","));
	return found;
}

/* Refuses targets that the base does not have. */
static int check_targets(const struct smalti_parameters *base, const char *targets,
			 struct smalti_error *error)
{
	for (const char *at = targets; at; at = next_target(at)) {
		const size_t size = strcspn(at, ",");
		bool found = false;
		for (int64_t i = 0; i < base->count && !found; i++)
			found = ends_in(base->list[i].name, module_length(&base->list[i]), at, size);
		if (!found)
			return smalti_fail(
			    error, SMALTI_EINVAL,
			    "targets of the adapter: no matrix of the transformer is called "
			    "'%.*s'; expected \"attention\", \"all\", or last parts of names such "
			    "as \"to_q,to_k,to_v,to_out.0,ff.net.0.proj,ff.net.2\"",
			    (int)smalti_min((int64_t)size, 60), at);
	}
	return 0;
}

/* Adds A and B of a matrix to the list of tensors. */
static int add_pair(struct smalti_inventory *inventory, const struct smalti_parameter *matrix, size_t length,
		    int64_t rank, struct smalti_error *error)
{
	int64_t a[SMALTI_PARAMETER_RANK], b[SMALTI_PARAMETER_RANK];
	SCOPED(free)
	char *a_name =
	    smalti_format(error, SMALTI_PEFT_PREFIX "%.*s.lora_A.weight", (int)length, matrix->name);
	SCOPED(free)
	char *b_name =
	    smalti_format(error, SMALTI_PEFT_PREFIX "%.*s.lora_B.weight", (int)length, matrix->name);
	for (int i = 0; i < SMALTI_PARAMETER_RANK; i++) {
		a[i] = matrix->shape[i];
		b[i] = 1;
	}
	a[0] = b[1] = rank;
	b[0] = matrix->shape[0];
	return a_name && b_name &&
		       smalti_inventory_add(inventory, a_name, SMALTI_F32, matrix->rank, a, error) &&
		       smalti_inventory_add(inventory, b_name, SMALTI_F32, matrix->rank, b, error)
		   ? 0
		   : -1;
}

static int list_tensors(struct smalti_inventory *inventory, const struct smalti_parameters *base,
			const struct smalti_lora_shape *shape, struct smalti_error *error)
{
	const char *targets = targets_of(shape->targets);
	int status = check_targets(base, targets, error);
	for (int64_t i = 0; i < base->count && status == 0; i++) {
		const struct smalti_parameter *matrix = &base->list[i];
		const size_t length = module_length(matrix);
		if (length && is_target(matrix->name, length, targets))
			status = add_pair(inventory, matrix, length, shape->rank, error);
	}
	smalti_inventory_sort(inventory);
	return status;
}

struct smalti_parameters *smalti_adapter_parameters_new(struct smalti_task_group *task_group,
							struct smalti_parameters *base,
							const struct smalti_lora_shape *shape,
							struct smalti_error *error)
{
	struct smalti_parameters *parameters = smalti_calloc(1, sizeof(*parameters), error);
	if (!parameters)
		return NULL;
	*parameters = (struct smalti_parameters){.architecture = base->architecture,
						 .base = base,
						 .scale = shape->alpha / (double)shape->rank,
						 .strategy = base->strategy,
						 .shards = base->shards};
	if (list_tensors(&parameters->inventory, base, shape, error) == 0)
		parameters->list =
		    smalti_calloc(parameters->inventory.count, sizeof(*parameters->list), error);
	if (!parameters->list) {
		smalti_parameters_free(parameters);
		return NULL;
	}
	for (; parameters->count < parameters->inventory.count; parameters->count++) {
		struct smalti_parameter *added = &parameters->list[parameters->count];
		*added =
		    smalti_parameter_of(&parameters->inventory.tensors[parameters->count], parameters->count);
		added->value = smalti_parameter_tile(added, task_group);
	}
	return parameters;
}
