/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/vae/net.h"
#include "rt/devices_alone.h"

enum { PREFIX_LENGTH = 48 };

/* Decoders with more bytes of weights pack them in each decoding, layer by layer: fresh memory for all would
 * take at least as long. Devices, which pack nothing, keep them. */
enum { LARGEST_KEPT = 128 << 20 };

static struct smalti_vae_layer *append(struct smalti_vae_net *l, enum smalti_vae_layer_kind kind,
				       const char *name, int64_t channels)
{
	struct smalti_vae_layer *layer = &l->layer[l->count++];
	l->map[l->count] = l->map[l->count - 1];
	l->map[l->count].channels = channels;
	layer->kind = kind;
	snprintf(layer->name, sizeof(layer->name), "%s", name);
	return layer;
}

static struct smalti_vae_layer *append_conv(struct smalti_vae_net *l, const char *name, int64_t out,
					    const char *norm)
{
	const int64_t in = l->map[l->count].channels;
	struct smalti_vae_layer *layer = append(l, SMALTI_VAE_CONV, name, out);
	if (norm)
		layer->norm = smalti_weights_affine(l->weights, in, norm);
	layer->kernel = smalti_weights_conv(l->weights, in, out, 1, name);
	return layer;
}

static void append_upsampling(struct smalti_vae_net *l, const char *name)
{
	append_conv(l, name, l->map[l->count].channels, NULL)->upsample = true;
	l->map[l->count].up *= 2;
}

static void append_downsampling(struct smalti_vae_net *l, const char *name)
{
	const int64_t channels = l->map[l->count].channels;
	append(l, SMALTI_VAE_CONV, name, channels)->kernel =
	    smalti_weights_conv(l->weights, channels, channels, 2, name);
	l->map[l->count].down *= 2;
}

/* Appends shortcut(x) + conv2(SiLU(GN2(conv1(SiLU(GN1(x)))))). */
static void append_resnet(struct smalti_vae_net *l, const char *prefix, int64_t out)
{
	const int64_t in = l->map[l->count].channels;
	char name[SMALTI_VAE_NAME_LENGTH], norm[SMALTI_VAE_NAME_LENGTH];
	snprintf(name, sizeof(name), "%s.conv1", prefix);
	snprintf(norm, sizeof(norm), "%s.norm1", prefix);
	append_conv(l, name, out, norm);
	snprintf(name, sizeof(name), "%s.conv2", prefix);
	snprintf(norm, sizeof(norm), "%s.norm2", prefix);
	struct smalti_vae_layer *end = append_conv(l, name, out, norm);
	end->kind = SMALTI_VAE_RESIDUAL;
	snprintf(name, sizeof(name), "%s.conv_shortcut", prefix);
	if (in != out)
		end->linear = smalti_weights_linear_1x1(l->weights, in, out, name);
}

static void append_attention(struct smalti_vae_net *l, const char *prefix)
{
	const int64_t channels = l->map[l->count].channels;
	const char *const q[3] = {"to_q"}, *const kv[3] = {"to_k", "to_v"}, *const out[3] = {"to_out.0"};
	char name[SMALTI_VAE_NAME_LENGTH], below[SMALTI_VAE_NAME_LENGTH];
	snprintf(name, sizeof(name), "%s.group_norm", prefix);
	snprintf(below, sizeof(below), "%s.", prefix);
	struct smalti_vae_layer *layer = append(l, SMALTI_VAE_ATTENTION, prefix, channels);
	layer->norm = smalti_weights_affine(l->weights, channels, name);
	layer->q = smalti_weights_linear(l->weights, channels, channels, true, below, q);
	layer->kv = smalti_weights_linear(l->weights, channels, 2 * channels, true, below, kv);
	layer->out = smalti_weights_linear(l->weights, channels, channels, true, below, out);
}

/* Takes `half` as "encoder" or "decoder". */
static void append_mid_block(struct smalti_vae_net *l, const char *half)
{
	const int64_t channels = l->map[l->count].channels;
	char prefix[PREFIX_LENGTH];
	snprintf(prefix, sizeof(prefix), "%s.mid_block.resnets.0", half);
	append_resnet(l, prefix, channels);
	snprintf(prefix, sizeof(prefix), "%s.mid_block.attentions.0", half);
	if (l->config.mid_block_attention)
		append_attention(l, prefix);
	snprintf(prefix, sizeof(prefix), "%s.mid_block.resnets.1", half);
	append_resnet(l, prefix, channels);
}

/* Appends a quantiser, always in f32: it is small and influences much. */
static void append_quantiser(struct smalti_vae_net *l, const char *name, int64_t channels)
{
	append(l, SMALTI_VAE_LINEAR, name, channels)->linear = smalti_weights_reshaped(
	    l->weights, (const int64_t[]){channels, channels, 1, 1}, 4, SMALTI_F32, name);
}

static void append_resnets(struct smalti_vae_net *l, const char *blocks, int block, int64_t count,
			   int64_t out)
{
	char prefix[PREFIX_LENGTH + 32];
	for (int64_t i = 0; i < count; i++) {
		snprintf(prefix, sizeof(prefix), "%s.%d.resnets.%lld", blocks, block, (long long)i);
		append_resnet(l, prefix, out);
	}
}

static void append_decoder(struct smalti_vae_net *l)
{
	const struct smalti_vae_config *c = &l->config;
	char name[SMALTI_VAE_NAME_LENGTH];
	l->map[0] = (struct smalti_vae_shape){c->latent_channels, 1, 1};
	if (c->post_quant_conv)
		append_quantiser(l, "post_quant_conv", c->latent_channels);
	append_conv(l, "decoder.conv_in", c->channels[c->blocks - 1], NULL);
	append_mid_block(l, "decoder");
	for (int block = 0; block < c->blocks; block++) {
		append_resnets(l, "decoder.up_blocks", block, c->layers_per_block + 1,
			       c->channels[c->blocks - 1 - block]);
		snprintf(name, sizeof(name), "decoder.up_blocks.%d.upsamplers.0.conv", block);
		if (block < c->blocks - 1)
			append_upsampling(l, name);
	}
	append_conv(l, "decoder.conv_out", c->image_channels, "decoder.conv_norm_out");
}

static void append_encoder(struct smalti_vae_net *l)
{
	const struct smalti_vae_config *c = &l->config;
	char name[SMALTI_VAE_NAME_LENGTH];
	l->map[0] = (struct smalti_vae_shape){c->image_channels, 1, 1};
	append_conv(l, "encoder.conv_in", c->channels[0], NULL);
	for (int block = 0; block < c->blocks; block++) {
		append_resnets(l, "encoder.down_blocks", block, c->layers_per_block, c->channels[block]);
		snprintf(name, sizeof(name), "encoder.down_blocks.%d.downsamplers.0.conv", block);
		if (block < c->blocks - 1)
			append_downsampling(l, name);
	}
	append_mid_block(l, "encoder");
	append_conv(l, "encoder.conv_out", 2 * c->latent_channels, "encoder.conv_norm_out");
	if (c->quant_conv)
		append_quantiser(l, "quant_conv", 2 * c->latent_channels);
}

/* Opens a net with room for each resnet's two layers, and for others. */
static int open_net(struct smalti_vae_net *l, struct smalti_task_group *task_group,
		    const struct smalti_checkpoint *checkpoint, struct smalti_error *error)
{
	enum { OTHERS = 16 };
	const struct smalti_vae_config *c = &l->config;
	const int capacity = (int)(2 * c->blocks * (c->layers_per_block + 1)) + c->blocks + OTHERS;
	l->layer = smalti_calloc(capacity, sizeof(*l->layer), error);
	l->map = smalti_calloc(capacity + 1, sizeof(*l->map), error);
	l->weights =
	    l->layer && l->map ? smalti_weights_new(task_group, checkpoint, l->compute, error) : NULL;
	if (!l->weights)
		return -1;
	if (l->direction == SMALTI_VAE_DECODE)
		append_decoder(l);
	else
		append_encoder(l);
	return smalti_weights_status(l->weights, error);
}

struct smalti_vae_net *smalti_vae_net_new(enum smalti_vae_direction direction,
					  struct smalti_task_group *task_group,
					  const struct smalti_vae_config *config,
					  const struct smalti_checkpoint *checkpoint,
					  enum smalti_dtype compute, struct smalti_error *error)
{
	struct smalti_vae_net *net = smalti_calloc(1, sizeof(*net), error);
	if (!net)
		return NULL;
	net->direction = direction;
	net->config = *config;
	net->compute = compute;
	if (open_net(net, task_group, checkpoint, error) < 0) {
		smalti_vae_net_free(net);
		return NULL;
	}
	const bool on_devices = task_group && smalti_devices_alone(task_group->session);
	net->weights->transient = direction == SMALTI_VAE_DECODE && !on_devices &&
				  smalti_weights_bytes(net->weights) > LARGEST_KEPT;
	return net;
}

void smalti_vae_net_free(struct smalti_vae_net *net)
{
	if (!net)
		return;
	smalti_weights_free(net->weights);
	free(net->layer);
	free(net->map);
	free(net);
}

int64_t smalti_vae_map_groups(const struct smalti_vae_net *l, int map)
{
	return map < l->count && l->layer[map].norm.gamma ? l->config.norm_groups : 0;
}

static double map_pixels(const struct smalti_vae_net *l, int map, double input_pixels)
{
	const double scale = (double)l->map[map].up / (double)l->map[map].down;
	return input_pixels * scale * scale;
}

double smalti_vae_layer_flops(const struct smalti_vae_net *l, int layer, double input_pixels)
{
	const double in = (double)l->map[layer].channels, out = (double)l->map[layer + 1].channels;
	const double pixels = map_pixels(l, layer + 1, input_pixels);
	switch (l->layer[layer].kind) {
	case SMALTI_VAE_RESIDUAL:
		return pixels * (18 * in * out + 2 * out * (double)l->layer[layer].linear.in);
	case SMALTI_VAE_ATTENTION:
		return pixels * (8 * in * in + 4 * pixels * in);
	case SMALTI_VAE_LINEAR:
		return pixels * 2 * in * out;
	case SMALTI_VAE_CONV:
		break;
	}
	return pixels * 18 * in * out;
}

double smalti_vae_net_flops(const struct smalti_vae_net *l, double input_pixels)
{
	double flops = 0;
	for (int layer = 0; layer < l->count; layer++)
		flops += smalti_vae_layer_flops(l, layer, input_pixels);
	return flops;
}
