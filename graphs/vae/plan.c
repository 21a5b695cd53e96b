/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/vae/plan.h"
#include "kernels/conv.h"

const char *const smalti_storage_names[] = {"recompute", "keep", "offload", "keep bf16", NULL};

bool smalti_vae_early_residual(const struct smalti_vae_net *l, const enum smalti_storage *storage, int inner)
{
	return inner < l->count && l->layer[inner].kind == SMALTI_VAE_RESIDUAL &&
	       storage[inner] == SMALTI_KEEP && storage[inner + 1] == SMALTI_KEEP;
}

bool smalti_vae_is_target(const struct smalti_vae_net *l, const enum smalti_storage *storage, int map)
{
	return storage[map] != SMALTI_RECOMPUTE || map == l->count || smalti_vae_map_groups(l, map);
}

bool smalti_vae_is_last(const struct smalti_vae_net *l, const enum smalti_storage *storage, int map)
{
	const bool inner = map < l->count && l->layer[map].kind == SMALTI_VAE_RESIDUAL;
	return map == l->count ||
	       (storage[map] != SMALTI_RECOMPUTE && (!inner || smalti_vae_early_residual(l, storage, map)));
}

bool smalti_vae_has_to_be_kept(const struct smalti_vae_net *l, int map)
{
	if (map == 0)
		return l->direction == SMALTI_VAE_ENCODE;
	return (map < l->count && l->layer[map].kind == SMALTI_VAE_ATTENTION) ||
	       l->layer[map - 1].kind == SMALTI_VAE_ATTENTION;
}

bool smalti_vae_may_be_stored(const struct smalti_vae_net *l, int map)
{
	return map < l->count && (map > 0 || l->direction == SMALTI_VAE_ENCODE);
}

/* Returns the rows of the tallest band. */
static int64_t band_rows(const struct smalti_vae_plan *plan, const struct smalti_vae_shape *shape)
{
	return plan->tallest * shape->up / shape->down;
}

static int64_t row_width(const struct smalti_vae_plan *plan, const struct smalti_vae_shape *shape)
{
	return plan->width * shape->up / shape->down;
}

/* Returns a worker's bytes for a convolution's input, a slab of rows at a time, and the kernel's scratch. */
static int64_t assembly(const struct smalti_vae_plan *plan, const struct smalti_vae_net *l, int layer)
{
	const struct smalti_kernel *kernel = &l->layer[layer].kernel;
	const struct smalti_vae_shape *made = &l->map[layer + 1];
	if (!kernel->weight)
		return 0;
	struct smalti_conv conv = {.rows = band_rows(plan, made),
				   .width = row_width(plan, made) * kernel->stride,
				   .in = kernel->in,
				   .out = kernel->out,
				   .stride = kernel->stride,
				   .compute = l->compute};
	conv.rows = smalti_conv_slab(&conv);
	const int64_t row = conv.width * conv.in * smalti_dtype_bytes(conv.compute);
	return (conv.rows * conv.stride + 2) * row + smalti_conv_scratch(&conv);
}

/* Sums the workers' bytes. Each keeps what the largest layer needed; attention packs queries, keys and
 * values. */
static int64_t workspace(const struct smalti_vae_plan *plan, const struct smalti_vae_net *l)
{
	int64_t lines = 0, packed = 0;
	for (int layer = 0; layer < l->count; layer++) {
		const struct smalti_vae_shape *read = &l->map[layer];
		lines = smalti_max(lines, assembly(plan, l, layer));
		if (l->layer[layer].kind == SMALTI_VAE_ATTENTION)
			packed = 3 * (band_rows(plan, read) + 2) * row_width(plan, read) * read->channels *
				 (int64_t)sizeof(float);
	}
	return plan->workers * (lines + packed);
}

int smalti_vae_plan_open(struct smalti_vae_plan *plan, const struct smalti_vae_net *l,
			 const struct smalti_partition *partition, int64_t width,
			 const struct smalti_vae_budget *budget, struct smalti_error *error)
{
	enum { MIN_WINDOW = 3 };
	*plan = (struct smalti_vae_plan){.width = width,
					 .workers = budget->workers,
					 .bf16 = budget->bf16,
					 .window = MIN_WINDOW + budget->workers};
	plan->storage = smalti_calloc(l->count + 1, sizeof(*plan->storage), error);
	plan->times = smalti_calloc(l->count + 1, sizeof(*plan->times), error);
	for (int64_t b = 0; b < partition->bands; b++)
		if (smalti_partition_rows(partition, b) > plan->tallest)
			plan->tallest = smalti_partition_rows(partition, b);
	plan->workspace = workspace(plan, l);
	if (plan->storage && plan->times &&
	    smalti_partition_scale(&plan->partition, partition, 1, 1, error) == 0)
		return 0;
	smalti_vae_plan_free(plan);
	return -1;
}

void smalti_vae_plan_free(struct smalti_vae_plan *plan)
{
	free(plan->storage);
	free(plan->times);
	smalti_partition_free(&plan->partition);
	*plan = (struct smalti_vae_plan){0};
}

struct smalti_vae_budget smalti_vae_no_budget(int workers)
{
	return (struct smalti_vae_budget){.memory = INT64_MAX, .workers = workers};
}
