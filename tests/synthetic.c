/* SPDX-License-Identifier: Apache-2.0 */
#include "synthetic.h"

#include "harness.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_LENGTH = 128, MAX_TENSORS = 1024, PATH_LENGTH = 320 };

struct tensor {
	char name[NAME_LENGTH];
	int rank;
	int64_t shape[4];
};

struct list {
	struct tensor tensor[MAX_TENSORS];
	int count;
};

static struct list *new_list(void)
{
	struct list *list = calloc(1, sizeof(*list));
	if (!list)
		abort();
	return list;
}

static void add(struct list *list, int rank, const int64_t *shape, const char *prefix, const char *suffix)
{
	if (list->count == MAX_TENSORS)
		abort();
	struct tensor *tensor = &list->tensor[list->count++];
	snprintf(tensor->name, sizeof(tensor->name), "%s%s", prefix, suffix);
	tensor->rank = rank;
	memcpy(tensor->shape, shape, (size_t)rank * sizeof(*shape));
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

/* Writing */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

static bool is_norm(const char *name)
{
	static const char *const endings[] = {"norm1.weight", "norm2.weight", "group_norm.weight",
					      "conv_norm_out.weight", "layer_norm.weight"};
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t length = strlen(name), ending = strlen(endings[i]);
		if (length >= ending && strcmp(name + length - ending, endings[i]) == 0)
			return true;
	}
	return false;
}

static float *filled(const struct tensor *tensor, int k, double amplitude)
{
	const double offset = is_norm(tensor->name) ? 1 : 0;
	int64_t count = 1;
	for (int i = 0; i < tensor->rank; i++)
		count *= tensor->shape[i];
	float *values = malloc((size_t)count * sizeof(*values));
	for (int64_t i = 0; values && i < count; i++)
		values[i] = (float)(offset + amplitude * sin(0.37 * (double)i + 1.3 * k));
	return values;
}

/* Frees the list. */
static struct smalti_checkpoint *open_list(struct list *list, double amplitude)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tensor_view *views = calloc((size_t)list->count, sizeof(*views));
	float **data = calloc((size_t)list->count, sizeof(*data));
	if (!views || !data)
		abort();
	qsort(list->tensor, (size_t)list->count, sizeof(list->tensor[0]), by_name);
	for (int k = 0; k < list->count; k++) {
		const struct tensor *tensor = &list->tensor[k];
		data[k] = filled(tensor, k, amplitude);
		views[k] = (struct smalti_tensor_view){
		    .name = tensor->name, .dtype = SMALTI_F32, .rank = tensor->rank, .data = data[k]};
		memcpy(views[k].shape, tensor->shape, sizeof(tensor->shape));
	}
	const char *folder = test_scratch();
	char path[PATH_LENGTH];
	snprintf(path, sizeof(path), "%s/" SMALTI_STEM_T5 ".safetensors", folder);
	SUCCEEDS(smalti_safetensors_write(path, views, list->count, &error), &error, "write");
	struct smalti_checkpoint *checkpoint = smalti_checkpoint_open(folder, SMALTI_STEM_T5, NULL, &error);
	SUCCEEDS(checkpoint ? 0 : -1, &error, "open");
	for (int k = 0; k < list->count; k++)
		free(data[k]);
	free(data);
	free(views);
	free(list);
	return checkpoint;
}

/* The transformer (1.4) */

static void add_embedder(struct list *list, int64_t width, const char *embedder)
{
	enum { SINUSOID = 256 };
	char name[NAME_LENGTH];
	add_linear(list, width, SINUSOID, name_of(name, "adaln_single.emb.%s.linear_1", embedder));
	add_linear(list, width, width, name_of(name, "adaln_single.emb.%s.linear_2", embedder));
}

static void add_attention(struct list *list, int64_t width, const char *prefix)
{
	static const char *const parts[] = {"to_q", "to_k", "to_v", "to_out.0"};
	char name[NAME_LENGTH];
	for (int i = 0; i < 4; i++)
		add_linear(list, width, width, name_of(name, "%s.%s", prefix, parts[i]));
}

static void add_transformer_block(struct list *list, int64_t width, int64_t block)
{
	char prefix[64], name[NAME_LENGTH];
	snprintf(prefix, sizeof(prefix), "transformer_blocks.%lld", (long long)block);
	add(list, 2, (const int64_t[]){6, width}, prefix, ".scale_shift_table");
	add_attention(list, width, name_of(name, "%s.attn1", prefix));
	add_attention(list, width, name_of(name, "%s.attn2", prefix));
	add_linear(list, 4 * width, width, name_of(name, "%s.ff.net.0.proj", prefix));
	add_linear(list, width, 4 * width, name_of(name, "%s.ff.net.2", prefix));
}

struct smalti_checkpoint *synthetic_transformer(const struct smalti_transformer_config *c, double amplitude)
{
	struct list *list = new_list();
	add_conv(list, c->width, c->in_channels, c->patch_size, "pos_embed.proj");
	add_embedder(list, c->width, "timestep_embedder");
	if (c->additional_conditions) {
		add_embedder(list, c->width / 3, "resolution_embedder");
		add_embedder(list, c->width / 3, "aspect_ratio_embedder");
	}
	add_linear(list, 6 * c->width, c->width, "adaln_single.linear");
	if (c->caption_channels) {
		add_linear(list, c->width, c->caption_channels, "caption_projection.linear_1");
		add_linear(list, c->width, c->width, "caption_projection.linear_2");
	}
	for (int64_t block = 0; block < c->layers; block++)
		add_transformer_block(list, c->width, block);
	add(list, 2, (const int64_t[]){2, c->width}, "scale_shift_table", "");
	add_linear(list, c->patch_size * c->patch_size * c->out_channels, c->width, "proj_out");
	return open_list(list, amplitude);
}

/* The VAE (Appendix A), encoder and decoder */

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
	add_attention(list, channels, name_of(name, "%s.attentions.0", prefix));
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

struct smalti_checkpoint *synthetic_vae(const struct smalti_vae_config *config, double amplitude)
{
	struct list *list = new_list();
	add_encoder(list, config);
	add_decoder(list, config);
	return open_list(list, amplitude);
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

struct smalti_checkpoint *synthetic_t5(const struct smalti_t5_config *c, double amplitude)
{
	struct list *list = new_list();
	add_matrix(list, c->vocabulary, c->width, "shared");
	add_matrix(list, c->buckets, c->heads,
		   "encoder.block.0.layer.0.SelfAttention.relative_attention_bias");
	for (int64_t block = 0; block < c->layers; block++)
		add_t5_block(list, c, block);
	add_vector(list, c->width, "encoder.final_layer_norm", ".weight");
	return open_list(list, amplitude);
}
