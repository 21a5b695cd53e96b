/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/parameters.h"
#include "codelets/codelets.h"
#include "graphs/trained_pass.h"
#include "rt/session.h"

enum { MLP_RATIO = 4, UNDER_WAY = 8 /* tasks that read values */ };

struct smalti_tile *smalti_parameter_tile(const struct smalti_parameter *parameter,
					  struct smalti_task_group *task_group)
{
	return smalti_tile_new(task_group, 1, parameter->count * smalti_dtype_bytes(parameter->dtype));
}

void smalti_parameter_store_as(struct smalti_parameter *parameter, struct smalti_task_group *task_group,
			       enum smalti_dtype dtype)
{
	struct smalti_tile *before = parameter->value;
	parameter->dtype = dtype;
	parameter->value = smalti_parameter_tile(parameter, task_group);
	if (before && parameter->value)
		parameter->value->owner = before->owner;
	smalti_tile_release(before);
}

static void count(struct smalti_parameter *parameter)
{
	parameter->count = 1;
	for (int i = 0; i < parameter->rank; i++)
		parameter->count *= parameter->shape[i];
}

struct smalti_parameter smalti_parameter_of(const struct smalti_tensor_view *tensor, int64_t index)
{
	struct smalti_parameter parameter = {.name = tensor->name, .rank = tensor->rank, .tensor = index};
	for (int i = 0; i < tensor->rank && i < SMALTI_PARAMETER_RANK; i++)
		parameter.shape[i] = tensor->shape[i];
	count(&parameter);
	return parameter;
}

/* The tensors that are cut. A shard has some rows (outputs) or columns (inputs). */
static const struct cut {
	const char *layer, *tensor;
	bool heads;                         /* else columns of the MLP */
	enum { ROWS, COLUMNS, FIRST } what; /* FIRST: the first shard has all of it, which is added once */
} cuts[] = {
    {".to_q.", "weight", true, ROWS},           {".to_q.", "bias", true, ROWS},
    {".to_k.", "weight", true, ROWS},           {".to_k.", "bias", true, ROWS},
    {".to_v.", "weight", true, ROWS},           {".to_v.", "bias", true, ROWS},
    {".to_out.0.", "weight", true, COLUMNS},    {".to_out.0.", "bias", true, FIRST},
    {".ff.net.0.proj.", "weight", false, ROWS}, {".ff.net.0.proj.", "bias", false, ROWS},
    {".ff.net.2.", "weight", false, COLUMNS},   {".ff.net.2.", "bias", false, FIRST},
};

/* Returns NULL for a tensor that stays whole. */
static const struct cut *cut_of(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(cuts); i++) {
		const char *found = strstr(name, cuts[i].layer);
		if (found && strcmp(found + strlen(cuts[i].layer), cuts[i].tensor) == 0)
			return &cuts[i];
	}
	return NULL;
}

/* Returns where a shard begins in `whole` rows or columns. */
static int64_t shard_begin(const struct smalti_transformer_config *config,
			   const struct smalti_strategy *strategy, const struct cut *cut, int64_t whole,
			   int shard)
{
	const int64_t unit = cut->heads ? config->head_dim : 1;
	return unit * smalti_strategy_begin(strategy, SMALTI_AXIS_SHARD, whole / unit, shard);
}

/* Returns a shard's part of a tensor, with count 0 if the shard has nothing of it. */
static struct smalti_parameter part_of(const struct smalti_parameter *tensor, const struct cut *cut,
				       const struct smalti_transformer_config *config,
				       const struct smalti_strategy *strategy, int shard)
{
	struct smalti_parameter part = *tensor;
	const int dimension = cut->what == COLUMNS;
	const int64_t whole = tensor->shape[dimension];
	const int64_t sizes = cut->what == FIRST && !cut->heads ? MLP_RATIO * whole : whole;
	const int64_t first = shard_begin(config, strategy, cut, sizes, shard);
	const int64_t end = shard_begin(config, strategy, cut, sizes, shard + 1);
	part.cut = (struct smalti_parameter_cut){true, shard, dimension, first, whole};
	part.shape[dimension] = end - first;
	if (cut->what == FIRST)
		part.shape[dimension] = first == 0 && end > 0 ? whole : 0;
	count(&part);
	return part;
}

static void add_tensor(struct smalti_parameters *parameters, const struct smalti_transformer_config *config,
		       const struct smalti_strategy *strategy, int64_t index)
{
	const struct smalti_parameter tensor =
	    smalti_parameter_of(&parameters->inventory.tensors[index], index);
	const struct cut *cut = parameters->shards > 1 ? cut_of(tensor.name) : NULL;
	if (!cut)
		parameters->list[parameters->count++] = tensor;
	for (int shard = 0; cut && shard < parameters->shards; shard++) {
		const struct smalti_parameter part = part_of(&tensor, cut, config, strategy, shard);
		if (part.count > 0)
			parameters->list[parameters->count++] = part;
	}
}

/* Loads the denoiser without its tiles: what it asks a checkpoint for is there. */
static int load(const struct smalti_parameters *parameters, const struct smalti_transformer_config *config,
		const struct smalti_checkpoint *checkpoint, struct smalti_error *error)
{
	struct smalti_denoiser *denoiser =
	    parameters->architecture->load(NULL, config, checkpoint, SMALTI_F32, error);
	smalti_denoiser_free(denoiser);
	return denoiser ? 0 : -1;
}

/* Lists every tensor that the denoiser has. */
static int list_tensors(struct smalti_parameters *parameters, const struct smalti_transformer_config *config,
			struct smalti_error *error)
{
	struct smalti_checkpoint *all = smalti_checkpoint_record(&parameters->inventory, SMALTI_F32, error);
	const int status = all ? load(parameters, config, all, error) : -1;
	smalti_checkpoint_close(all);
	smalti_inventory_sort(&parameters->inventory);
	return status;
}

static int list(struct smalti_parameters *parameters, const struct smalti_transformer_config *config,
		const struct smalti_strategy *strategy, struct smalti_error *error)
{
	struct smalti_inventory *inventory = &parameters->inventory;
	if (list_tensors(parameters, config, error) < 0)
		return -1;
	parameters->strategy = strategy;
	parameters->shards = strategy->parts[SMALTI_AXIS_SHARD];
	parameters->list =
	    smalti_calloc((int64_t)inventory->count * parameters->shards, sizeof(*parameters->list), error);
	if (!parameters->list)
		return -1;
	for (int64_t i = 0; i < inventory->count; i++)
		add_tensor(parameters, config, strategy, i);
	return 0;
}

struct smalti_parameters *smalti_parameters_new(struct smalti_task_group *task_group,
						const struct smalti_trained_functions *architecture,
						const struct smalti_transformer_config *config,
						const struct smalti_strategy *strategy,
						struct smalti_error *error)
{
	struct smalti_parameters *parameters = smalti_calloc(1, sizeof(*parameters), error);
	if (!parameters)
		return NULL;
	parameters->architecture = architecture;
	if (list(parameters, config, strategy, error) < 0) {
		smalti_parameters_free(parameters);
		return NULL;
	}
	for (int64_t i = 0; i < parameters->count; i++)
		parameters->list[i].value = smalti_parameter_tile(&parameters->list[i], task_group);
	return parameters;
}

struct smalti_parameter smalti_parameter_whole(const struct smalti_parameter *parameter)
{
	struct smalti_parameter tensor = *parameter;
	tensor.value = NULL;
	tensor.cut = (struct smalti_parameter_cut){0};
	if (parameter->cut.is_part)
		tensor.shape[parameter->cut.dimension] = parameter->cut.whole;
	count(&tensor);
	return tensor;
}

struct smalti_parameter_layout smalti_parameter_layout(const struct smalti_parameter *parameter)
{
	const struct smalti_parameter_cut *cut = &parameter->cut;
	int64_t rows = 1;
	for (int i = 0; i < cut->dimension; i++)
		rows *= parameter->shape[i];
	const int64_t columns = parameter->count / rows;
	if (!cut->is_part)
		return (struct smalti_parameter_layout){rows, columns, 0, columns};
	const int64_t inner = columns / parameter->shape[cut->dimension];
	return (struct smalti_parameter_layout){rows, cut->whole * inner, cut->first * inner, columns};
}

void smalti_parameter_take(const struct smalti_parameter *parameter, struct smalti_task_group *task_group,
			   struct smalti_tile *whole)
{
	const struct smalti_parameter_layout layout = smalti_parameter_layout(parameter);
	const int64_t size = smalti_dtype_bytes(parameter->dtype);
	smalti_insert(slice_columns, task_group, (.x = whole, .y = parameter->value), .rows = layout.rows,
		      .parts = 1, .in = layout.in * size, .first = layout.first * size,
		      .columns = layout.columns * size);
}

/* Returns a tile with the values of a coded tensor, f32; NULL with the task group broken. */
static struct smalti_tile *decoded(const struct smalti_tensor_view *view, int64_t count,
				   struct smalti_task_group *task_group)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	SCOPED(free) float *values = smalti_aligned_alloc(count, sizeof(*values), &error);
	if (!values) {
		smalti_task_group_break(task_group, &error);
		return NULL;
	}
	smalti_tensor_values(view, 0, view->shape[0], values);
	return smalti_tile_upload(task_group, 1, count * (int64_t)sizeof(*values), values);
}

/* Inserts the reading of a value, and drops the file's pages behind it. It waits until few values are under
 * way, so that few are in memory twice. */
static void read_value(const struct smalti_parameter *parameter, struct smalti_task_group *task_group,
		       const struct smalti_tensor_view *view)
{
	const struct smalti_parameter tensor = smalti_parameter_whole(parameter);
	struct smalti_tile *stored = smalti_tile_over(task_group, 1, view->bytes, view->data);
	struct smalti_tile *values = view->coding ? decoded(view, tensor.count, task_group) : stored;
	struct smalti_tile *whole =
	    parameter->cut.is_part ? smalti_parameter_tile(&tensor, task_group) : parameter->value;
	smalti_insert(convert, task_group, (.x = values, .y = whole), .count = tensor.count,
		      .from = view->coding ? SMALTI_F32 : view->dtype, .to = parameter->dtype);
	if (view->coding)
		smalti_tile_release(values);
	smalti_insert(drop_pages, task_group, (.weight = stored), .bytes = view->bytes);
	smalti_tile_release(stored);
	smalti_throttle_task_group(&task_group->session->throttle, task_group, UNDER_WAY);
	if (!parameter->cut.is_part)
		return;
	smalti_parameter_take(parameter, task_group, whole);
	smalti_tile_release(whole);
}

int smalti_parameters_read(const struct smalti_parameters *parameters, struct smalti_task_group *task_group,
			   const struct smalti_transformer_config *config,
			   const struct smalti_checkpoint *checkpoint, bool trains,
			   struct smalti_error *error)
{
	if (load(parameters, config, checkpoint, error) < 0)
		return -1;
	for (int64_t i = 0; i < parameters->count; i++) {
		const struct smalti_parameter tensor = smalti_parameter_whole(&parameters->list[i]);
		struct smalti_tensor_view view;
		if (smalti_checkpoint_find(checkpoint, tensor.name, tensor.rank, tensor.shape, &view, error) <
		    0)
			return -1;
		if (view.coding && trains)
			return smalti_fail(error, SMALTI_EUNSUPPORTED,
					   "%s: tensor %s is %s: training changes weights of F32, F16 or "
					   "BF16 only; an adapter (--lora-rank) leaves them as they are",
					   checkpoint->directory, tensor.name, view.stored);
		read_value(&parameters->list[i], task_group, &view);
	}
	return 0;
}

void smalti_parameters_free(struct smalti_parameters *parameters)
{
	if (!parameters)
		return;
	for (int64_t i = 0; i < parameters->count; i++)
		smalti_tile_release(parameters->list[i].value);
	free(parameters->list);
	smalti_inventory_free(&parameters->inventory);
	free(parameters);
}

int64_t smalti_parameters_find(const struct smalti_parameters *parameters, const char *name)
{
	const struct smalti_parameter *found = bsearch(&name, parameters->list, (size_t)parameters->count,
						       sizeof(*parameters->list), smalti_by_name);
	while (found && found > parameters->list && strcmp(found[-1].name, name) == 0)
		found--;
	return found ? found - parameters->list : -1;
}
