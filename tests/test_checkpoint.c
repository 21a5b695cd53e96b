/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "harness.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char directory[4096];

static void fresh_directory(void)
{
	snprintf(directory, sizeof(directory), "%s", test_scratch());
}

static const char *in_directory(const char *name)
{
	static char path[8192];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static const float values[] = {0, 1, 2, 3, 4, 5, 6, 7};

/* Tensors of the shape [2, 1] whose first value is `first`, first + 1, ... */
static void put_tensors(const char *file, int first, int count, const char *const *names)
{
	struct smalti_tensor_view tensors[8];
	for (int i = 0; i < count; i++)
		tensors[i] = (struct smalti_tensor_view){
		    .name = names[i], .rank = 2, .shape = {2, 1}, .data = values + first + i};
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_safetensors_write(in_directory(file), tensors, count, &error), &error, file);
}

static void put_text(const char *file, const char *text)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_writer *writer = smalti_writer_open(in_directory(file), &error);
	fputs(text, smalti_writer_stream(writer));
	SUCCEEDS(smalti_writer_commit(writer, &error), &error, file);
}

/* The first value of the tensor, -1 when it cannot be had. */
static float first_value(const struct smalti_checkpoint *checkpoint, const char *name)
{
	static const int64_t shape[] = {2, 1};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tensor_view view;
	if (!checkpoint || smalti_checkpoint_find(checkpoint, name, 2, shape, &view, &error))
		return -1;
	float value;
	memcpy(&value, view.data, sizeof(value));
	return value;
}

static void a_tensor_has_the_shape_asked_for(void)
{
	static const struct {
		const char *name;
		int rank;
		int64_t shape[3];
		enum smalti_code code;
		const char *words[2];
	} cases[] = {
	    {"adaln_single.linear.weight", 2, {864, 144}, SMALTI_OK, {NULL}},
	    {"scale_shift_table", 2, {2, 144}, SMALTI_OK, {NULL}},
	    {"adaln_single.linear.weight", 2, {144, 864}, SMALTI_EFORMAT, {"[144, 864]", "[864, 144]"}},
	    {"adaln_single.linear.weight", 1, {864}, SMALTI_EFORMAT, {"[864]", "[864, 144]"}},
	    {"adaln_single.linear.weight", 3, {864, 144, 1}, SMALTI_EFORMAT, {"[864, 144, 1]", "[864, 144]"}},
	    {"adaln_single.linear", 1, {864}, SMALTI_EFORMAT, {"adaln_single.linear [864]", "missing"}},
	};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_checkpoint *checkpoint =
	    smalti_checkpoint_open(test_model("tesserae/transformer"), SMALTI_STEM_DIFFUSERS, NULL, &error);
	SUCCEEDS(checkpoint ? 0 : -1, &error, "open");
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error finding = SMALTI_NO_ERROR;
		struct smalti_tensor_view view;
		int status = smalti_checkpoint_find(checkpoint, cases[i].name, cases[i].rank, cases[i].shape,
						    &view, &finding);
		if (cases[i].code == SMALTI_OK)
			SUCCEEDS(status, &finding, cases[i].name);
		else
			FAILS(status, &finding, cases[i].code, cases[i].name, "transformer",
			      cases[i].words[0], cases[i].words[1]);
	}
	for (int64_t i = 1; i < checkpoint->count; i++)
		CHECK(strcmp(checkpoint->entries[i - 1].view.name, checkpoint->entries[i].view.name) < 0,
		      "sorted");
	CU_ASSERT_TRUE(smalti_checkpoint_has(checkpoint, "proj_out.bias"));
	CU_ASSERT_FALSE(smalti_checkpoint_has(checkpoint, "proj_out"));
	smalti_checkpoint_close(checkpoint);
}

static void unusable_dtypes_fail_only_when_asked_for(void)
{
	fresh_directory();
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_writer *writer = smalti_writer_open(in_directory("model.safetensors"), &error);
	const char *header = "{\"ids\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}";
	FILE *stream = smalti_writer_stream(writer);
	fprintf(stream, "%c%c%c%c%c%c%c%c%s!!", (int)strlen(header), 0, 0, 0, 0, 0, 0, 0, header);
	SUCCEEDS(smalti_writer_commit(writer, &error), &error, "write");
	struct smalti_checkpoint *checkpoint = smalti_checkpoint_open(directory, "model", NULL, &error);
	SUCCEEDS(checkpoint ? 0 : -1, &error, "open");
	struct smalti_tensor_view view;
	FAILS(smalti_checkpoint_find(checkpoint, "ids", 1, (int64_t[]){2}, &view, &error), &error,
	      SMALTI_EUNSUPPORTED, "ids", "model.safetensors", "ids");
	smalti_checkpoint_close(checkpoint);
}

#define NAMES(...)                                                                                           \
	(int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), (const char *[])                      \
	{                                                                                                    \
		__VA_ARGS__                                                                                  \
	}

static void shards_are_one_checkpoint(void)
{
	fresh_directory();
	put_tensors("model-00001-of-00002.safetensors", 0, NAMES("m", "b", "unlisted"));
	put_tensors("model-00002-of-00002.safetensors", 4, NAMES("a", "z"));
	put_text(
	    "model.safetensors.index.json",
	    "{\"metadata\": {\"total_size\": 32}, \"weight_map\": {"
	    "\"z\": \"model-00002-of-00002.safetensors\", \"a\": \"model-00002-of-00002.safetensors\","
	    "\"m\": \"model-00001-of-00002.safetensors\", \"b\": \"model-00001-of-00002.safetensors\"}}");
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_checkpoint *checkpoint = smalti_checkpoint_open(directory, "model", NULL, &error);
	SUCCEEDS(checkpoint ? 0 : -1, &error, "open");
	static const char *const sorted[] = {"a", "b", "m", "z"};
	static const float firsts[] = {4, 1, 0, 5};
	CU_ASSERT_EQUAL_FATAL(checkpoint->count, 4);
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_STRING_EQUAL(checkpoint->entries[i].view.name, sorted[i]);
		CHECK(first_value(checkpoint, sorted[i]) == firsts[i], sorted[i]);
	}
	struct smalti_tensor_view view;
	FAILS(smalti_checkpoint_find(checkpoint, "z", 1, (int64_t[]){2}, &view, &error), &error,
	      SMALTI_EFORMAT, "names the shard", "model-00002-of-00002", "[2, 1]");
	smalti_checkpoint_close(checkpoint);
}

static void bad_indices_are_refused(void)
{
	static const struct {
		const char *index, *word;
		enum smalti_code code;
	} cases[] = {
	    {"{}", "weight_map", SMALTI_EFORMAT},
	    {"[]", "weight_map", SMALTI_EFORMAT},
	    {"{\"weight_map\": []}", "weight_map", SMALTI_EFORMAT},
	    {"{\"weight_map\": {\"a\": 1}}", "tensor a", SMALTI_EFORMAT},
	    {"{\"weight_map\": {\"a\": \"\"}}", "own directory", SMALTI_EFORMAT},
	    {"{\"weight_map\": {\"a\": \".safetensors\"}}", "own directory", SMALTI_EFORMAT},
	    {"{\"weight_map\": {\"a\": \"../one.safetensors\"}}", "own directory", SMALTI_EFORMAT},
	    {"{\"weight_map\": {\"a\": \"/etc/one.safetensors\"}}", "own directory", SMALTI_EFORMAT},
	    {"{\"weight_map\": {\"a\": \"model.safetensors.index.json\"}}", "own directory", SMALTI_EFORMAT},
	    {"{\"weight_map\": {\"a\": \"two.safetensors\"}}", "two.safetensors", SMALTI_ENOENT},
	    {"{\"weight_map\": {\"a\": \"directory.safetensors\"}}", "directory.safetensors", SMALTI_EFORMAT},
	    {"{\"weight_map\": {\"b\": \"one.safetensors\"}}", "tensor b is not in", SMALTI_EFORMAT},
	    {"{\"weight_map\": {\"a\": \"one.safetensors\", \"a\": \"one.safetensors\"}}", "twice",
	     SMALTI_EFORMAT},
	};
	fresh_directory();
	put_tensors("one.safetensors", 0, NAMES("a"));
	CU_ASSERT_EQUAL(mkdir(in_directory("directory.safetensors"), 0700), 0);
	for (size_t i = 0; i < COUNT(cases); i++) {
		put_text("model.safetensors.index.json", cases[i].index);
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_checkpoint *checkpoint =
		    smalti_checkpoint_open(directory, "model", NULL, &error);
		FAILS(checkpoint ? 0 : -1, &error, cases[i].code, cases[i].index, "index.json",
		      cases[i].word);
		smalti_checkpoint_close(checkpoint);
	}
}

static float opened_value(const char *variant, struct smalti_error *error)
{
	struct smalti_checkpoint *checkpoint = smalti_checkpoint_open(directory, "model", variant, error);
	float value = first_value(checkpoint, "a");
	smalti_checkpoint_close(checkpoint);
	return value;
}

static void variants_are_chosen(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	fresh_directory();
	put_tensors("model.fp16.safetensors", 1, NAMES("a"));
	CU_ASSERT_EQUAL(opened_value(NULL, &error), 1);
	put_tensors("one.safetensors", 2, NAMES("a"));
	put_text("model.safetensors.index.bf16.json", "{\"weight_map\": {\"a\": \"one.safetensors\"}}");
	CU_ASSERT_EQUAL(opened_value("bf16", &error), 2);
	CU_ASSERT_EQUAL(opened_value(NULL, &error), 1);
	put_tensors("model.safetensors", 3, NAMES("a"));
	CU_ASSERT_EQUAL(opened_value(NULL, &error), 3);
	CU_ASSERT_EQUAL(opened_value("fp16", &error), 1);
	CU_ASSERT_EQUAL(error.code, SMALTI_OK);
	CU_ASSERT_EQUAL(opened_value("ema", &error), -1);
	FAILS(-1, &error, SMALTI_EIO, "absent variant", "model.ema.safetensors", directory);
}

/* As diffusers and transformers read their own components. */
static void of_both_forms_the_stem_decides(void)
{
	static const struct {
		const char *stem, *index; /* the shard that it names for "a" and "b" */
		float value; /* of "a": 1 in the single file, 2 in the shards; -1: it is refused */
	} cases[] = {
	    {SMALTI_STEM_DIFFUSERS, "{\"weight_map\": {\"a\": \"x.safetensors\", \"b\": \"y.safetensors\"}}",
	     2},
	    {SMALTI_STEM_T5, "{\"weight_map\": {\"a\": \"x.safetensors\", \"b\": \"y.safetensors\"}}", 1},
	    {SMALTI_STEM_DIFFUSERS,
	     "{\"weight_map\": {\"a\": \"gone.safetensors\", \"b\": \"lost.safetensors\"}}", 1},
	    {SMALTI_STEM_DIFFUSERS,
	     "{\"weight_map\": {\"a\": \"x.safetensors\", \"b\": \"gone.safetensors\"}}", -1},
	    {SMALTI_STEM_DIFFUSERS, "{\"weight_map\": {\"a\": \"gone.safetensors\", \"b\": 1}}", -1},
	    {SMALTI_STEM_DIFFUSERS, "{\"weight_map\": []}", -1},
	    {SMALTI_STEM_DIFFUSERS, "no JSON", -1},
	    {SMALTI_STEM_T5, "no JSON", 1},
	};
	static const char *const variants[] = {NULL, "fp16"};
	for (size_t i = 0; i < 2 * COUNT(cases); i++) {
		const char *stem = cases[i / 2].stem, *variant = variants[i % 2];
		char single[64], index[64];
		snprintf(single, sizeof(single), "%s%s.safetensors", stem, variant ? ".fp16" : "");
		snprintf(index, sizeof(index), "%s.safetensors.index%s.json", stem, variant ? ".fp16" : "");
		fresh_directory();
		put_tensors(single, 1, NAMES("a", "b"));
		put_tensors("x.safetensors", 2, NAMES("a"));
		put_tensors("y.safetensors", 3, NAMES("b"));
		put_text(index, cases[i / 2].index);
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_checkpoint *checkpoint =
		    smalti_checkpoint_open(directory, stem, variant, &error);
		CHECK(first_value(checkpoint, "a") == cases[i / 2].value, cases[i / 2].index);
		if (!checkpoint)
			CHECK(strstr(error.message, index), error.message);
		smalti_checkpoint_close(checkpoint);
	}
}

static void a_broken_file_is_not_passed_over(void)
{
	fresh_directory();
	put_tensors("model.fp16.safetensors", 1, NAMES("a"));
	put_text("model.safetensors", "not weights");
	struct smalti_error error = SMALTI_NO_ERROR;
	CU_ASSERT_EQUAL(opened_value(NULL, &error), -1);
	FAILS(-1, &error, SMALTI_EFORMAT, "broken", "/model.safetensors");
	struct smalti_error empty = SMALTI_NO_ERROR;
	fresh_directory();
	CU_ASSERT_EQUAL(opened_value(NULL, &empty), -1);
	FAILS(-1, &empty, SMALTI_EIO, "empty directory", directory, "model.safetensors");
}

static void old_names_are_offered_under_present_ones(void)
{
	static const char *const present[] = {
	    "encoder.mid_block.attentions.0.to_q.weight", "encoder.mid_block.attentions.0.to_k.bias",
	    "decoder.mid_block.attentions.0.to_v.weight", "decoder.mid_block.attentions.0.to_out.0.weight"};
	fresh_directory();
	put_tensors("model.safetensors", 0,
		    NAMES("encoder.mid_block.attentions.0.query.weight",
			  "encoder.mid_block.attentions.0.key.bias",
			  "decoder.mid_block.attentions.0.value.weight",
			  "decoder.mid_block.attentions.0.proj_attn.weight", "encoder.embed_tokens.weight"));
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_checkpoint *checkpoint = smalti_checkpoint_open(directory, "model", NULL, &error);
	for (int i = 0; i < 4; i++)
		CHECK(first_value(checkpoint, present[i]) == (float)i, present[i]);
	CU_ASSERT_EQUAL(first_value(checkpoint, "shared.weight"), 4);
	CU_ASSERT_FALSE(smalti_checkpoint_has(checkpoint, "encoder.embed_tokens.weight"));
	CU_ASSERT_EQUAL(checkpoint->count, 5);
	smalti_checkpoint_close(checkpoint);

	put_tensors("model.safetensors", 0, NAMES("encoder.embed_tokens.weight", "shared.weight"));
	checkpoint = smalti_checkpoint_open(directory, "model", NULL, &error);
	CU_ASSERT_EQUAL(first_value(checkpoint, "shared.weight"), 1);
	CU_ASSERT_EQUAL(first_value(checkpoint, "encoder.embed_tokens.weight"), 0);
	smalti_checkpoint_close(checkpoint);
}

static void convolutions_of_one_pixel_are_matrices(void)
{
	fresh_directory();
	const struct smalti_tensor_view old = {.name = "decoder.mid_block.attentions.0.query.weight",
					       .rank = 4,
					       .shape = {2, 3, 1, 1},
					       .data = values};
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_safetensors_write(in_directory("model.safetensors"), &old, 1, &error), &error,
		 "write");
	struct smalti_checkpoint *checkpoint = smalti_checkpoint_open(directory, "model", NULL, &error);
	struct smalti_tensor_view view;
	SUCCEEDS(smalti_checkpoint_find(checkpoint, "decoder.mid_block.attentions.0.to_q.weight", 2,
					(int64_t[]){2, 3}, &view, &error),
		 &error, "find");
	CU_ASSERT_EQUAL(view.rank, 2);
	smalti_checkpoint_close(checkpoint);
}

static const struct test tests[] = {
    {"a tensor has the shape asked for", a_tensor_has_the_shape_asked_for},
    {"unusable dtypes fail only when asked for", unusable_dtypes_fail_only_when_asked_for},
    {"shards are one checkpoint", shards_are_one_checkpoint},
    {"bad indices are refused", bad_indices_are_refused},
    {"variants are chosen", variants_are_chosen},
    {"of both forms the stem decides", of_both_forms_the_stem_decides},
    {"a broken file is not passed over", a_broken_file_is_not_passed_over},
    {"old names are offered under present ones", old_names_are_offered_under_present_ones},
    {"convolutions of one pixel are matrices", convolutions_of_one_pixel_are_matrices},
};

TEST_MAIN("checkpoint", tests)
