/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/weights.h"
#include "codelets/codelets.h"
#include "graphs/weight_parts.h"
#include "rt/devices_alone.h"

static int check_files(const void *checkpoint, struct smalti_error *error)
{
	return smalti_checkpoint_check(checkpoint, error);
}

struct smalti_weights *smalti_weights_new(struct smalti_task_group *task_group,
					  const struct smalti_checkpoint *checkpoint,
					  enum smalti_dtype compute, struct smalti_error *error)
{
	struct smalti_weights *weights = smalti_calloc(1, sizeof(*weights), error);
	if (!weights)
		return NULL;
	weights->task_group = task_group;
	weights->checkpoint = checkpoint;
	weights->compute = compute;
	weights->files = (struct smalti_task_group_source){check_files, checkpoint, NULL};
	if (task_group)
		smalti_task_group_reads(task_group, &weights->files);
	return weights;
}

int smalti_weights_status(const struct smalti_weights *weights, struct smalti_error *error)
{
	return smalti_pass(error, &weights->error);
}

int64_t smalti_weights_bytes(const struct smalti_weights *weights)
{
	return weights->transient ? 0 : weights->bytes;
}

static int64_t file_bytes(const struct smalti_weight *weight)
{
	int64_t bytes = 0;
	for (int i = 0; i < weight->source.parts; i++)
		bytes += weight->source.part[i].bytes;
	return bytes;
}

int64_t smalti_weight_device_bytes(const struct smalti_weight *weight)
{
	return weight->raw ? file_bytes(weight) : weight->forms.bytes[SMALTI_DEVICE_GPU];
}

/* Returns the sum over all weights that are no part of another. */
static int64_t sum(const struct smalti_weights *weights, int64_t (*bytes_of)(const struct smalti_weight *))
{
	int64_t bytes = 0;
	for (const struct smalti_weight *weight = weights->first; weight; weight = weight->next)
		bytes += weight->slice ? 0 : bytes_of(weight);
	return bytes;
}

int64_t smalti_weights_file_bytes(const struct smalti_weights *weights)
{
	return sum(weights, file_bytes);
}

int64_t smalti_weight_made_bytes(const struct smalti_weight *weight)
{
	return weight->raw ? 0 : weight->forms.bytes[SMALTI_DEVICE_CPU];
}

static int64_t read_bytes(const struct smalti_weight *weight)
{
	return weight->raw ? file_bytes(weight) : smalti_weight_made_bytes(weight);
}

int64_t smalti_weights_read_bytes(const struct smalti_weights *weights)
{
	return sum(weights, read_bytes);
}

int64_t smalti_weights_device_bytes(const struct smalti_weights *weights)
{
	return sum(weights, smalti_weight_device_bytes);
}

static bool is_coded(const struct smalti_weight *weight)
{
	bool coded = false;
	for (int i = 0; i < weight->source.parts; i++)
		coded = coded || weight->source.part[i].coding;
	return coded;
}

bool smalti_weights_have_rows8(const struct smalti_weights *weights)
{
	for (const struct smalti_weight *weight = weights->first; weight; weight = weight->next)
		if (smalti_weight_is_rows8(weight))
			return true;
	return false;
}

void smalti_weights_leave_raw(struct smalti_weights *weights)
{
	for (struct smalti_weight *weight = weights->first; weight; weight = weight->next)
		if (weight->source.kind == SMALTI_WEIGHT_MATRIX && !weight->fixed && !is_coded(weight)) {
			weights->bytes -= smalti_weight_made_bytes(weight);
			weight->raw = true;
		}
}

void smalti_weights_free(struct smalti_weights *weights)
{
	if (!weights)
		return;
	if (weights->task_group) {
		smalti_task_group_wait(weights->task_group); /* its tasks read `host` and the checkpoint */
		smalti_task_group_drop_source(weights->task_group, &weights->files);
	}
	for (struct smalti_weight *weight = weights->first, *next; weight; weight = next) {
		next = weight->next;
		smalti_tile_release(weight->tile);
		for (int i = 0; i < SMALTI_WEIGHT_PARTS; i++) {
			smalti_tile_release(weight->part[i]);
			if (!weight->slice)
				smalti_merge_free(weight->source.merge[i]);
		}
		free(weight->host);
		free(weight);
	}
	free(weights);
}

bool smalti_weight_is_rows8(const struct smalti_weight *weight)
{
	return weight && weight->source.kind == SMALTI_WEIGHT_ROWS8;
}

enum smalti_dtype smalti_weight_rows8(const struct smalti_weight *weight)
{
	return weight->source.rows8;
}

bool smalti_weight_is_raw(const struct smalti_weight *weight)
{
	return weight && weight->raw;
}

struct smalti_tile *smalti_weight_part(struct smalti_weight *weight, int index)
{
	if (index >= weight->source.parts)
		return NULL;
	if (weight->weights->parameters)
		return smalti_weight_step_part(weight, index);
	const struct smalti_tensor_view *part = smalti_weight_view(weight, index);
	if (!weight->part[index])
		weight->part[index] =
		    smalti_tile_over(weight->weights->task_group, 1, part->bytes, part->data);
	return weight->part[index];
}

/* Makes a large weight's form by its own task, so that readers need not wait for each other. It is the CPUs'
 * form, so it is left out where devices do nearly everything. */
static void prepare(struct smalti_weight *weight, struct smalti_tile *after)
{
	struct smalti_task_group *task_group = weight->weights->task_group;
	if (weight->source.kind == SMALTI_WEIGHT_VECTOR || smalti_devices_lead(task_group->session))
		return;
	smalti_task_group_behind(task_group, weight->weights->transient ? after : NULL);
	smalti_insert(prepare, task_group, (.weight = weight->tile),
		      .bytes = smalti_weight_made_bytes(weight));
	smalti_task_group_behind(task_group, NULL);
}

struct smalti_tile *smalti_weight_tile_after(struct smalti_weight *weight, struct smalti_tile *after)
{
	if (!weight || weight->tile)
		return weight ? weight->tile : NULL;
	if (smalti_weight_is_raw(weight))
		return smalti_weight_part(weight, 0);
	weight->tile = smalti_tile_of_forms(weight->weights->task_group, &weight->forms);
	prepare(weight, after);
	return weight->tile;
}

struct smalti_tile *smalti_weight_tile(struct smalti_weight *weight)
{
	return smalti_weight_tile_after(weight, NULL);
}

void smalti_weight_done(struct smalti_weight *weight)
{
	if (!weight || !weight->weights->transient)
		return;
	smalti_tile_release(weight->tile);
	weight->tile = NULL;
}

const struct smalti_tensor_view *smalti_weight_view(const struct smalti_weight *weight, int index)
{
	return &weight->source.part[index];
}

void smalti_weight_read_ahead(struct smalti_task_group *task_group, struct smalti_weight *weight,
			      struct smalti_tile *after)
{
	struct smalti_tile *tile = smalti_weight_tile_after(weight, after);
	if (!weight->raw)
		return;
	smalti_task_group_behind(task_group, after);
	smalti_insert(read_ahead, task_group, (.weight = tile), .bytes = weight->source.part[0].bytes);
	smalti_task_group_behind(task_group, NULL);
}

void smalti_weight_drop(struct smalti_task_group *task_group, struct smalti_weight *weight)
{
	if (!weight->raw) {
		smalti_weight_done(weight);
		return;
	}
	smalti_insert(drop_pages, task_group, (.weight = smalti_weight_tile(weight)),
		      .bytes = weight->source.part[0].bytes);
}
