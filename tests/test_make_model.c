/* SPDX-License-Identifier: Apache-2.0
 *
 * Models by formula: the values, the geometries, the shards, and that a stopped one leaves nothing. */
#include "bench/fill.h"
#include "bench/make_model.h"
#include "bench/weights.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/config.h"
#include "harness.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Computed in Python from the rule's text. */
static const struct {
	const char *name;
	int rank;
	int64_t shape[4];
	int k;
	int64_t i;
	float f32;
	uint16_t f16, bf16;
} values[] = {
    {"decoder.conv_norm_out.weight", 1, {128}, 0, 0, 0x1.13a022p+0f, 0x3c4f, 0x3f8a},
    {"encoder.block.0.layer.0.layer_norm.weight", 1, {4096}, 5, 4095, 0x1.e4e2e2p-1f, 0x3b94, 0x3f72},
    {"decoder.conv_in.bias", 1, {512}, 1, 7, 0x1.252158p-7f, 0x2095, 0x3c13},
    {"scale_shift_table", 2, {2, 1152}, 602, 2303, 0x1.8ef2d4p-6f, 0x263c, 0x3cc7},
    {"transformer_blocks.27.scale_shift_table", 2, {6, 1152}, 9, 1, 0x1.e6ccccp-17f, 0x00f3, 0x3773},
    {"shared.weight", 2, {32128, 4096}, 218, 131596287, 0x1.1eecacp-1f, 0x387c, 0x3f0f},
    {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
     2,
     {32, 64},
     4,
     63,
     -0x1.5bbc4p-5f,
     0xa96f,
     0xbd2e},
    {"encoder.block.0.layer.0.SelfAttention.q.weight",
     2,
     {4096, 4096},
     3,
     12345,
     0x1.4aad4p-9f,
     0x192b,
     0x3b25},
    {"encoder.block.0.layer.0.SelfAttention.k.weight",
     2,
     {4096, 4096},
     1,
     16777215,
     0x1.48e91cp-6f,
     0x2524,
     0x3ca4},
    {"decoder.conv_in.weight", 4, {512, 4, 3, 3}, 2, 18431, -0x1.0991d8p-3f, 0xb026, 0xbe05},
    {"quant_conv.weight", 4, {8, 8, 1, 1}, 247, 63, -0x1.6d81e6p-6f, 0xa5b6, 0xbcb7},
    {"encoder.block.1.layer.1.DenseReluDense.wo.weight",
     2,
     {4096, 10240},
     17,
     41943039,
     -0x1.4f34f6p-8f,
     0x9d3d,
     0xbba8},
};

static void values_follow_the_rule(void)
{
	for (size_t n = 0; n < COUNT(values); n++) {
		struct smalti_tensor_view tensor = {.name = values[n].name, .rank = values[n].rank};
		memcpy(tensor.shape, values[n].shape, sizeof(values[n].shape));
		const struct smalti_fill fill = smalti_fill_of(&tensor, values[n].k);
		const int64_t first = values[n].i < 3 ? 0 : values[n].i - 3;
		float piece[4];
		smalti_fill(&fill, first, 4, piece);
		const float found = piece[values[n].i - first];
		uint16_t f16, bf16;
		smalti_narrow(SMALTI_F16, &found, 1, &f16);
		smalti_narrow(SMALTI_BF16, &found, 1, &bf16);
		char what[160];
		snprintf(what, sizeof(what), "%s: %a, 0x%04x, 0x%04x", values[n].name, (double)found, f16,
			 bf16);
		CHECK(found == values[n].f32 && f16 == values[n].f16 && bf16 == values[n].bf16, what);
	}
}

static const struct {
	enum smalti_geometry geometry;
	enum smalti_pipeline pipeline;
	int64_t sample_size, transformer_tensors;
	double interpolation_scale, scaling_factor;
} geometries[] = {
    {SMALTI_SIGMA_256, SMALTI_PIXART_SIGMA, 32, 603, 0.5, 0.13025},
    {SMALTI_SIGMA_512, SMALTI_PIXART_SIGMA, 64, 603, 1, 0.13025},
    {SMALTI_SIGMA_1024, SMALTI_PIXART_SIGMA, 128, 603, 2, 0.13025},
    {SMALTI_SIGMA_2K, SMALTI_PIXART_SIGMA, 256, 603, 4, 0.13025},
    {SMALTI_ALPHA_512, SMALTI_PIXART_ALPHA, 64, 603, 1, 0.18215},
    {SMALTI_TINY, SMALTI_PIXART_SIGMA, 8, 57, 1, 0.13025},
};

static cJSON *config_of(enum smalti_geometry geometry, enum smalti_component component, int64_t layers)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	cJSON *config = smalti_geometry_config(geometry, component, layers, SMALTI_F32, &error);
	SUCCEEDS(config ? 0 : -1, &error, smalti_geometry_names[geometry]);
	return config;
}

static int tensors_of(enum smalti_component component, const cJSON *config)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_inventory inventory;
	SUCCEEDS(smalti_component_inventory(component, config, SMALTI_F32, &inventory, &error), &error,
		 smalti_component_names[component].directory);
	const int count = inventory.count;
	smalti_inventory_free(&inventory);
	return count;
}

/* Each geometry's parts belong together, and are what the published model's are. */
static void geometries_are_the_published(void)
{
	CHECK(COUNT(geometries) == SMALTI_GEOMETRIES, "all are here");
	for (size_t n = 0; n < SMALTI_GEOMETRIES; n++) {
		const char *name = smalti_geometry_names[geometries[n].geometry];
		struct smalti_error error = SMALTI_NO_ERROR;
		cJSON *config[SMALTI_COMPONENTS];
		for (int c = 0; c < SMALTI_COMPONENTS; c++)
			config[c] = config_of(geometries[n].geometry, c, 0);
		struct smalti_t5_config t5;
		struct smalti_transformer_config dit;
		struct smalti_vae_config vae;
		SUCCEEDS(smalti_t5_config_parse(config[SMALTI_TEXT_ENCODER], &t5, &error), &error, name);
		SUCCEEDS(smalti_transformer_config_parse(config[SMALTI_TRANSFORMER], &dit, &error), &error,
			 name);
		SUCCEEDS(smalti_vae_config_parse(config[SMALTI_VAE], &vae, &error), &error, name);
		const struct smalti_model_index index = {.pipeline = geometries[n].pipeline};
		SUCCEEDS(smalti_model_check(&index, &dit, &vae, &t5, &error), &error, name);
		CHECK(dit.sample_size == geometries[n].sample_size, name);
		CHECK(dit.interpolation_scale == geometries[n].interpolation_scale, name);
		CHECK(vae.scaling_factor == geometries[n].scaling_factor, name);
		CHECK(smalti_vae_factor(&vae) == 8, name);
		CHECK(tensors_of(SMALTI_TRANSFORMER, config[SMALTI_TRANSFORMER]) ==
			  geometries[n].transformer_tensors,
		      name);
		if (geometries[n].geometry != SMALTI_TINY) {
			CHECK(tensors_of(SMALTI_TEXT_ENCODER, config[SMALTI_TEXT_ENCODER]) == 219, name);
			CHECK(tensors_of(SMALTI_VAE, config[SMALTI_VAE]) == 248, name);
		}
		for (int c = 0; c < SMALTI_COMPONENTS; c++)
			cJSON_Delete(config[c]);
	}
	cJSON *shallow = config_of(SMALTI_SIGMA_512, SMALTI_TEXT_ENCODER, 2);
	CHECK(tensors_of(SMALTI_TEXT_ENCODER, shallow) == 219 - 22 * 9, "two layers of T5");
	cJSON_Delete(shallow);
}

static const struct smalti_make_model_options tiny = {
    .geometry = SMALTI_TINY,
    .dtype = SMALTI_F32,
    .with = {true, true, true},
    .shard_bytes = SMALTI_SHARD_BYTES,
};

static bool is_there(const char *directory, const char *name)
{
	char path[4096];
	struct stat info;
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return stat(path, &info) == 0;
}

static struct smalti_checkpoint *open_t5(const char *directory)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	char path[4096];
	snprintf(path, sizeof(path), "%s/text_encoder", directory);
	struct smalti_checkpoint *checkpoint = smalti_checkpoint_open(path, SMALTI_STEM_T5, NULL, &error);
	SUCCEEDS(checkpoint ? 0 : -1, &error, directory);
	return checkpoint;
}

/* Tensors are the same however they are cut, and one that is larger than a shard has one for itself. */
static void shards_hold_the_same(void)
{
	static const int64_t limits[] = {INT64_MAX, 60000, 16384, 1};
	char directory[3000], whole[3100], cut[3100];
	snprintf(directory, sizeof(directory), "%s", test_scratch());
	snprintf(whole, sizeof(whole), "%s/0", directory);
	for (int n = 0; n < 4; n++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_make_model_options options = tiny;
		snprintf(cut, sizeof(cut), "%s/%d", directory, n);
		options.directory = cut;
		options.shard_bytes = limits[n];
		SUCCEEDS(smalti_make_model(&options, &error), &error, cut);
		CHECK(is_there(cut, "text_encoder/model.safetensors") == !n, cut);
		CHECK(is_there(cut, "text_encoder/model.safetensors.index.json") == !!n, cut);
		struct smalti_checkpoint *a = open_t5(whole), *b = open_t5(cut);
		CHECK(a->count == 21 && b->count == 21, cut);
		for (int64_t i = 0; i < a->count; i++) {
			const struct smalti_tensor_view *x = &a->entries[i].view;
			const struct smalti_tensor_view *y = &b->entries[i].view;
			CHECK(!strcmp(x->name, y->name) && x->bytes == y->bytes &&
				  !memcmp(x->data, y->data, (size_t)x->bytes),
			      x->name);
		}
		smalti_checkpoint_close(a);
		smalti_checkpoint_close(b);
	}
	CHECK(is_there(cut, "text_encoder/model-00021-of-00021.safetensors"), "one tensor each");
}

/* How far the weights were when it was stopped. */
static int stop_after(void *user, int64_t done, int64_t total)
{
	return done >= *(const int64_t *)user && done <= total;
}

static void a_stopped_one_leaves_nothing(void)
{
	static const int64_t moments[] = {1, 200000, 600000};
	for (int n = 0; n < 6; n++) {
		char directory[3000], below[3100];
		snprintf(directory, sizeof(directory), "%s", test_scratch());
		snprintf(below, sizeof(below), "%s/new", directory);
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_make_model_options options = tiny;
		int64_t moment = moments[n % 3];
		options.directory = n < 3 ? directory : below;
		options.progress = stop_after;
		options.user = &moment;
		FAILS(smalti_make_model(&options, &error), &error, SMALTI_ECANCELLED, "stopped", "stopped");
		CHECK(rmdir(directory) == 0, "the directory that was there is empty, the new one is gone");
	}
}

static const struct test tests[] = {
    {"values follow the rule", values_follow_the_rule},
    {"geometries are the published", geometries_are_the_published},
    {"shards hold the same", shards_hold_the_same},
    {"a stopped one leaves nothing", a_stopped_one_leaves_nothing},
};

TEST_MAIN("make-model", tests)
