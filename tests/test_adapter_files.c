/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/adapter.h"
#include "checkpoint/adapter_set.h"
#include "checkpoint/config.h"
#include "graphs/tensors.h"
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adapters' files of every form, good and bad, for the embedded model. */

#define TO_K            "transformer_blocks.0.attn1.to_k"
#define FLAT_K          "transformer_blocks_0_attn1_to_k"
#define T5_Q            "encoder_block_1_layer_0_SelfAttention_q"
#define A(module)       module ".lora_A.weight F32 4,144;"
#define B(module)       module ".lora_B.weight F32 144,4;"
#define AB(module)      A(module) B(module)
#define DOWN(module)    module ".lora_down.weight F16 4,144;"
#define UP(module)      module ".lora_up.weight F16 144,4;"
#define DOWN_UP(module) DOWN(module) UP(module)
#define ALPHA(module)   module ".alpha F32 ;"

static const struct row {
	const char *what, *config, *metadata, *tensors;
	int count;          /* of changes; 0: it is refused */
	double scale;       /* of the first one */
	const char *tensor; /* the first one's */
	const char *words[3];
} rows[] = {
    /* names */
    {"peft", "{\"lora_alpha\": 8}", NULL, AB("base_model.model." TO_K), 1, 2, TO_K ".weight", {NULL}},
    {"peft with an adapter's name",
     "{\"lora_alpha\": 8}",
     NULL,
     "base_model.model." TO_K ".lora_A.default.weight F32 4,144;base_model.model." TO_K
     ".lora_B.default.weight F32 144,4;",
     1,
     2,
     TO_K ".weight",
     {NULL}},
    {"the training script's second file",
     NULL,
     NULL,
     AB("unet.base_model.model." TO_K),
     1,
     1,
     TO_K ".weight",
     {NULL}},
    {"diffusers", NULL, NULL, AB("transformer." TO_K), 1, 1, TO_K ".weight", {NULL}},
    {"no prefix", NULL, NULL, AB(TO_K), 1, 1, TO_K ".weight", {NULL}},
    {"unet", NULL, NULL, AB("unet." TO_K), 1, 1, TO_K ".weight", {NULL}},
    {"diffusion_model", NULL, NULL, AB("diffusion_model." TO_K), 1, 1, TO_K ".weight", {NULL}},
    {"old names", NULL, NULL, DOWN_UP("transformer." TO_K), 1, 1, TO_K ".weight", {NULL}},
    {"old names with dots",
     NULL,
     NULL,
     "transformer." TO_K ".lora.down.weight BF16 4,144;transformer." TO_K ".lora.up.weight BF16 144,4;",
     1,
     1,
     TO_K ".weight",
     {NULL}},
    {"old names with alpha",
     NULL,
     NULL,
     DOWN_UP("transformer." TO_K) ALPHA("transformer." TO_K),
     1,
     0.25 / 4,
     TO_K ".weight",
     {NULL}},
    {"flat",
     NULL,
     NULL,
     DOWN_UP("lora_transformer_" FLAT_K) ALPHA("lora_transformer_" FLAT_K),
     1,
     0.25 / 4,
     TO_K ".weight",
     {NULL}},
    {"flat of lycoris", NULL, NULL, DOWN_UP("lycoris_" FLAT_K), 1, 1, TO_K ".weight", {NULL}},
    {"flat of T5",
     NULL,
     NULL,
     "lora_te_" T5_Q ".lora_down.weight F32 2,128;lora_te_" T5_Q ".lora_up.weight F32 128,2;",
     1,
     1,
     "encoder.block.1.layer.0.SelfAttention.q.weight",
     {NULL}},
    {"flat of a first text encoder",
     NULL,
     NULL,
     "lora_te1_" T5_Q ".lora_down.weight F32 2,128;lora_te1_" T5_Q ".lora_up.weight F32 128,2;",
     1,
     1,
     "encoder.block.1.layer.0.SelfAttention.q.weight",
     {NULL}},
    {"T5 of diffusers",
     NULL,
     NULL,
     "text_encoder.encoder.block.1.layer.0.SelfAttention.q.lora_A.weight F32 2,128;"
     "text_encoder.encoder.block.1.layer.0.SelfAttention.q.lora_B.weight F32 128,2;",
     1,
     1,
     "encoder.block.1.layer.0.SelfAttention.q.weight",
     {NULL}},
    {"research names, q, k and v in one",
     NULL,
     NULL,
     "lora_unet_blocks_2_attn_qkv.lora_down.weight F32 4,144;lora_unet_blocks_2_attn_qkv.lora_up.weight F32 "
     "432,4;",
     3,
     1,
     "transformer_blocks.2.attn1.to_k.weight",
     {NULL}},
    {"research names, k and v in one, with dots",
     NULL,
     NULL,
     "diffusion_model.blocks.2.cross_attn.kv_linear.lora_A.weight F32 4,144;"
     "diffusion_model.blocks.2.cross_attn.kv_linear.lora_B.weight F32 288,4;",
     2,
     1,
     "transformer_blocks.2.attn2.to_k.weight",
     {NULL}},
    {"research names of other modules",
     NULL,
     NULL,
     "diffusion_model.t_block.1.lora_A.weight F32 4,144;diffusion_model.t_block.1.lora_B.weight F32 864,4;",
     1,
     1,
     "adaln_single.linear.weight",
     {NULL}},
    {"a convolution",
     NULL,
     NULL,
     "transformer.pos_embed.proj.lora_A.weight F32 4,4,2,2;transformer.pos_embed.proj.lora_B.weight F32 "
     "144,4,1,1;",
     1,
     1,
     "pos_embed.proj.weight",
     {NULL}},
    {"rank 1",
     NULL,
     NULL,
     TO_K ".lora_A.weight F32 1,144;" TO_K ".lora_B.weight F32 144,1;",
     1,
     1,
     TO_K ".weight",
     {NULL}},
    {"a rank above the extents",
     NULL,
     NULL,
     TO_K ".lora_A.weight F32 256,144;" TO_K ".lora_B.weight F32 144,256;",
     1,
     1,
     TO_K ".weight",
     {NULL}},
    {"text encoder and transformer",
     NULL,
     NULL,
     AB("transformer." TO_K) "lora_te_" T5_Q ".lora_down.weight F32 2,128;lora_te_" T5_Q
			     ".lora_up.weight F32 128,2;",
     2,
     1,
     "encoder.block.1.layer.0.SelfAttention.q.weight",
     {NULL}},
    {"embeddings of words",
     NULL,
     NULL,
     AB(TO_K) "bundle_emb.word.t5 F32 2,128;",
     1,
     1,
     TO_K ".weight",
     {NULL}},
    /* scales */
    {"peft's default alpha", "{}", NULL, AB("base_model.model." TO_K), 1, 2, TO_K ".weight", {NULL}},
    {"rank-stabilised",
     "{\"lora_alpha\": 6, \"use_rslora\": true}",
     NULL,
     AB("base_model.model." TO_K),
     1,
     3,
     TO_K ".weight",
     {NULL}},
    {"a pattern of alpha",
     "{\"lora_alpha\": 8, \"alpha_pattern\": {\"attn2.to_k\": 1, \"to_k\": 2}}",
     NULL,
     AB("base_model.model." TO_K),
     1,
     0.5,
     TO_K ".weight",
     {NULL}},
    {"a pattern of half a name",
     "{\"lora_alpha\": 8, \"alpha_pattern\": {\"o_k\": 2}}",
     NULL,
     AB("base_model.model." TO_K),
     1,
     2,
     TO_K ".weight",
     {NULL}},
    {"a pattern with a choice",
     "{\"lora_alpha\": 8, \"alpha_pattern\": {\"to_q|to_k\": 2}}",
     NULL,
     AB("base_model.model." TO_K),
     1,
     0.5,
     TO_K ".weight",
     {NULL}},
    {"metadata",
     NULL,
     "{\\\"transformer.lora_alpha\\\": 2, \\\"transformer.r\\\": 4}",
     AB("transformer." TO_K),
     1,
     0.5,
     TO_K ".weight",
     {NULL}},
    {"metadata of another component",
     NULL,
     "{\\\"text_encoder.lora_alpha\\\": 2}",
     AB("transformer." TO_K),
     1,
     1,
     TO_K ".weight",
     {NULL}},
    {"an alpha in the file beside a configuration",
     "{\"lora_alpha\": 8}",
     NULL,
     DOWN_UP("base_model.model." TO_K) ALPHA("base_model.model." TO_K),
     1,
     0.25 / 4,
     TO_K ".weight",
     {NULL}},
    /* DoRA */
    {"DoRA of peft",
     "{\"use_dora\": true}",
     NULL,
     AB("base_model.model." TO_K) "base_model.model." TO_K ".lora_magnitude_vector F32 144;",
     1,
     2,
     TO_K ".weight",
     {NULL}},
    {"DoRA of rows", NULL, NULL, DOWN_UP(TO_K) TO_K ".dora_scale F32 144,1;", 1, 1, TO_K ".weight", {NULL}},
    {"DoRA, flat",
     NULL,
     NULL,
     DOWN_UP("lora_transformer_" FLAT_K) "lora_transformer_" FLAT_K ".dora_scale F16 144,1;",
     1,
     1,
     TO_K ".weight",
     {NULL}},
    {"DoRA of columns",
     NULL,
     NULL,
     DOWN_UP(TO_K) TO_K ".dora_scale F32 1,144;",
     1,
     1,
     TO_K ".weight",
     {NULL}},
    {"DoRA of a convolution",
     NULL,
     NULL,
     "pos_embed.proj.lora_A.weight F32 4,4,2,2;pos_embed.proj.lora_B.weight F32 144,4,1,1;"
     "pos_embed.proj.lora_magnitude_vector F32 1,144,1,1;",
     1,
     1,
     "pos_embed.proj.weight",
     {NULL}},
    {"a magnitude of another size",
     NULL,
     NULL,
     DOWN_UP(TO_K) TO_K ".dora_scale F32 143,1;",
     0,
     0,
     NULL,
     {"dora_scale", "[144]", "[143, 1]"}},
    {"two magnitudes",
     NULL,
     NULL,
     DOWN_UP(TO_K) TO_K ".dora_scale F32 144,1;" TO_K ".lora_magnitude_vector F32 144;",
     0,
     0,
     NULL,
     {"same matrix"}},
    {"columns of a fused matrix",
     NULL,
     NULL,
     "blocks.2.attn.qkv.lora_A.weight F32 4,144;blocks.2.attn.qkv.lora_B.weight F32 432,4;"
     "blocks.2.attn.qkv.dora_scale F32 1,144;",
     0,
     0,
     NULL,
     {"per column", "not supported"}},
    /* what matches nothing */
    {"another model",
     NULL,
     NULL,
     AB("transformer.single_transformer_blocks.0.attn.to_k"),
     0,
     0,
     NULL,
     {"2 of 2 tensors", "nearest", "another model"}},
    {"a block too many",
     NULL,
     NULL,
     AB("transformer.transformer_blocks.41.attn1.to_k"),
     0,
     0,
     NULL,
     {"block 41", "has 6 blocks"}},
    {"a block too many, flat",
     NULL,
     NULL,
     DOWN_UP("lora_transformer_transformer_blocks_41_attn1_to_k"),
     0,
     0,
     NULL,
     {"block 41", "has 6 blocks"}},
    {"one unknown among known",
     NULL,
     NULL,
     AB(TO_K) AB("transformer.foo"),
     0,
     0,
     NULL,
     {"2 of 4", "transformer.foo"}},
    {"a whole weight",
     NULL,
     NULL,
     AB(TO_K) "transformer.proj_out.weight F32 32,144;",
     0,
     0,
     NULL,
     {"proj_out.weight"}},
    {"an embedding",
     NULL,
     NULL,
     "shared.lora_A.weight F32 4,128;shared.lora_B.weight F32 96,4;",
     0,
     0,
     NULL,
     {"shared.lora_A.weight"}},
    {"nothing", NULL, NULL, "", 0, 0, NULL, {"no tensor"}},
    /* halves, shapes, values, dtypes */
    {"A alone", NULL, NULL, A(TO_K), 0, 0, NULL, {"only one", "lora_B"}},
    {"B alone", NULL, NULL, B(TO_K), 0, 0, NULL, {"only one", "lora_A"}},
    {"alpha alone", NULL, NULL, ALPHA(TO_K), 0, 0, NULL, {"lora_A"}},
    {"A of another width",
     NULL,
     NULL,
     TO_K ".lora_A.weight F32 4,1152;" B(TO_K),
     0,
     0,
     NULL,
     {"[4, 144]", "[4, 1152]"}},
    {"B of another width",
     NULL,
     NULL,
     A(TO_K) TO_K ".lora_B.weight F32 1152,4;",
     0,
     0,
     NULL,
     {"[144, 4]", "[1152, 4]"}},
    {"ranks that differ",
     NULL,
     NULL,
     A(TO_K) TO_K ".lora_B.weight F32 144,8;",
     0,
     0,
     NULL,
     {"[144, 4]", "[144, 8]"}},
    {"rank 0",
     NULL,
     NULL,
     TO_K ".lora_A.weight F32 0,144;" TO_K ".lora_B.weight F32 144,0;",
     0,
     0,
     NULL,
     {"[rank, inputs]"}},
    {"a vector", NULL, NULL, TO_K ".lora_A.weight F32 144;" B(TO_K), 0, 0, NULL, {"lora_A"}},
    {"F64", NULL, NULL, TO_K ".lora_A.weight F64 4,144;" B(TO_K), 0, 0, NULL, {"F32, F16 or BF16", "F64"}},
    {"not a number", NULL, NULL, TO_K ".lora_A.weight NAN 4,144;" B(TO_K), 0, 0, NULL, {"not finite"}},
    {"an alpha of two values", NULL, NULL, DOWN_UP(TO_K) TO_K ".alpha F32 2;", 0, 0, NULL, {"alpha", "[2]"}},
    {"a matrix twice", NULL, NULL, AB(TO_K) AB("transformer." TO_K), 0, 0, NULL, {"same matrix"}},
    {"a matrix by two names",
     NULL,
     NULL,
     AB("transformer_blocks.2.attn1.to_out.0") AB("blocks.2.attn.proj"),
     0,
     0,
     NULL,
     {"two changes"}},
    /* other kinds of adapters */
    {"LoHa", NULL, NULL, "lycoris_" FLAT_K ".hada_w1_a F32 144,4;", 0, 0, NULL, {"LoHa"}},
    {"LoKr", NULL, NULL, "lycoris_" FLAT_K ".lokr_w1 F32 12,12;", 0, 0, NULL, {"LoKr"}},
    {"OFT", NULL, NULL, "lycoris_" FLAT_K ".oft_blocks F32 2,4,4;", 0, 0, NULL, {"OFT"}},
    {"a third factor",
     NULL,
     NULL,
     DOWN_UP(TO_K) TO_K ".lora_mid.weight F32 4,4,1,1;",
     0,
     0,
     NULL,
     {"lora_mid"}},
    {"differences", NULL, NULL, TO_K ".diff F32 144,144;", 0, 0, NULL, {"differences of weights"}},
    {"differences of biases", NULL, NULL, TO_K ".diff_b F32 144;", 0, 0, NULL, {"differences of biases"}},
    {"biases", NULL, NULL, AB(TO_K) TO_K ".lora_B.bias F32 144;", 0, 0, NULL, {"lora_bias"}},
    {"trained biases",
     "{\"bias\": \"all\"}",
     NULL,
     AB("base_model.model." TO_K),
     0,
     0,
     NULL,
     {"adapter_config.json", "bias", "all"}},
    {"modules to save",
     "{\"modules_to_save\": [\"proj_out\"]}",
     NULL,
     AB("base_model.model." TO_K),
     0,
     0,
     NULL,
     {"modules_to_save", "merge_and_unload"}},
    {"layers replicated",
     "{\"layer_replication\": [[0, 2]]}",
     NULL,
     AB("base_model.model." TO_K),
     0,
     0,
     NULL,
     {"layer_replication"}},
    {"QALoRA", "{\"use_qalora\": true}", NULL, AB("base_model.model." TO_K), 0, 0, NULL, {"use_qalora"}},
    {"matrices on their sides",
     "{\"fan_in_fan_out\": true}",
     NULL,
     AB("base_model.model." TO_K),
     0,
     0,
     NULL,
     {"fan_in_fan_out"}},
    {"another type",
     "{\"peft_type\": \"LOHA\"}",
     NULL,
     AB("base_model.model." TO_K),
     0,
     0,
     NULL,
     {"peft_type", "LOHA"}},
    {"alpha as a text",
     "{\"lora_alpha\": \"8\"}",
     NULL,
     AB("base_model.model." TO_K),
     0,
     0,
     NULL,
     {"lora_alpha"}},
    {"a broken pattern",
     "{\"alpha_pattern\": {\"to_(k\": 2}}",
     NULL,
     AB("base_model.model." TO_K),
     0,
     0,
     NULL,
     {"regular expression"}},
    {"broken metadata", NULL, "{", AB("transformer." TO_K), 0, 0, NULL, {"lora_adapter_metadata"}},
};

static struct smalti_inventory tensors[SMALTI_ADAPTED_COMPONENTS];
static const struct smalti_adapter_base base = {.tensors = {&tensors[0], &tensors[1]}};

static void list_tensors(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_t5_config t5;
	struct smalti_transformer_config transformer;
	SUCCEEDS(smalti_t5_config_read(test_model("tesserae/text_encoder/config.json"), &t5, &error), &error,
		 "T5");
	SUCCEEDS(smalti_transformer_config_read(test_model("tesserae/transformer/config.json"), &transformer,
						&error),
		 &error, "transformer");
	for (int c = 0; c < SMALTI_ADAPTED_COMPONENTS; c++)
		SUCCEEDS(smalti_component_tensors(&tensors[c], (enum smalti_component)c,
						  c == SMALTI_TRANSFORMER ? (const void *)&transformer : &t5,
						  SMALTI_F32, &error),
			 &error, "tensors");
}

/* Writes the values of a tensor: 0.25, or not a number. */
static void put_values(FILE *to, const char *dtype, int64_t count)
{
	const float value = strcmp(dtype, "NAN") == 0 ? NAN : 0.25f;
	for (int64_t i = 0; i < count; i++) {
		const uint16_t f16 = 0x3400, bf16 = 0x3e80;
		const double f64 = 0.25;
		if (strcmp(dtype, "F16") == 0)
			fwrite(&f16, sizeof(f16), 1, to);
		else if (strcmp(dtype, "BF16") == 0)
			fwrite(&bf16, sizeof(bf16), 1, to);
		else if (strcmp(dtype, "F64") == 0)
			fwrite(&f64, sizeof(f64), 1, to);
		else
			fwrite(&value, sizeof(value), 1, to);
	}
}

/* Makes the bytes of a safetensors file of "NAME DTYPE EXTENT,…;…". */
static char *make_file(const struct row *row, size_t *size)
{
	char *header = NULL, *data = NULL;
	size_t header_size = 0, data_size = 0;
	FILE *text = open_memstream(&header, &header_size), *values = open_memstream(&data, &data_size);
	fprintf(text, "{\"__metadata__\":{");
	if (row->metadata)
		fprintf(text, "\"lora_adapter_metadata\":\"%s\"", row->metadata);
	fprintf(text, "}");
	const char *at = row->tensors;
	for (int used; *at; at += used) {
		char name[160], dtype[8], extents[64] = "";
		if (sscanf(at, "%159s %7s %63[0-9,]%n", name, dtype, extents, &used) < 3)
			sscanf(at, "%159s %7s %n", name, dtype, &used);
		at++; /* the semicolon */
		int64_t count = 1;
		for (const char *digit = extents; *digit;
		     digit = strchr(digit, ',') ? strchr(digit, ',') + 1 : "")
			count *= strtoll(digit, NULL, 10);
		const long begin = ftell(values);
		put_values(values, dtype, count);
		fprintf(text, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%ld,%ld]}", name,
			strcmp(dtype, "NAN") == 0 ? "F32" : dtype, extents, begin, ftell(values));
	}
	fprintf(text, "}");
	fclose(text);
	fclose(values);
	const uint64_t length = header_size;
	char *bytes = malloc(sizeof(length) + header_size + data_size);
	memcpy(bytes, &length, sizeof(length));
	memcpy(bytes + sizeof(length), header, header_size);
	memcpy(bytes + sizeof(length) + header_size, data, data_size);
	*size = sizeof(length) + header_size + data_size;
	free(header);
	free(data);
	return bytes;
}

static struct smalti_adapter *read_row(const struct row *row, struct smalti_error *error)
{
	size_t size;
	char *bytes = make_file(row, &size);
	SCOPED(cJSON_Delete)
	cJSON *config = row->config ? smalti_json_parse(row->config, strlen(row->config), error) : NULL;
	struct smalti_safetensors *file = smalti_safetensors_parse(bytes, (int64_t)size, error);
	CHECK(file != NULL, row->what);
	struct smalti_adapter *adapter =
	    file ? smalti_adapter_read(file, config, "some.safetensors", &base, error) : NULL;
	smalti_safetensors_close(file);
	free(bytes);
	return adapter;
}

static void files(void)
{
	for (int i = 0; i < COUNT(rows); i++) {
		const struct row *row = &rows[i];
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_adapter *adapter = read_row(row, &error);
		if (row->count == 0) {
			CHECK(adapter == NULL && strstr(error.message, "some.safetensors") != NULL,
			      row->what);
			for (int w = 0; w < 3 && row->words[w]; w++)
				if (!strstr(error.message, row->words[w]))
					CHECK(false, error.message);
		} else {
			SUCCEEDS(adapter ? 0 : -1, &error, row->what);
		}
		if (adapter && row->count) {
			CHECK(adapter->count == row->count, row->what);
			CHECK(strcmp(adapter->changes[0].tensor, row->tensor) == 0, row->what);
			CHECK(fabs(adapter->changes[0].scale - row->scale) < 1e-12, row->what);
			CHECK(smalti_adapter_find(adapter, row->tensor) == adapter->changes, row->what);
		}
		smalti_adapter_close(adapter);
	}
}

static void notes(void)
{
	static const struct {
		int row;
		const char *word;
	} expected[] = {{2, "directory above"}, {22, "bundle_emb"}, {0, NULL}};
	for (int i = 0; i < COUNT(expected); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_adapter *adapter = read_row(&rows[expected[i].row], &error);
		SUCCEEDS(adapter ? 0 : -1, &error, rows[expected[i].row].what);
		const char *note = adapter ? adapter->note.message : "";
		CHECK(expected[i].word ? strstr(note, expected[i].word) != NULL : !*note,
		      rows[expected[i].row].what);
		smalti_adapter_close(adapter);
	}
}

/* Several adapters: their weights, and DoRA beside another. */
static void sets(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	char lora[4200], dora[4200];
	snprintf(lora, sizeof(lora), "%s", test_data("golden/lora/peft"));
	snprintf(dora, sizeof(dora), "%s", test_data("golden/lora/dora"));
	struct smalti_inventory copies[SMALTI_ADAPTED_COMPONENTS] = {tensors[0], tensors[1]};
	struct smalti_adapter_set *set = smalti_adapter_set_new(copies, &error);
	SUCCEEDS(smalti_adapter_set_add(set, lora, 0.5, &error), &error, "one");
	SUCCEEDS(smalti_adapter_set_add(set, lora, -0.5, &error), &error, "twice the same");
	FAILS(smalti_adapter_set_add(set, lora, NAN, &error), &error, SMALTI_EINVAL, "weight", "number");
	error = (struct smalti_error)SMALTI_NO_ERROR;
	FAILS(smalti_adapter_set_add(set, dora, 1, &error), &error, SMALTI_EUNSUPPORTED, "DoRA", "order");
	error = (struct smalti_error)SMALTI_NO_ERROR;
	FAILS(smalti_adapter_set_add(set, test_scratch(), 1, &error), &error, SMALTI_EIO, "empty",
	      "adapter_model.safetensors", "pytorch_lora_weights.safetensors");
	smalti_adapter_set_free(set); /* with the lists */
	tensors[0] = tensors[1] = (struct smalti_inventory){0};
}

static const struct test tests[] = {
    {"the model's tensors", list_tensors},
    {"files of every form", files},
    {"notes", notes},
    {"sets", sets},
};

TEST_MAIN("adapters' files", tests)
