/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors that loaders ask for against what the published models have, and against the
 * files of the embedded model, which the reference wrote. */
#include "bench/fill.h"
#include "checkpoint/checkpoint.h"
#include "graphs/tensors.h"
#include "harness.h"

#include <stdio.h>
#include <string.h>

static const struct smalti_transformer_config sigma = {
    .layers = 28,
    .heads = 16,
    .head_dim = 72,
    .width = 1152,
    .in_channels = 4,
    .out_channels = 8,
    .patch_size = 2,
    .caption_channels = 4096,
    .attention_bias = true,
};

static const struct smalti_vae_config sdxl = {
    .blocks = 4,
    .channels = {128, 256, 512, 512},
    .layers_per_block = 2,
    .image_channels = 3,
    .latent_channels = 4,
    .quant_conv = true,
    .post_quant_conv = true,
    .mid_block_attention = true,
};

static const struct smalti_t5_config xxl = {
    .layers = 24,
    .vocabulary = 32128,
    .width = 4096,
    .heads = 64,
    .head_dim = 64,
    .inner = 4096,
    .ff_width = 10240,
    .buckets = 32,
};

static void check_sum(struct smalti_inventory *inventory, int status, const struct smalti_error *error,
		      const char *what, int count, int64_t parameters)
{
	SUCCEEDS(status, error, what);
	int64_t bytes = 0;
	for (int i = 0; i < inventory->count; i++) {
		bytes += inventory->tensors[i].bytes;
		CHECK(!i || strcmp(inventory->tensors[i - 1].name, inventory->tensors[i].name) < 0, "order");
	}
	char text[128];
	snprintf(text, sizeof(text), "%s: %d tensors of %lld parameters", what, inventory->count,
		 (long long)bytes / 2);
	CHECK(inventory->count == count && bytes == 2 * parameters, text);
	smalti_inventory_free(inventory);
}

static void published_models_have_so_many(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_inventory inventory;
	struct smalti_transformer_config alpha = sigma, unbiased = sigma;
	alpha.additional_conditions = true;
	unbiased.attention_bias = false;
	int status = smalti_component_tensors(&inventory, SMALTI_TRANSFORMER, &sigma, SMALTI_F16, &error);
	check_sum(&inventory, status, &error, "sigma", 603, 610856096);
	status = smalti_component_tensors(&inventory, SMALTI_TRANSFORMER, &alpha, SMALTI_BF16, &error);
	check_sum(&inventory, status, &error, "alpha-1024", 611, 611349152);
	status = smalti_component_tensors(&inventory, SMALTI_TRANSFORMER, &unbiased, SMALTI_F16, &error);
	check_sum(&inventory, status, &error, "no attention bias", 603 - 28 * 6,
		  610856096 - (int64_t)28 * 6 * 1152);
	status = smalti_component_tensors(&inventory, SMALTI_VAE, &sdxl, SMALTI_F16, &error);
	check_sum(&inventory, status, &error, "VAE", 248, 83653863);
	status = smalti_component_tensors(&inventory, SMALTI_TEXT_ENCODER, &xxl, SMALTI_F16, &error);
	check_sum(&inventory, status, &error, "T5-XXL", 219, 4762310656);
}

/* The same names and shapes; the inventory is freed. */
static void check_same(struct smalti_inventory *inventory, int status, struct smalti_error *error,
		       const char *component, const char *stem)
{
	SUCCEEDS(status, error, component);
	char path[64];
	snprintf(path, sizeof(path), "tesserae/%s", component);
	struct smalti_checkpoint *checkpoint = smalti_checkpoint_open(test_model(path), stem, NULL, error);
	SUCCEEDS(checkpoint ? 0 : -1, error, component);
	CHECK(checkpoint->count == inventory->count, component);
	for (int i = 0; i < inventory->count; i++) {
		const struct smalti_tensor_view *tensor = &inventory->tensors[i];
		struct smalti_tensor_view found;
		SUCCEEDS(smalti_checkpoint_find(checkpoint, tensor->name, tensor->rank, tensor->shape, &found,
						error),
			 error, component);
		CHECK(found.dtype == tensor->dtype && found.bytes == tensor->bytes, tensor->name);
	}
	smalti_checkpoint_close(checkpoint);
	smalti_inventory_free(inventory);
}

static void the_embedded_model_has_these(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_inventory inventory;
	struct smalti_t5_config t5;
	SUCCEEDS(smalti_t5_config_read(test_model("tesserae/text_encoder/config.json"), &t5, &error), &error,
		 "t5");
	int status = smalti_component_tensors(&inventory, SMALTI_TEXT_ENCODER, &t5, SMALTI_F16, &error);
	check_same(&inventory, status, &error, "text_encoder", SMALTI_STEM_T5);
	struct smalti_transformer_config dit;
	SUCCEEDS(smalti_transformer_config_read(test_model("tesserae/transformer/config.json"), &dit, &error),
		 &error, "transformer");
	status = smalti_component_tensors(&inventory, SMALTI_TRANSFORMER, &dit, SMALTI_F16, &error);
	check_same(&inventory, status, &error, "transformer", SMALTI_STEM_DIFFUSERS);
	struct smalti_vae_config vae;
	SUCCEEDS(smalti_vae_config_read(test_model("tesserae/vae/config.json"), &vae, &error), &error, "vae");
	status = smalti_component_tensors(&inventory, SMALTI_VAE, &vae, SMALTI_F16, &error);
	check_same(&inventory, status, &error, "vae", SMALTI_STEM_DIFFUSERS);
}

static void too_large_is_refused(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_inventory inventory;
	struct smalti_t5_config huge = xxl;
	huge.vocabulary = huge.width = INT64_C(1) << 31;
	FAILS(smalti_component_tensors(&inventory, SMALTI_TEXT_ENCODER, &huge, SMALTI_F32, &error), &error,
	      SMALTI_EINVAL, "huge", "shared.weight", "too large");
	CHECK(!inventory.tensors && !inventory.count, "nothing is left");
}

static void norms_are_told_by_their_names(void)
{
	static const struct {
		const char *name;
		bool norm;
	} cases[] = {
	    {"encoder.block.0.layer.0.layer_norm.weight", true},
	    {"encoder.final_layer_norm.weight", true},
	    {"decoder.mid_block.attentions.0.group_norm.weight", true},
	    {"decoder.mid_block.resnets.0.norm2.weight", true},
	    {"decoder.conv_norm_out.weight", true},
	    {"decoder.conv_norm_out.bias", false},
	    {"proj_out.weight", false},
	    {"weight", false},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		CHECK(smalti_is_norm_weight(cases[i].name) == cases[i].norm, cases[i].name);
}

static const struct test tests[] = {
    {"published models have so many", published_models_have_so_many},
    {"the embedded model has these", the_embedded_model_has_these},
    {"too large is refused", too_large_is_refused},
    {"norms are told by their names", norms_are_told_by_their_names},
};

TEST_MAIN("tensors", tests)
