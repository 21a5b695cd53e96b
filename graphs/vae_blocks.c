/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/vae_blocks.h"

#include "base/alloc.h"
#include "graphs/attention.h"
#include "graphs/linear.h"

#include <stdio.h>
#include <stdlib.h>

static const double group_norm_epsilon = 1e-6; /* everywhere in this VAE (5.1) */

enum { NAME_LENGTH = 128 };

/* A name below `prefix`, in a buffer of the caller. */
static const char *below(char name[NAME_LENGTH], const char *prefix, const char *suffix)
{
	snprintf(name, NAME_LENGTH, "%s%s", prefix, suffix);
	return name;
}

struct smalti_resnet smalti_resnet_load(struct smalti_store *store, int64_t in, int64_t out,
					const char *prefix)
{
	char name[NAME_LENGTH];
	struct smalti_resnet resnet = {
	    .norm1 = smalti_store_affine(store, in, below(name, prefix, ".norm1")),
	    .conv1 = smalti_store_conv(store, in, out, 1, below(name, prefix, ".conv1")),
	    .norm2 = smalti_store_affine(store, out, below(name, prefix, ".norm2")),
	    .conv2 = smalti_store_conv(store, out, out, 1, below(name, prefix, ".conv2")),
	};
	if (in != out)
		resnet.shortcut =
		    smalti_store_linear_1x1(store, in, out, below(name, prefix, ".conv_shortcut"));
	return resnet;
}

static struct smalti_vae_attention load_attention(struct smalti_store *store, int64_t channels,
						  const char *prefix)
{
	char name[NAME_LENGTH];
	const char *const q[3] = {"to_q"}, *const kv[3] = {"to_k", "to_v"}, *const out[3] = {"to_out.0"};
	return (struct smalti_vae_attention){
	    .norm = smalti_store_affine(store, channels, below(name, prefix, "group_norm")),
	    .q = smalti_store_linear(store, channels, channels, true, prefix, q),
	    .kv = smalti_store_linear(store, channels, 2 * channels, true, prefix, kv),
	    .out = smalti_store_linear(store, channels, channels, true, prefix, out),
	};
}

struct smalti_mid_block smalti_mid_block_load(struct smalti_store *store,
					      const struct smalti_vae_config *config, const char *half)
{
	const int64_t channels = config->channels[config->blocks - 1];
	struct smalti_mid_block block = {0};
	char prefix[64];
	for (int i = 0; i < 2; i++) {
		snprintf(prefix, sizeof(prefix), "%s.mid_block.resnets.%d", half, i);
		block.resnets[i] = smalti_resnet_load(store, channels, channels, prefix);
	}
	snprintf(prefix, sizeof(prefix), "%s.mid_block.attentions.0.", half);
	if (config->mid_block_attention)
		block.attention = load_attention(store, channels, prefix);
	return block;
}

struct smalti_conv_input smalti_vae_normalised(const struct smalti_vae_pass *p,
					       const struct smalti_affine *norm)
{
	return (struct smalti_conv_input){
	    .norm = norm, .groups = p->config->norm_groups, .epsilon = group_norm_epsilon};
}

static void replace(struct smalti_vae_pass *p, struct smalti_features map)
{
	smalti_features_release(&p->map);
	p->map = map;
}

void smalti_vae_conv(struct smalti_vae_pass *p, const struct smalti_conv_input *input,
		     const struct smalti_kernel *kernel, int64_t y_groups)
{
	replace(p, smalti_features_conv(p->scope, &p->map, input, kernel, p->compute, y_groups));
}

void smalti_vae_linear(struct smalti_vae_pass *p, const struct smalti_linear *linear)
{
	replace(p, smalti_features_linear(p->scope, &p->map, linear));
}

/* shortcut(x) + conv2(SiLU(GN2(conv1(SiLU(GN1(x)))))) */
void smalti_vae_resnet(struct smalti_vae_pass *p, const struct smalti_resnet *w)
{
	const int64_t groups = p->config->norm_groups;
	const struct smalti_conv_input first = smalti_vae_normalised(p, &w->norm1),
				       second = smalti_vae_normalised(p, &w->norm2);
	const bool identity = !w->shortcut.weight;
	struct smalti_features shortcut = {0};
	struct smalti_features h = smalti_features_fork(p->scope, &p->map, &first, &w->conv1, p->compute,
							groups, identity ? NULL : &w->shortcut, &shortcut);
	if (!identity)
		replace(p, shortcut);
	smalti_features_conv_add(p->scope, &h, &second, &w->conv2, p->compute, groups, &p->map);
	smalti_features_release(&h);
}

/* x += O(attention(GN(x))), one head over all positions: each band's queries against all bands' keys. */
static void mid_attention(struct smalti_vae_pass *p, const struct smalti_vae_attention *w)
{
	const struct smalti_features *x = &p->map;
	const enum smalti_dtype dtype = p->compute;
	const struct smalti_heads heads = {1, x->channels, dtype};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tile **q = smalti_calloc(x->cut.bands, sizeof(struct smalti_tile *), &error);
	struct smalti_tile **kv = smalti_calloc(x->cut.bands, sizeof(struct smalti_tile *), &error);
	const int64_t bands = q && kv ? x->cut.bands : 0;
	if (!q || !kv)
		smalti_scope_fail(p->scope, &error);
	for (int64_t b = 0; b < bands && !smalti_scope_failed(p->scope); b++) {
		const int64_t pixels = smalti_features_pixels(x, b);
		struct smalti_tile *h =
		    smalti_tile_new(p->scope, pixels, x->channels * smalti_dtype_bytes(dtype));
		smalti_insert(groupnorm, p->scope,
			      (.x = x->body[b], .moments = x->moments,
			       .gamma = smalti_weight_tile(w->norm.gamma),
			       .beta = smalti_weight_tile(w->norm.beta), .y = h),
			      .pixels = pixels, .channels = x->channels, .groups = p->config->norm_groups,
			      .epsilon = group_norm_epsilon, .dtype = dtype);
		q[b] = smalti_linear(p->scope, &w->q, pixels, dtype, h, SMALTI_EPILOGUE_NONE, dtype);
		kv[b] = smalti_linear(p->scope, &w->kv, pixels, dtype, h, SMALTI_EPILOGUE_NONE, dtype);
		smalti_tile_release(h);
	}
	for (int64_t b = 0; b < bands && !smalti_scope_failed(p->scope); b++) {
		const int64_t pixels = smalti_features_pixels(x, b);
		struct smalti_tile *o = smalti_attend(p->scope, &heads, pixels, q[b], &x->cut, x->width, kv);
		smalti_linear_add(p->scope, &w->out, pixels, dtype, o, x->body[b]);
		smalti_tile_release(o);
	}
	for (int64_t b = 0; b < bands; b++) {
		smalti_tile_release(q[b]);
		smalti_tile_release(kv[b]);
	}
	free(q);
	free(kv);
	smalti_features_publish(p->scope, &p->map, p->config->norm_groups);
}

void smalti_vae_mid_block(struct smalti_vae_pass *p, const struct smalti_mid_block *block)
{
	smalti_vae_resnet(p, &block->resnets[0]);
	if (block->attention.q.weight)
		mid_attention(p, &block->attention);
	smalti_vae_resnet(p, &block->resnets[1]);
}

/* Its input and its output are whole, and the map between; each worker has one band assembled. */
int64_t smalti_vae_resnet_bytes(int64_t height, int64_t width, int64_t in, int64_t out, int64_t band_rows,
				int workers)
{
	const int64_t row = width * (int64_t)sizeof(float);
	return height * row * (in + 2 * out) + workers * (band_rows + 2) * row * in;
}

double smalti_vae_resnet_flops(double pixels, int64_t in, int64_t out)
{
	const double a = (double)in, b = (double)out;
	return pixels * (18 * b * (a + b) + (in != out ? 2 * a * b : 0));
}

double smalti_vae_mid_block_flops(const struct smalti_vae_config *c, double pixels)
{
	const int64_t deepest = c->channels[c->blocks - 1];
	const double channels = (double)deepest;
	const double attention = pixels * (8 * channels * channels + 4 * pixels * channels);
	return 2 * smalti_vae_resnet_flops(pixels, deepest, deepest) +
	       (c->mid_block_attention ? attention : 0);
}
