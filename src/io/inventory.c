/* SPDX-License-Identifier: Apache-2.0 */
#include "io/inventory.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_LENGTH = 128, FIRST_CAPACITY = 256 };

/* What is being listed; after a failure nothing more is added. */
struct list {
	struct smalti_inventory inventory;
	enum smalti_dtype dtype;
	int status;
	struct smalti_error *error;
};

static int grow(struct smalti_inventory *inventory, struct smalti_error *error)
{
	const int capacity = inventory->capacity ? 2 * inventory->capacity : FIRST_CAPACITY;
	struct smalti_tensor_view *tensors = smalti_calloc(capacity, sizeof(*tensors), error);
	if (!tensors)
		return -1;
	if (inventory->count)
		memcpy(tensors, inventory->tensors, (size_t)inventory->count * sizeof(*tensors));
	free(inventory->tensors);
	inventory->tensors = tensors;
	inventory->capacity = capacity;
	return 0;
}

static int append(struct list *list, int rank, const int64_t *shape, const char *prefix, const char *suffix)
{
	struct smalti_inventory *inventory = &list->inventory;
	if (inventory->count == inventory->capacity && grow(inventory, list->error))
		return -1;
	struct smalti_tensor_view *tensor = &inventory->tensors[inventory->count];
	*tensor = (struct smalti_tensor_view){
	    .dtype = list->dtype, .rank = rank, .bytes = smalti_dtype_bytes(list->dtype), .usable = true};
	for (int i = 0; i < rank; i++) {
		tensor->shape[i] = shape[i];
		if (!smalti_multiply(&tensor->bytes, shape[i]))
			return smalti_fail(list->error, SMALTI_EINVAL, "tensor %s%s is too large", prefix,
					   suffix);
	}
	tensor->name = smalti_format(list->error, "%s%s", prefix, suffix);
	inventory->count += tensor->name != NULL;
	return tensor->name ? 0 : -1;
}

static void add(struct list *list, int rank, const int64_t *shape, const char *prefix, const char *suffix)
{
	if (!list->status)
		list->status = append(list, rank, shape, prefix, suffix);
}

static const char *name_of(char name[NAME_LENGTH], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static const char *name_of(char name[NAME_LENGTH], const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(name, NAME_LENGTH, format, args);
	va_end(args);
	return name;
}

static void add_matrix(struct list *list, int64_t out, int64_t in, const char *prefix)
{
	add(list, 2, (const int64_t[]){out, in}, prefix, ".weight");
}

static void add_vector(struct list *list, int64_t count, const char *prefix, const char *suffix)
{
	add(list, 1, &count, prefix, suffix);
}

static void add_linear(struct list *list, int64_t out, int64_t in, const char *prefix)
{
	add_matrix(list, out, in, prefix);
	add_vector(list, out, prefix, ".bias");
}

static void add_conv(struct list *list, int64_t out, int64_t in, int64_t side, const char *prefix)
{
	add(list, 4, (const int64_t[]){out, in, side, side}, prefix, ".weight");
	add_vector(list, out, prefix, ".bias");
}

static void add_norm(struct list *list, int64_t channels, const char *prefix)
{
	add_vector(list, channels, prefix, ".weight");
	add_vector(list, channels, prefix, ".bias");
}

static void add_attention(struct list *list, int64_t width, bool bias, const char *prefix)
{
	static const char *const inputs[] = {"to_q", "to_k", "to_v"};
	char name[NAME_LENGTH];
	for (int i = 0; i < 3; i++) {
		add_matrix(list, width, width, name_of(name, "%s.%s", prefix, inputs[i]));
		if (bias)
			add_vector(list, width, name, ".bias");
	}
	add_linear(list, width, width, name_of(name, "%s.to_out.0", prefix));
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct smalti_tensor_view *)a)->name,
		      ((const struct smalti_tensor_view *)b)->name);
}

static int finish(struct list *list, struct smalti_inventory *inventory)
{
	*inventory = list->inventory;
	if (list->status)
		smalti_inventory_free(inventory);
	else
		qsort(inventory->tensors, (size_t)inventory->count, sizeof(*inventory->tensors), by_name);
	return list->status;
}

void smalti_inventory_free(struct smalti_inventory *inventory)
{
	for (int i = 0; i < inventory->count; i++)
		free((void *)inventory->tensors[i].name);
	free(inventory->tensors);
	*inventory = (struct smalti_inventory){0};
}

bool smalti_is_norm_weight(const char *name)
{
	static const char *const endings[] = {"norm1.weight", "norm2.weight", "group_norm.weight",
					      "conv_norm_out.weight", "layer_norm.weight"};
	const size_t length = strlen(name);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		const size_t ending = strlen(endings[i]);
		if (length >= ending && strcmp(name + length - ending, endings[i]) == 0)
			return true;
	}
	return false;
}

/* The transformer (1.4) */

static void add_embedder(struct list *list, int64_t width, const char *embedder)
{
	enum { SINUSOID = 256 };
	char name[NAME_LENGTH];
	add_linear(list, width, SINUSOID, name_of(name, "adaln_single.emb.%s.linear_1", embedder));
	add_linear(list, width, width, name_of(name, "adaln_single.emb.%s.linear_2", embedder));
}

static void add_transformer_block(struct list *list, const struct smalti_transformer_config *c, int64_t block)
{
	char prefix[64], name[NAME_LENGTH];
	snprintf(prefix, sizeof(prefix), "transformer_blocks.%lld", (long long)block);
	add(list, 2, (const int64_t[]){6, c->width}, prefix, ".scale_shift_table");
	add_attention(list, c->width, c->attention_bias, name_of(name, "%s.attn1", prefix));
	add_attention(list, c->width, c->attention_bias, name_of(name, "%s.attn2", prefix));
	add_linear(list, 4 * c->width, c->width, name_of(name, "%s.ff.net.0.proj", prefix));
	add_linear(list, c->width, 4 * c->width, name_of(name, "%s.ff.net.2", prefix));
}

int smalti_inventory_transformer(struct smalti_inventory *inventory,
				 const struct smalti_transformer_config *c, enum smalti_dtype dtype,
				 struct smalti_error *error)
{
	struct list list = {.dtype = dtype, .error = error};
	add_conv(&list, c->width, c->in_channels, c->patch_size, "pos_embed.proj");
	add_embedder(&list, c->width, "timestep_embedder");
	if (c->additional_conditions) {
		add_embedder(&list, c->width / 3, "resolution_embedder");
		add_embedder(&list, c->width / 3, "aspect_ratio_embedder");
	}
	add_linear(&list, 6 * c->width, c->width, "adaln_single.linear");
	if (c->caption_channels) {
		add_linear(&list, c->width, c->caption_channels, "caption_projection.linear_1");
		add_linear(&list, c->width, c->width, "caption_projection.linear_2");
	}
	for (int64_t block = 0; block < c->layers; block++)
		add_transformer_block(&list, c, block);
	add(&list, 2, (const int64_t[]){2, c->width}, "scale_shift_table", "");
	add_linear(&list, c->patch_size * c->patch_size * c->out_channels, c->width, "proj_out");
	return finish(&list, inventory);
}

/* The VAE (Appendix A) */

static void add_resnet(struct list *list, int64_t out, int64_t in, const char *prefix)
{
	char name[NAME_LENGTH];
	add_norm(list, in, name_of(name, "%s.norm1", prefix));
	add_conv(list, out, in, 3, name_of(name, "%s.conv1", prefix));
	add_norm(list, out, name_of(name, "%s.norm2", prefix));
	add_conv(list, out, out, 3, name_of(name, "%s.conv2", prefix));
	if (in != out)
		add_conv(list, out, in, 1, name_of(name, "%s.conv_shortcut", prefix));
}

static void add_mid_block(struct list *list, const struct smalti_vae_config *c, const char *half)
{
	const int64_t channels = c->channels[c->blocks - 1];
	char prefix[64], name[NAME_LENGTH];
	snprintf(prefix, sizeof(prefix), "%s.mid_block", half);
	add_resnet(list, channels, channels, name_of(name, "%s.resnets.0", prefix));
	add_resnet(list, channels, channels, name_of(name, "%s.resnets.1", prefix));
	if (!c->mid_block_attention)
		return;
	add_norm(list, channels, name_of(name, "%s.attentions.0.group_norm", prefix));
	add_attention(list, channels, true, name_of(name, "%s.attentions.0", prefix));
}

/* Block `i` of a half, of `layers` resnets; `sampler` NULL: it keeps its size. */
static void add_vae_block(struct list *list, int64_t out, int64_t in, int64_t layers, int i,
			  const char *blocks, const char *sampler)
{
	char prefix[64], name[NAME_LENGTH];
	snprintf(prefix, sizeof(prefix), "%s.%d", blocks, i);
	for (int64_t layer = 0; layer < layers; layer++)
		add_resnet(list, out, layer ? out : in,
			   name_of(name, "%s.resnets.%lld", prefix, (long long)layer));
	if (sampler)
		add_conv(list, out, out, 3, name_of(name, "%s.%s.0.conv", prefix, sampler));
}

static void add_encoder(struct list *list, const struct smalti_vae_config *c)
{
	const int last = c->blocks - 1;
	add_conv(list, c->channels[0], c->image_channels, 3, "encoder.conv_in");
	for (int i = 0; i < c->blocks; i++)
		add_vae_block(list, c->channels[i], c->channels[i ? i - 1 : 0], c->layers_per_block, i,
			      "encoder.down_blocks", i < last ? "downsamplers" : NULL);
	add_mid_block(list, c, "encoder");
	add_norm(list, c->channels[last], "encoder.conv_norm_out");
	add_conv(list, 2 * c->latent_channels, c->channels[last], 3, "encoder.conv_out");
	if (c->quant_conv)
		add_conv(list, 2 * c->latent_channels, 2 * c->latent_channels, 1, "quant_conv");
}

static void add_decoder(struct list *list, const struct smalti_vae_config *c)
{
	const int last = c->blocks - 1;
	if (c->post_quant_conv)
		add_conv(list, c->latent_channels, c->latent_channels, 1, "post_quant_conv");
	add_conv(list, c->channels[last], c->latent_channels, 3, "decoder.conv_in");
	add_mid_block(list, c, "decoder");
	for (int i = 0; i < c->blocks; i++)
		add_vae_block(list, c->channels[last - i], c->channels[i ? last - i + 1 : last],
			      c->layers_per_block + 1, i, "decoder.up_blocks",
			      i < last ? "upsamplers" : NULL);
	add_norm(list, c->channels[0], "decoder.conv_norm_out");
	add_conv(list, c->image_channels, c->channels[0], 3, "decoder.conv_out");
}

int smalti_inventory_vae(struct smalti_inventory *inventory, const struct smalti_vae_config *config,
			 enum smalti_dtype dtype, struct smalti_error *error)
{
	struct list list = {.dtype = dtype, .error = error};
	add_encoder(&list, config);
	add_decoder(&list, config);
	return finish(&list, inventory);
}

/* T5 (1.6) */

static void add_t5_block(struct list *list, const struct smalti_t5_config *c, int64_t block)
{
	char attention[64], feed_forward[64], name[NAME_LENGTH];
	snprintf(attention, sizeof(attention), "encoder.block.%lld.layer.0.", (long long)block);
	snprintf(feed_forward, sizeof(feed_forward), "encoder.block.%lld.layer.1.", (long long)block);
	add_vector(list, c->width, attention, "layer_norm.weight");
	add_matrix(list, c->inner, c->width, name_of(name, "%sSelfAttention.q", attention));
	add_matrix(list, c->inner, c->width, name_of(name, "%sSelfAttention.k", attention));
	add_matrix(list, c->inner, c->width, name_of(name, "%sSelfAttention.v", attention));
	add_matrix(list, c->width, c->inner, name_of(name, "%sSelfAttention.o", attention));
	add_vector(list, c->width, feed_forward, "layer_norm.weight");
	add_matrix(list, c->ff_width, c->width, name_of(name, "%sDenseReluDense.wi_0", feed_forward));
	add_matrix(list, c->ff_width, c->width, name_of(name, "%sDenseReluDense.wi_1", feed_forward));
	add_matrix(list, c->width, c->ff_width, name_of(name, "%sDenseReluDense.wo", feed_forward));
}

int smalti_inventory_t5(struct smalti_inventory *inventory, const struct smalti_t5_config *c,
			enum smalti_dtype dtype, struct smalti_error *error)
{
	struct list list = {.dtype = dtype, .error = error};
	add_matrix(&list, c->vocabulary, c->width, "shared");
	add_matrix(&list, c->buckets, c->heads,
		   "encoder.block.0.layer.0.SelfAttention.relative_attention_bias");
	for (int64_t block = 0; block < c->layers; block++)
		add_t5_block(&list, c, block);
	add_vector(&list, c->width, "encoder.final_layer_norm", ".weight");
	return finish(&list, inventory);
}
