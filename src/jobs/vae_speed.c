/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "codelets/codelets.h"
#include "jobs/vae.h"
#include "kernels/attention.h"
#include "kernels/conv.h"
#include "rt/op.h"

#include <math.h>

/* A piece of a map: wide and high enough for a kernel's full speed. */
enum { ROWS = 16, MAX_WIDTH = 512, KEYS = 1024, MAX_REPEATS = 16, MAX_PARTS = 12 };

static const double enough_seconds = 0.02;

/* Returns the best time of some runs: disturbances only make a run longer. */
static double best_seconds(enum smalti_op_number number, const void *data, const void *arguments,
			   struct smalti_error *error)
{
	const struct smalti_op *op = &smalti_ops[number];
	double best = (double)INFINITY, all = 0;
	for (int i = 0; i < MAX_REPEATS && (i < 2 || all < enough_seconds); i++) {
		const double begin = smalti_now();
		if (op->run(data, arguments, error) < 0)
			return -1;
		const double seconds = smalti_now() - begin;
		best = seconds < best ? seconds : best;
		all += seconds;
	}
	return best;
}

/* Zeroed parts of one block; false without memory. */
struct parts {
	char *memory;
	int64_t used;
};

enum { ALIGNMENT = 64 };

static int open_parts(struct parts *parts, int64_t bytes, struct smalti_error *error)
{
	*parts = (struct parts){.memory = smalti_aligned_alloc(1, bytes + MAX_PARTS * ALIGNMENT, error)};
	if (parts->memory)
		memset(parts->memory, 0, (size_t)(bytes + MAX_PARTS * ALIGNMENT));
	return parts->memory ? 0 : -1;
}

static void *part(struct parts *parts, int64_t bytes)
{
	void *begin = parts->memory + parts->used;
	parts->used += smalti_round_up(bytes, ALIGNMENT);
	return begin;
}

static double conv_speed(const struct smalti_vae_layer *layer, enum smalti_dtype compute, int64_t groups,
			 int64_t width, struct smalti_error *error)
{
	const struct smalti_kernel *kernel = &layer->kernel;
	const int64_t scale = layer->upsample ? 4 : 1, divisor = kernel->stride == 2 ? 4 : 1;
	const int64_t size = (int64_t)sizeof(float);
	const int64_t in = ROWS * width * kernel->in * size,
		      out = ROWS * width * scale / divisor * kernel->out * size;
	const int64_t weight =
	    smalti_conv_packed_bytes(kernel->in, kernel->out, kernel->stride, compute, error);
	const int64_t vector = (kernel->in + kernel->out) * size, moments = groups * 24;
	struct parts parts;
	if (weight < 0 || open_parts(&parts, in + out + weight + 3 * vector + moments, error) < 0)
		return -1;
	const bool norm = layer->norm.gamma;
	const struct conv_data data = {.x = part(&parts, in),
				       .moments = norm ? part(&parts, moments) : NULL,
				       .gamma = norm ? part(&parts, vector) : NULL,
				       .beta = norm ? part(&parts, vector) : NULL,
				       .weight = part(&parts, weight),
				       .bias = part(&parts, vector),
				       .y = part(&parts, out)};
	const struct conv_arguments arguments = {.rows = ROWS,
						 .width = width,
						 .in = kernel->in,
						 .out = kernel->out,
						 .stride = kernel->stride,
						 .groups = norm ? groups : 0,
						 .epsilon = 1e-6f,
						 .upsample = layer->upsample,
						 .compute = compute};
	const double seconds = best_seconds(SMALTI_OP_conv, &data, &arguments, error);
	free(parts.memory);
	return seconds < 0 ? -1 : seconds / SMALTI_CONV_FLOPS(&arguments);
}

static double attention_speed(const struct smalti_vae_layer *layer, enum smalti_dtype compute,
			      struct smalti_error *error)
{
	const int64_t dim = layer->q.in, row = dim * smalti_dtype_bytes(compute);
	struct parts parts;
	if (open_parts(&parts, 4 * KEYS * row, error) < 0)
		return -1;
	const struct attention_data data = {.q = part(&parts, KEYS * row),
					    .kv = {part(&parts, 2 * KEYS * row)},
					    .y = part(&parts, KEYS * row)};
	const struct attention_arguments arguments = {.queries = KEYS,
						      .heads = 1,
						      .head_dim = dim,
						      .keys = {KEYS},
						      .dtype = compute,
						      .scale = 1,
						      .first = true,
						      .last = true};
	const double seconds = best_seconds(SMALTI_OP_attention, &data, &arguments, error);
	free(parts.memory);
	return seconds < 0 ? -1 : seconds / smalti_attention_flops(&arguments);
}

static bool same_work(const struct smalti_vae_net *l, int a, int b)
{
	const struct smalti_vae_layer *x = &l->layer[a], *y = &l->layer[b];
	return x->kernel.in == y->kernel.in && x->kernel.out == y->kernel.out &&
	       x->kernel.stride == y->kernel.stride && x->upsample == y->upsample &&
	       !x->norm.gamma == !y->norm.gamma && l->map[a].up == l->map[b].up &&
	       l->map[a].down == l->map[b].down;
}

static double speed_of(const struct smalti_vae_net *l, int index, int64_t input_width, const double *before,
		       struct smalti_error *error)
{
	const struct smalti_vae_layer *layer = &l->layer[index];
	const int64_t width = input_width * l->map[index].up / l->map[index].down;
	if (layer->kind == SMALTI_VAE_LINEAR)
		return 0; /* a few channels: little compared to the others */
	if (layer->kind == SMALTI_VAE_ATTENTION)
		return attention_speed(layer, l->compute, error);
	for (int i = 0; i < index; i++)
		if (same_work(l, i, index))
			return before[i];
	return conv_speed(layer, l->compute, l->config.norm_groups, width < MAX_WIDTH ? width : MAX_WIDTH,
			  error);
}

double *smalti_vae_speeds(const struct smalti_vae_net *layers, int64_t width, struct smalti_error *error)
{
	double *speeds = smalti_calloc(layers->count, sizeof(*speeds), error);
	for (int i = 0; speeds && i < layers->count; i++) {
		speeds[i] = speed_of(layers, i, width, speeds, error);
		if (speeds[i] >= 0)
			continue;
		free(speeds);
		return NULL;
	}
	return speeds;
}
