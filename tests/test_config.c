/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/checkpoint.h"
#include "checkpoint/config.h"
#include "config_case.h"

#include <stdio.h>
#include <string.h>

static const char *model_file(const char *name)
{
	static char path[4096];
	snprintf(path, sizeof(path), "%s/%s", test_model("tesserae"), name);
	return path;
}

static void the_embedded_model_is_understood(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_model_index index;
	struct smalti_transformer_config dit;
	struct smalti_vae_config vae;
	struct smalti_t5_config t5;
	struct smalti_scheduler_config scheduler;
	SUCCEEDS(smalti_model_index_read(model_file("model_index.json"), &index, &error), &error, "index");
	SUCCEEDS(smalti_transformer_config_read(model_file("transformer/config.json"), &dit, &error), &error,
		 "transformer");
	SUCCEEDS(smalti_vae_config_read(model_file("vae/config.json"), &vae, &error), &error, "vae");
	SUCCEEDS(smalti_t5_config_read(model_file("text_encoder/config.json"), &t5, &error), &error, "t5");
	SUCCEEDS(smalti_scheduler_config_read(model_file("scheduler/scheduler_config.json"), index.scheduler,
					      &scheduler, &error, &error),
		 &error, "scheduler");
	SUCCEEDS(smalti_model_check(&index, &dit, &vae, &t5, &error), &error, "together");

	CU_ASSERT_EQUAL(index.pipeline, SMALTI_PIXART_SIGMA);
	CU_ASSERT_STRING_EQUAL(index.scheduler, "DPMSolverMultistepScheduler");
	CU_ASSERT_TRUE(dit.layers == 6 && dit.heads == 6 && dit.head_dim == 24 && dit.width == 144);
	CU_ASSERT_TRUE(dit.in_channels == 4 && dit.out_channels == 8 && dit.patch_size == 2);
	CU_ASSERT_TRUE(dit.sample_size == 16 && dit.caption_channels == 128 && dit.interpolation_scale == 1);
	CU_ASSERT_TRUE(dit.norm_eps == 1e-6 && dit.attention_bias && !dit.additional_conditions);
	CU_ASSERT_TRUE(vae.blocks == 4 && vae.channels[0] == 16 && vae.channels[3] == 64);
	CU_ASSERT_TRUE(vae.layers_per_block == 1 && vae.norm_groups == 8 && vae.scaling_factor == 0.607718);
	CU_ASSERT_TRUE(vae.quant_conv && vae.post_quant_conv && vae.mid_block_attention);
	CU_ASSERT_EQUAL(smalti_vae_factor(&vae), 8);
	CU_ASSERT_TRUE(t5.layers == 3 && t5.width == 128 && t5.heads == 4 && t5.head_dim == 32);
	CU_ASSERT_TRUE(t5.inner == 128 && t5.ff_width == 256 && t5.vocabulary == 384);
	CU_ASSERT_TRUE(t5.buckets == 32 && t5.max_distance == 128 && t5.norm_eps == 1e-6 && t5.eos_id == 1);
	CU_ASSERT_TRUE(scheduler.scheduler == SMALTI_SCHEDULER_DPM_SOLVER && scheduler.solver_order == 2);
	CU_ASSERT_TRUE(scheduler.train_timesteps == 1000 && scheduler.beta_start == 0.0001);
	CU_ASSERT_TRUE(scheduler.final_sigma == SMALTI_FINAL_SIGMA_ZERO && scheduler.lower_order_final);

	struct smalti_checkpoint *weights =
	    smalti_checkpoint_open(model_file("transformer"), SMALTI_STEM_DIFFUSERS, NULL, &error);
	SUCCEEDS(smalti_transformer_config_check(&dit, weights, &error), &error, "weights");
	dit.additional_conditions = true;
	FAILS(smalti_transformer_config_check(&dit, weights, &error), &error, SMALTI_EFORMAT, "flag",
	      "use_additional_conditions", "to false");
	smalti_checkpoint_close(weights);
}

static int parse_index(const cJSON *file, struct smalti_error *error)
{
	struct smalti_model_index index;
	return smalti_model_index_parse(file, &index, error);
}

#define SIGMA "\"_class_name\": \"PixArtSigmaPipeline\""

static void indices_are_checked(void)
{
	static const struct bad_config cases[] = {
	    {"{}", SMALTI_EFORMAT, {"_class_name", "missing"}},
	    {"{\"_class_name\": \"FluxPipeline\"}",
	     SMALTI_EUNSUPPORTED,
	     {"FluxPipeline", "PixArtAlphaPipeline"}},
	    {"{" SIGMA ", \"vae\": [\"diffusers\", \"AutoencoderDC\"]}",
	     SMALTI_EUNSUPPORTED,
	     {"vae", "AutoencoderDC"}},
	    {"{" SIGMA ", \"vae\": [\"diffusers\", 3]}", SMALTI_EUNSUPPORTED, {"vae", "is 3"}},
	    {"{" SIGMA ", \"text_encoder\": \"T5EncoderModel\"}",
	     SMALTI_EFORMAT,
	     {"text_encoder", "library"}},
	    {"{" SIGMA ", \"tokenizer\": [\"T5Tokenizer\"]}", SMALTI_EFORMAT, {"tokenizer", "library"}},
	    {"{" SIGMA ", \"scheduler\": \"DDPMScheduler\"}", SMALTI_EFORMAT, {"scheduler", "library"}},
	};
	check_bad_configs(parse_index, cases, COUNT(cases));
	cJSON *file =
	    config_object("{\"_class_name\": \"PixArtAlphaPipeline\", \"vae\": [null, null], \"new\": 1,"
			  " \"transformer\": [\"diffusers\", \"Transformer2DModel\"],"
			  " \"tokenizer\": [\"transformers\", \"TokenizersBackend\"],"
			  " \"scheduler\": [\"diffusers\", \"DDPMScheduler\"]}");
	struct smalti_model_index index;
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_model_index_parse(file, &index, &error), &error, "alpha");
	CU_ASSERT_EQUAL(smalti_pipeline_tokens(index.pipeline), 120);
	CU_ASSERT_EQUAL(smalti_pipeline_tokens(SMALTI_PIXART_SIGMA), 300);
	cJSON_Delete(file);
}

static int parse_transformer(const cJSON *file, struct smalti_error *error)
{
	struct smalti_transformer_config config;
	return smalti_transformer_config_parse(file, &config, error);
}

static void transformers_are_checked(void)
{
	static const struct bad_config cases[] = {
	    {"{\"_class_name\": \"UNet2DConditionModel\"}", SMALTI_EUNSUPPORTED, {"_class_name", "UNet"}},
	    {"{\"_class_name\": \"Transformer2DModel\"}",
	     SMALTI_EUNSUPPORTED,
	     {"norm_type", "ada_norm_single"}},
	    {"{\"norm_type\": \"layer_norm\"}", SMALTI_EUNSUPPORTED, {"norm_type", "ada_norm_single"}},
	    {"{\"attention_type\": \"gated\"}", SMALTI_EUNSUPPORTED, {"attention_type", "default"}},
	    {"{\"activation_fn\": \"geglu\"}", SMALTI_EUNSUPPORTED, {"activation_fn", "gelu-approximate"}},
	    {"{\"norm_elementwise_affine\": true}",
	     SMALTI_EUNSUPPORTED,
	     {"norm_elementwise_affine", "false"}},
	    {"{\"num_layers\": 0}", SMALTI_EFORMAT, {"num_layers", "found 0"}},
	    {"{\"num_layers\": 1001}", SMALTI_EFORMAT, {"num_layers", "1000"}},
	    {"{\"num_layers\": \"28\"}", SMALTI_EFORMAT, {"num_layers", "found \"28\""}},
	    {"{\"num_layers\": null}", SMALTI_EFORMAT, {"num_layers", "null"}},
	    {"{\"num_attention_heads\": 2.5}", SMALTI_EFORMAT, {"num_attention_heads", "2.5"}},
	    {"{\"num_attention_heads\": 1e18}", SMALTI_EFORMAT, {"num_attention_heads", "1024"}},
	    {"{\"attention_head_dim\": 71, \"num_attention_heads\": 3}", SMALTI_EFORMAT, {"213", "4"}},
	    {"{\"attention_head_dim\": 64}", SMALTI_EFORMAT, {"1024", "multiple of 3"}},
	    {"{\"cross_attention_dim\": 768}", SMALTI_EFORMAT, {"cross_attention_dim", "1152"}},
	    {"{\"cross_attention_dim\": null}", SMALTI_EFORMAT, {"cross_attention_dim", "null"}},
	    {"{\"out_channels\": 7}", SMALTI_EUNSUPPORTED, {"out_channels", "in_channels"}},
	    {"{\"patch_size\": 3}", SMALTI_EUNSUPPORTED, {"sample_size", "patch_size"}},
	    {"{\"sample_size\": [64, 64]}", SMALTI_EFORMAT, {"sample_size", "array"}},
	    {"{\"interpolation_scale\": 0}", SMALTI_EFORMAT, {"interpolation_scale", "found 0"}},
	    {"{\"interpolation_scale\": Infinity}", SMALTI_EFORMAT, {"interpolation_scale", "inf"}},
	    {"{\"norm_eps\": -1e-6}", SMALTI_EFORMAT, {"norm_eps", "found"}},
	    {"{\"use_additional_conditions\": 1}", SMALTI_EFORMAT, {"use_additional", "true or false"}},
	    {"{\"num_embeds_ada_norm\": null}", SMALTI_EFORMAT, {"num_embeds_ada_norm", "null"}},
	};
	check_bad_configs(parse_transformer, cases, COUNT(cases));
}

/* The columns of docs/reference.md 1.3. */
static void transformer_keys_are_inferred(void)
{
	static const struct {
		const char *text;
		double scale;
		int64_t caption, out;
		bool conditions;
	} cases[] = {
	    {"{}", 2, 0, 8, true},
	    {"{\"sample_size\": 128, \"caption_channels\": 4096, \"interpolation_scale\": null}", 2, 4096, 8,
	     true},
	    {"{\"sample_size\": 128, \"use_additional_conditions\": false}", 2, 0, 8, false},
	    {"{\"sample_size\": 128, \"use_additional_conditions\": null}", 2, 0, 8, true},
	    {"{\"sample_size\": 32, \"interpolation_scale\": 0.5}", 0.5, 0, 8, false},
	    {"{\"sample_size\": 32}", 1, 0, 8, false},
	    {"{\"sample_size\": 64, \"out_channels\": null}", 1, 0, 4, false},
	    {"{\"sample_size\": 126}", 1, 0, 8, false},
	    {"{\"sample_size\": 256, \"out_channels\": 4}", 4, 0, 4, false},
	    {"{\"sample_size\": 32, \"use_additional_conditions\": true}", 1, 0, 8, true},
	    {"{\"_class_name\": \"Transformer2DModel\", \"norm_type\": \"ada_norm_single\","
	     " \"upcast_attention\": true, \"dropout\": 0.1, \"num_vector_embeds\": null}",
	     2, 0, 8, true},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		cJSON *file = config_object(cases[i].text);
		struct smalti_transformer_config config;
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_transformer_config_parse(file, &config, &error), &error, cases[i].text);
		CHECK(config.interpolation_scale == cases[i].scale, cases[i].text);
		CHECK(config.caption_channels == cases[i].caption, cases[i].text);
		CHECK(config.out_channels == cases[i].out, cases[i].text);
		CHECK(config.additional_conditions == cases[i].conditions, cases[i].text);
		CHECK(config.layers == 28 && config.width == 1152, cases[i].text);
		cJSON_Delete(file);
	}
}

static int parse_vae(const cJSON *file, struct smalti_error *error)
{
	struct smalti_vae_config config;
	return smalti_vae_config_parse(file, &config, error);
}

#define MEAN       "\"latents_mean\": [1, 2, 3, 4]"
#define STD        "\"latents_std\": [0.5, 1, 2, 4]"
#define TWO_BLOCKS "\"block_out_channels\": [32, 64]"

static void vaes_are_checked(void)
{
	static const struct bad_config cases[] = {
	    {"{\"act_fn\": \"relu\"}", SMALTI_EUNSUPPORTED, {"act_fn", "silu"}},
	    {"{\"_class_name\": \"AutoencoderTiny\"}", SMALTI_EUNSUPPORTED, {"AutoencoderTiny"}},
	    {"{\"block_out_channels\": []}", SMALTI_EFORMAT, {"block_out_channels", "found 0"}},
	    {"{\"block_out_channels\": [32,32,32,32,32,32,32,32,32]}",
	     SMALTI_EFORMAT,
	     {"channels", "found 9"}},
	    {"{\"block_out_channels\": [48]}", SMALTI_EFORMAT, {"48", "norm_num_groups"}},
	    {"{\"block_out_channels\": [0]}", SMALTI_EFORMAT, {"block_out_channels", "found 0"}},
	    {"{\"norm_num_groups\": 0}", SMALTI_EFORMAT, {"norm_num_groups", "found 0"}},
	    {"{" TWO_BLOCKS "}", SMALTI_EFORMAT, {"down_block_types", "has 1"}},
	    {"{\"down_block_types\": [\"AttnDownEncoderBlock2D\"]}",
	     SMALTI_EUNSUPPORTED,
	     {"AttnDownEncoderBlock2D", "DownEncoderBlock2D"}},
	    {"{\"up_block_types\": [\"DownEncoderBlock2D\"]}", SMALTI_EUNSUPPORTED, {"up_block_types"}},
	    {"{\"down_block_types\": \"DownEncoderBlock2D\"}", SMALTI_EFORMAT, {"down_block_types", "array"}},
	    {"{\"in_channels\": 4}", SMALTI_EFORMAT, {"in_channels", "found 4"}},
	    {"{\"out_channels\": 1}", SMALTI_EFORMAT, {"out_channels", "found 1"}},
	    {"{\"latent_channels\": 0}", SMALTI_EFORMAT, {"latent_channels"}},
	    {"{\"scaling_factor\": 0}", SMALTI_EFORMAT, {"scaling_factor", "found 0"}},
	    {"{\"scaling_factor\": NaN}", SMALTI_EFORMAT, {"scaling_factor", "found NaN"}},
	    {"{\"shift_factor\": \"0.1\"}", SMALTI_EFORMAT, {"shift_factor", "0.1"}},
	    {"{\"shift_factor\": Infinity}", SMALTI_EFORMAT, {"shift_factor"}},
	    {"{\"latents_mean\": [1, 2, 3, 4]}", SMALTI_EFORMAT, {"latents_std", "only \"latents_mean\""}},
	    {"{\"latents_std\": [1, 2, 3, 4]}", SMALTI_EFORMAT, {"latents_mean", "only \"latents_std\""}},
	    {"{\"latents_mean\": [1], " STD "}", SMALTI_EFORMAT, {"4 numbers", "an array with 1"}},
	    {"{\"latents_mean\": 3, " STD "}", SMALTI_EFORMAT, {"latents_mean", "array of 4"}},
	    {"{\"latents_mean\": [1, 2, Infinity, 4], " STD "}", SMALTI_EFORMAT, {"latents_mean", "at 2"}},
	    {"{\"latents_mean\": [1, NaN, 3, 4], " STD "}", SMALTI_EFORMAT, {"latents_mean", "NaN at 1"}},
	    {"{\"latents_std\": [1, 2, 3, 4, 5]}", SMALTI_EFORMAT, {"latents_std", "with 5"}},
	    {"{\"latents_std\": [1, 2, 3, 0]}", SMALTI_EFORMAT, {"latents_std", "0 at 3"}},
	    {"{\"latents_std\": [-1, 2, 3, 1]}", SMALTI_EFORMAT, {"latents_std", "-1 at 0"}},
	    {"{\"shift_factor\": 0.5, " MEAN ", " STD "}", SMALTI_EUNSUPPORTED, {"shift_factor", "0.5"}},
	    {"{\"layers_per_block\": 65}", SMALTI_EFORMAT, {"layers_per_block"}},
	    {"{\"use_quant_conv\": \"no\"}", SMALTI_EFORMAT, {"use_quant_conv"}},
	};
	check_bad_configs(parse_vae, cases, COUNT(cases));
	cJSON *file =
	    config_object("{\"shift_factor\": null, \"latents_mean\": null, \"force_upcast\": false,"
			  " \"use_post_quant_conv\": false, \"act_fn\": \"swish\"}");
	struct smalti_vae_config config;
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_vae_config_parse(file, &config, &error), &error, "defaults");
	CU_ASSERT_TRUE(config.blocks == 1 && config.channels[0] == 64 && config.scaling_factor == 0.18215);
	CU_ASSERT_TRUE(config.quant_conv && !config.post_quant_conv && smalti_vae_factor(&config) == 1);
	CU_ASSERT_FALSE(config.force_upcast);
	cJSON_Delete(file);
}

/* The latents of a channel by the keys that say how they are scaled. */
static void latents_are_scaled(void)
{
	static const struct {
		const char *text;
		bool has_statistics;
		double scale[4], shift[4];
	} cases[] = {
	    {"{\"scaling_factor\": 2}", false, {0.5, 0.5, 0.5, 0.5}, {0}},
	    {"{\"scaling_factor\": 2, \"shift_factor\": 0}", false, {0.5, 0.5, 0.5, 0.5}, {0}},
	    {"{\"scaling_factor\": 2, \"shift_factor\": 0.25}",
	     true,
	     {0.5, 0.5, 0.5, 0.5},
	     {0.25, 0.25, 0.25, 0.25}},
	    {"{\"scaling_factor\": 2, " MEAN ", " STD "}", true, {0.25, 0.5, 1, 2}, {1, 2, 3, 4}},
	    {"{\"scaling_factor\": 2, \"shift_factor\": 0, " MEAN ", " STD "}",
	     true,
	     {0.25, 0.5, 1, 2},
	     {1, 2, 3, 4}},
	};
	for (size_t k = 0; k < COUNT(cases); k++) {
		struct smalti_vae_config config;
		struct smalti_error error = SMALTI_NO_ERROR;
		cJSON *file = config_object(cases[k].text);
		SUCCEEDS(smalti_vae_config_parse(file, &config, &error), &error, cases[k].text);
		CHECK(config.has_statistics == cases[k].has_statistics, cases[k].text);
		for (int64_t c = 0; c < 4; c++) {
			const struct smalti_latent_scale found = smalti_vae_latent_scale(&config, c);
			CHECK(found.scale == cases[k].scale[c] && found.shift == cases[k].shift[c],
			      cases[k].text);
		}
		cJSON_Delete(file);
	}
}

static int parse_t5(const cJSON *file, struct smalti_error *error)
{
	struct smalti_t5_config config;
	return smalti_t5_config_parse(file, &config, error);
}

#define T5(more)                                                                                             \
	"{\"num_layers\": 24, \"vocab_size\": 32128, \"d_model\": 4096, \"num_heads\": 64, \"d_kv\": 64,"    \
	" \"d_ff\": 10240" more "}"
#define GATED ", \"feed_forward_proj\": \"gated-gelu\""

static void text_encoders_are_checked(void)
{
	static const struct bad_config cases[] = {
	    {"{"
	     "\"feed_forward_proj\": \"gated-gelu\"}",
	     SMALTI_EFORMAT,
	     {"num_layers", "missing"}},
	    {T5(""), SMALTI_EFORMAT, {"feed_forward_proj", "missing"}},
	    {T5(", \"feed_forward_proj\": \"relu\""), SMALTI_EUNSUPPORTED, {"relu", "gated-gelu"}},
	    {T5(", \"feed_forward_proj\": \"gated-silu\""),
	     SMALTI_EUNSUPPORTED,
	     {"gated-silu", "gated-gelu"}},
	    {T5(GATED ", \"model_type\": \"umt5\""), SMALTI_EUNSUPPORTED, {"umt5"}},
	    {T5(GATED ", \"relative_attention_num_buckets\": 2"), SMALTI_EFORMAT, {"buckets", "found 2"}},
	    {T5(GATED ", \"relative_attention_num_buckets\": 33"), SMALTI_EFORMAT, {"33", "even"}},
	    {T5(GATED ", \"relative_attention_max_distance\": 8"), SMALTI_EFORMAT, {"32", "distance"}},
	    {T5(GATED ", \"eos_token_id\": 32128"), SMALTI_EFORMAT, {"eos_token_id", "32128"}},
	    {T5(GATED ", \"layer_norm_epsilon\": 0"), SMALTI_EFORMAT, {"layer_norm_epsilon"}},
	};
	check_bad_configs(parse_t5, cases, COUNT(cases));
	static const char *const good[] = {T5(GATED), T5(", \"feed_forward_proj\": \"gated-gelu_new\"")};
	for (size_t i = 0; i < COUNT(good); i++) {
		cJSON *file = config_object(good[i]);
		struct smalti_t5_config config;
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_t5_config_parse(file, &config, &error), &error, good[i]);
		CU_ASSERT_TRUE(config.inner == 4096 && config.max_distance == 128 && config.buckets == 32);
		cJSON_Delete(file);
	}
}

static void parts_of_different_models_are_refused(void)
{
	const struct smalti_transformer_config plain = {
	    .width = 144, .in_channels = 4, .caption_channels = 128};
	struct smalti_transformer_config conditions = plain, wide = plain, direct = plain;
	conditions.additional_conditions = true;
	conditions.sample_size = 128;
	wide.in_channels = 16;
	direct.caption_channels = 0;
	struct smalti_transformer_config odd = conditions;
	odd.sample_size = 64;
	const struct {
		const char *what;
		enum smalti_pipeline pipeline;
		const struct smalti_transformer_config *transformer;
		int64_t t5_width;
		enum smalti_code code;
	} cases[] = {
	    {"fitting", SMALTI_PIXART_SIGMA, &plain, 128, SMALTI_OK},
	    {"other text encoder", SMALTI_PIXART_SIGMA, &plain, 4096, SMALTI_EINVAL},
	    {"no projection", SMALTI_PIXART_SIGMA, &direct, 144, SMALTI_OK},
	    {"no projection, other width", SMALTI_PIXART_SIGMA, &direct, 128, SMALTI_EINVAL},
	    {"other vae", SMALTI_PIXART_SIGMA, &wide, 128, SMALTI_EINVAL},
	    {"conditions, alpha", SMALTI_PIXART_ALPHA, &conditions, 128, SMALTI_OK},
	    {"conditions, sigma", SMALTI_PIXART_SIGMA, &conditions, 128, SMALTI_EUNSUPPORTED},
	    {"conditions, alpha of 512", SMALTI_PIXART_ALPHA, &odd, 128, SMALTI_EUNSUPPORTED},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_model_index index = {.pipeline = cases[i].pipeline};
		struct smalti_vae_config vae = {.latent_channels = 4};
		struct smalti_t5_config t5 = {.width = cases[i].t5_width};
		struct smalti_error error = SMALTI_NO_ERROR;
		int status = smalti_model_check(&index, cases[i].transformer, &vae, &t5, &error);
		CHECK((status == 0) == (cases[i].code == SMALTI_OK) && error.code == cases[i].code,
		      cases[i].what);
	}
}

static void weights_of_research_models_are_refused(void)
{
	static const float value = 1;
	const struct smalti_transformer_config config = {.additional_conditions = true};
	const struct smalti_tensor_view tensors[] = {
	    {.name = "adaln_single.emb.resolution_embedder.linear_1.weight", .data = &value},
	    {.name = "transformer_blocks.0.attn1.sr.weight", .data = &value},
	};
	char directory[2048], path[4096];
	snprintf(directory, sizeof(directory), "%s", test_scratch());
	snprintf(path, sizeof(path), "%s/model.safetensors", directory);
	for (int count = 1; count <= 2; count++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_safetensors_write(path, tensors, count, &error), &error, "write");
		struct smalti_checkpoint *weights = smalti_checkpoint_open(directory, "model", NULL, &error);
		int status = smalti_transformer_config_check(&config, weights, &error);
		if (count == 1)
			SUCCEEDS(status, &error, "conditions");
		else
			FAILS(status, &error, SMALTI_EUNSUPPORTED, "KV compression", "attn1.sr");
		smalti_checkpoint_close(weights);
	}
}

static void messages_name_the_file(void)
{
	struct smalti_vae_config config;
	struct smalti_error absent = SMALTI_NO_ERROR, wrong = SMALTI_NO_ERROR;
	FAILS(smalti_vae_config_read(model_file("vae/none.json"), &config, &absent), &absent, SMALTI_ENOENT,
	      "absent", "vae/none.json", "No such");
	FAILS(smalti_vae_config_read(model_file("model_index.json"), &config, &wrong), &wrong,
	      SMALTI_EUNSUPPORTED, "another file", "model_index.json", "AutoencoderKL");
}

static const struct test tests[] = {
    {"the embedded model is understood", the_embedded_model_is_understood},
    {"indices are checked", indices_are_checked},
    {"transformers are checked", transformers_are_checked},
    {"transformer keys are inferred", transformer_keys_are_inferred},
    {"vaes are checked", vaes_are_checked},
    {"latents are scaled", latents_are_scaled},
    {"text encoders are checked", text_encoders_are_checked},
    {"parts of different models are refused", parts_of_different_models_are_refused},
    {"weights of research models are refused", weights_of_research_models_are_refused},
    {"messages name the file", messages_name_the_file},
};

TEST_MAIN("config", tests)
