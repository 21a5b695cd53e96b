/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/checkpoint.h"
#include "checkpoint/config.h"
#include "checkpoint/gguf.h"
#include "checkpoint/gguf_names.h"
#include "gguf_file.h"
#include "golden.h"
#include "harness.h"

#include <stdlib.h>

static struct smalti_gguf *open_golden(const char *path)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_gguf *file = smalti_gguf_open(test_data(path), &error);
	SUCCEEDS(file ? 0 : -1, &error, path);
	return file;
}

static void every_type_has_its_values(void)
{
	static const char *const read[] = {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0",
					   "Q4_K", "Q5_K", "Q6_K", "BF16"};
	static const char *const refused[] = {"Q2_K", "Q3_K", "IQ4_NL", "IQ4_XS"};
	enum { ROWS = 3, COLUMNS = 512 };
	struct smalti_gguf *file = open_golden("golden/gguf/types.gguf");
	struct smalti_safetensors *golden = golden_open("golden/gguf/dequantised.safetensors");
	int64_t seen = 0;
	for (int64_t i = 0; i < file->count; i++) {
		const struct smalti_tensor_view *view = &file->tensors[i];
		float values[ROWS * COLUMNS];
		char name[64];
		CHECK(view->rank == 2 && view->shape[0] == ROWS && view->shape[1] == COLUMNS, view->name);
		for (int j = 0; j < COUNT(refused); j++)
			if (strcmp(view->name, refused[j]) == 0)
				CHECK(!view->usable && !view->coding && strcmp(view->stored, refused[j]) == 0,
				      view->name);
		for (int j = 0; j < COUNT(read); j++) {
			if (strcmp(view->name, read[j]) != 0)
				continue;
			snprintf(name, sizeof(name), "types.%s", read[j]);
			smalti_tensor_values(view, 0, 1, values);
			smalti_tensor_values(view, 1, ROWS - 1, values + COLUMNS);
			CHECK(memcmp(values, smalti_safetensors_find(golden, name)->data, sizeof(values)) ==
				  0,
			      name);
			seen++;
		}
	}
	CHECK(seen == COUNT(read) && seen + COUNT(refused) == file->count, "all types");
	smalti_safetensors_close(golden);
	smalti_gguf_close(file);
}

/* Tensors of whole files, under the names that they have here. */
static void tensors_have_their_values(void)
{
	struct smalti_safetensors *golden = golden_open("golden/gguf/dequantised.safetensors");
	int seen = 0;
	for (int64_t i = 0; i < golden->count; i++) {
		const struct smalti_tensor_view *expected = &golden->tensors[i];
		const char *name = strstr(expected->name, ".encoder.");
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_tensor_view view;
		char path[128];
		if (!name)
			continue;
		snprintf(path, sizeof(path), "golden/gguf/%.*s.gguf", (int)(name - expected->name),
			 expected->name);
		struct smalti_checkpoint *file =
		    smalti_checkpoint_open(test_data(path), SMALTI_STEM_T5, NULL, &error);
		SUCCEEDS(file ? 0 : -1, &error, path);
		SUCCEEDS(smalti_checkpoint_find(file, name + 1, 2, expected->shape, &view, &error), &error,
			 expected->name);
		float *values = malloc((size_t)expected->bytes);
		smalti_tensor_values(&view, 0, expected->shape[0], values);
		CHECK(memcmp(values, expected->data, (size_t)expected->bytes) == 0, expected->name);
		free(values);
		smalti_checkpoint_close(file);
		seen++;
	}
	CHECK(seen == 12, "all tensors");
	smalti_safetensors_close(golden);
}

static void metadata_have_their_types(void)
{
	struct smalti_gguf *file = open_golden("golden/gguf/types.gguf");
	const cJSON *string = cJSON_GetObjectItem(file->metadata, "test.string");
	CHECK(cJSON_IsString(string) && strcmp(string->valuestring, "h\303\251llo") == 0, "string");
	CHECK(cJSON_IsTrue(cJSON_GetObjectItem(file->metadata, "test.bool")), "bool");
	CHECK(smalti_json_number(file->metadata, "test.u64") == 9223372036854775808.0, "u64");
	CHECK(smalti_json_number(file->metadata, "test.f64") == 0.1, "f64");
	CHECK(!cJSON_GetObjectItem(file->metadata, "test.array"), "arrays are left out");
	CHECK(file->header_bytes % 64 == 0, "alignment");
	smalti_gguf_close(file);
}

static void names_of_t5(void)
{
	static const char *const cases[][2] = {
	    {"token_embd.weight", "shared.weight"},
	    {"enc.output_norm.weight", "encoder.final_layer_norm.weight"},
	    {"enc.blk.23.ffn_gate.weight", "encoder.block.23.layer.1.DenseReluDense.wi_0.weight"},
	    {"enc.blk.0.attn_rel_b.weight",
	     "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
	    {"text_encoders.t5xxl.transformer.shared.weight", "shared.weight"},
	    {"enc.blk.1.attn_q.bias", "enc.blk.1.attn_q.bias"},
	    {"enc.blk.-1.attn_q.weight", "enc.blk.-1.attn_q.weight"},
	    {"enc.blk.99999.attn_q.weight", "enc.blk.99999.attn_q.weight"},
	    {"dec.blk.0.attn_q.weight", "dec.blk.0.attn_q.weight"},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		char present[SMALTI_GGUF_NAME];
		smalti_gguf_t5_name(cases[i][0], present);
		CHECK(strcmp(present, cases[i][1]) == 0, cases[i][0]);
	}
}

/* A file in memory with one tensor. */
struct bad {
	const char *what;
	const char *magic;
	uint32_t version;
	uint64_t tensors, pairs;
	const char *name;
	int rank;
	int64_t shape[5];
	uint32_t type;
	uint64_t offset;
	enum smalti_code code;
	const char *word;
};
static void damaged_files_are_refused(void)
{
	static const struct bad cases[] = {
	    {"good", "GGUF", 3, 1, 0, "a", 1, {32}, 8, 0, SMALTI_OK, NULL},
	    {"good, of version 2", "GGUF", 2, 1, 0, "a", 1, {32}, 8, 0, SMALTI_OK, NULL},
	    {"magic", "GGML", 3, 1, 0, "a", 1, {32}, 8, 0, SMALTI_EFORMAT, "GGUF"},
	    {"version", "GGUF", 1, 1, 0, "a", 1, {32}, 8, 0, SMALTI_EUNSUPPORTED, "version 1"},
	    {"big-endian", "GGUF", 3u << 24, 1, 0, "a", 1, {32}, 8, 0, SMALTI_EUNSUPPORTED, "little-endian"},
	    {"too many tensors", "GGUF", 3, UINT64_MAX, 0, "a", 1, {32}, 8, 0, SMALTI_EFORMAT, "at most"},
	    {"too many pairs", "GGUF", 3, 1, 1u << 20, "a", 1, {32}, 8, 0, SMALTI_EFORMAT, "at most"},
	    {"a missing pair", "GGUF", 3, 1, 1, "a", 1, {32}, 8, 0, SMALTI_EFORMAT, NULL},
	    {"a missing tensor", "GGUF", 3, 2, 0, "a", 1, {32}, 8, 0, SMALTI_EFORMAT, NULL},
	    {"no name", "GGUF", 3, 1, 0, "", 1, {32}, 8, 0, SMALTI_EFORMAT, "no name"},
	    {"no axis", "GGUF", 3, 1, 0, "a", 0, {32}, 8, 0, SMALTI_EFORMAT, "0 axes"},
	    {"five axes", "GGUF", 3, 1, 0, "a", 5, {1, 1, 1, 1, 32}, 8, 0, SMALTI_EFORMAT, "5 axes"},
	    {"a negative extent", "GGUF", 3, 1, 0, "a", 1, {-32}, 8, 0, SMALTI_EFORMAT, "63 bits"},
	    {"overflow", "GGUF", 3, 1, 0, "a", 3, {INT64_MAX, INT64_MAX, 32}, 8, 0, SMALTI_EFORMAT, "2^63"},
	    {"overflow of an empty tensor",
	     "GGUF",
	     3,
	     1,
	     0,
	     "a",
	     3,
	     {0, INT64_MAX, 32},
	     8,
	     0,
	     SMALTI_EFORMAT,
	     "2^63"},
	    {"half a block",
	     "GGUF",
	     3,
	     1,
	     0,
	     "a",
	     1,
	     {48},
	     8,
	     0,
	     SMALTI_EFORMAT,
	     "do not divide its rows of 48"},
	    {"an unknown type", "GGUF", 3, 1, 0, "a", 1, {32}, 99, 0, SMALTI_EUNSUPPORTED, "unknown type 99"},
	    {"beyond the end", "GGUF", 3, 1, 0, "a", 1, {64}, 8, 0, SMALTI_EFORMAT, "68 bytes"},
	    {"offset", "GGUF", 3, 1, 0, "a", 1, {32}, 8, UINT64_MAX - 31, SMALTI_EFORMAT, "expected in it"},
	    {"unaligned", "GGUF", 3, 1, 0, "a", 1, {32}, 8, 1, SMALTI_EFORMAT, "multiple of 32"},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		const struct bad *c = &cases[i];
		struct smalti_error error = SMALTI_NO_ERROR;
		char *bytes = NULL;
		size_t size = 0;
		FILE *stream = open_memstream(&bytes, &size);
		gguf_header(stream, c->version, c->tensors, c->pairs);
		gguf_tensor(stream, c->name, c->rank, c->shape, c->type, c->offset);
		gguf_pad(stream, 32);
		for (int j = 0; j < 34; j++)
			fputc(0, stream);
		fclose(stream);
		memcpy(bytes, c->magic, 4);
		struct smalti_gguf *file = smalti_gguf_parse(bytes, (int64_t)size, &error);
		if (c->code == SMALTI_OK)
			SUCCEEDS(file ? 0 : -1, &error, c->what);
		else
			FAILS(file ? 0 : -1, &error, c->code, c->what, c->word);
		smalti_gguf_close(file);
		/* Every beginning of a good file is a bad one. */
		for (size_t cut = 0; c->code == SMALTI_OK && cut < size; cut++) {
			struct smalti_error cut_error = SMALTI_NO_ERROR;
			char *copy = malloc(cut + 1);
			memcpy(copy, bytes, cut);
			CHECK(!smalti_gguf_parse(copy, (int64_t)cut, &cut_error), "cut short");
			free(copy);
		}
		free(bytes);
	}
}

/* Two tensors: of one place, or of one name. */
static void tensors_neither_overlap_nor_repeat(void)
{
	static const struct {
		const char *second;
		uint64_t offset;
		const char *word;
	} cases[] = {{"b", 0, "overlap"}, {"a", 32, "twice"}};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const int64_t shape[] = {8};
		char *bytes = NULL;
		size_t size = 0;
		FILE *stream = open_memstream(&bytes, &size);
		gguf_header(stream, 2, 2, 0);
		gguf_tensor(stream, "a", 1, shape, 0, 0);
		gguf_tensor(stream, cases[i].second, 1, shape, 0, cases[i].offset);
		gguf_pad(stream, 32);
		for (int j = 0; j < 64; j++)
			fputc(0, stream);
		fclose(stream);
		struct smalti_gguf *file = smalti_gguf_parse(bytes, (int64_t)size, &error);
		FAILS(file ? 0 : -1, &error, SMALTI_EFORMAT, cases[i].word, cases[i].word);
		free(bytes);
	}
}

static void configuration_of_t5(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_t5_config made, expected, of_both;
	const char *path = test_data("golden/gguf/t5-q8_0.gguf"),
		   *directory = test_model("tesserae/text_encoder");
	struct smalti_checkpoint *weights = smalti_checkpoint_open(path, SMALTI_STEM_T5, NULL, &error);
	SUCCEEDS(weights ? 0 : -1, &error, path);
	SUCCEEDS(smalti_t5_config_read(test_model("tesserae/text_encoder/config.json"), &expected, &error),
		 &error, "config.json");
	SUCCEEDS(smalti_t5_config_open(path, weights, &made, &error), &error, "metadata");
	SUCCEEDS(smalti_t5_config_open(directory, weights, &of_both, &error), &error, "both");
	CHECK(memcmp(&of_both, &expected, sizeof(expected)) == 0, "config.json is read");
	CHECK((float)made.norm_eps == (float)expected.norm_eps, "epsilon");
	made.norm_eps = expected.norm_eps;
	CHECK(memcmp(&made, &expected, sizeof(expected)) == 0, "the metadata say the same");

	cJSON *file = smalti_json_read(test_model("tesserae/text_encoder/config.json"), 1 << 16, &error);
	char other[512];
	cJSON_SetNumberValue(cJSON_GetObjectItem(file, "num_heads"), 2);
	snprintf(other, sizeof(other), "%s", test_scratch());
	char config[600];
	snprintf(config, sizeof(config), "%s/config.json", other);
	SUCCEEDS(smalti_json_write(config, file, &error), &error, config);
	FAILS(smalti_t5_config_open(other, weights, &made, &error), &error, SMALTI_EFORMAT, "disagreement",
	      "config.json", "\"num_heads\" is 2", "with 4");
	cJSON_Delete(file);
	smalti_checkpoint_close(weights);
}

/* The other architecture of T5, and names with stable-diffusion.cpp's prefix. */
static void configuration_of_whole_t5(void)
{
	static const struct {
		const char *key;
		uint32_t value;
	} pairs[] = {{"t5.embedding_length", 8},     {"t5.block_count", 2},
		     {"t5.feed_forward_length", 16}, {"t5.attention.head_count", 2},
		     {"t5.attention.key_length", 4}, {"t5.attention.relative_buckets_count", 32}};
	enum { ROWS = 6, WIDTH = 8 };
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_t5_config config;
	char path[512];
	snprintf(path, sizeof(path), "%s", test_file("t5.gguf"));
	FILE *file = fopen(path, "wb");
	gguf_header(file, 3, 1, COUNT(pairs) + 1);
	gguf_text_pair(file, "general.architecture", "t5");
	for (int i = 0; i < COUNT(pairs); i++)
		gguf_u32_pair(file, pairs[i].key, pairs[i].value);
	gguf_tensor(file, "text_encoders.t5xxl.transformer.shared.weight", 2, (const int64_t[]){ROWS, WIDTH},
		    0, 0);
	gguf_pad(file, 32);
	for (int i = 0; i < ROWS * WIDTH; i++)
		gguf_integer(file, 0, 4);
	fclose(file);
	struct smalti_checkpoint *weights = smalti_checkpoint_open(path, SMALTI_STEM_T5, NULL, &error);
	SUCCEEDS(weights ? 0 : -1, &error, path);
	SUCCEEDS(smalti_t5_config_open(path, weights, &config, &error), &error, path);
	CHECK(config.vocabulary == ROWS && config.width == WIDTH && config.layers == 2, "extents");
	CHECK(config.ff_width == 16 && config.heads == 2 && config.head_dim == 4 && config.buckets == 32,
	      "extents of a layer");
	smalti_checkpoint_close(weights);
}

static void files_of_other_models_are_refused(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_transformer_config config;
	const char *path = test_data("golden/gguf/t5-q8_0.gguf");
	struct smalti_checkpoint *weights = smalti_checkpoint_open(path, SMALTI_STEM_DIFFUSERS, NULL, &error);
	SUCCEEDS(weights ? 0 : -1, &error, path);
	FAILS(smalti_transformer_config_open(path, weights, &config, &error), &error, SMALTI_EUNSUPPORTED,
	      "T5", "t5-q8_0.gguf", "t5encoder", "pixart");
	smalti_checkpoint_close(weights);
}

static void a_directory_has_one_file(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	char directory[512], link[600];
	snprintf(directory, sizeof(directory), "%s", test_scratch());
	for (int i = 0; i < 2; i++) {
		snprintf(link, sizeof(link), "%s/%d.gguf", directory, i);
		CHECK(symlink(test_data("golden/gguf/t5-q4_0.gguf"), link) == 0, link);
		struct smalti_checkpoint *weights =
		    smalti_checkpoint_open(directory, SMALTI_STEM_T5, NULL, &error);
		if (i == 0)
			CHECK(weights && smalti_checkpoint_has(weights, "shared.weight"), "the only file");
		else
			FAILS(weights ? 0 : -1, &error, SMALTI_EINVAL, "two files", "several GGUF files");
		smalti_checkpoint_close(weights);
	}
}

static const struct test tests[] = {
    {"every type has its values", every_type_has_its_values},
    {"tensors of files", tensors_have_their_values},
    {"metadata", metadata_have_their_types},
    {"names of T5", names_of_t5},
    {"damaged files", damaged_files_are_refused},
    {"overlap and repetition", tensors_neither_overlap_nor_repeat},
    {"configuration of T5", configuration_of_t5},
    {"configuration of whole T5", configuration_of_whole_t5},
    {"other models", files_of_other_models_are_refused},
    {"one file in a directory", a_directory_has_one_file},
};

TEST_MAIN("GGUF", tests)
