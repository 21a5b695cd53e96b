/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"
#include "embedded.h"
#include "golden.h"
#include "graphs/merge.h"
#include "harness.h"
#include "jobs/adapters.h"
#include "stage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Forwards of the embedded model with adapters against peft's and diffusers'. */

enum { LORAS = 2 };

static const struct golden {
	const char *name;
	struct {
		const char *path;
		double weight;
	} loras[LORAS];
} goldens[] = {
    {"base", {{NULL, 0}}},
    {"peft", {{"peft", 1}}},
    {"diffusers", {{"diffusers", 1}}},
    {"diffusers-plain", {{"diffusers-plain/pytorch_lora_weights.safetensors", 1}}},
    {"old", {{"old", 1}}},
    {"flat", {{"flat/lora.safetensors", 1}}},
    {"fused", {{"fused/lora.safetensors", 1}}},
    {"dora", {{"dora/adapter_model.safetensors", 1}}},
    {"dora-0.5", {{"dora", 0.5}}},
    {"mix", {{"peft", 0.7}, {"flat/lora.safetensors", -0.5}}},
};

static struct smalti_session *session;
static struct smalti_safetensors *file;

static const struct smalti_tensor_view *tensor(const char *name, const char *part)
{
	char whole[128];
	snprintf(whole, sizeof(whole), "%s.%s", name, part);
	return smalti_safetensors_find(file, whole);
}

static struct smalti_adapter_set *open_set(const struct golden *golden)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_lora loras[LORAS];
	struct smalti_t5_config t5;
	struct smalti_transformer_config transformer;
	char paths[LORAS][4200];
	int64_t count = 0;
	for (; count < LORAS && golden->loras[count].path; count++) {
		snprintf(paths[count], sizeof(paths[0]), "%s/%s", test_data("golden/lora"),
			 golden->loras[count].path);
		loras[count] = (struct smalti_lora){paths[count], golden->loras[count].weight};
	}
	SUCCEEDS(smalti_t5_config_read(test_model("tesserae/text_encoder/config.json"), &t5, &error), &error,
		 "config");
	SUCCEEDS(smalti_transformer_config_read(test_data("golden/transformer-2/config.json"), &transformer,
						&error),
		 &error, "config");
	struct smalti_adapter_set *set = smalti_adapters_open(loras, count, &t5, &transformer, &error);
	SUCCEEDS(set ? 0 : -1, &error, golden->name);
	return set;
}

static struct smalti_checkpoint *open_checkpoint(const char *directory, const char *stem)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_checkpoint *checkpoint = smalti_checkpoint_open(directory, stem, NULL, &error);
	SUCCEEDS(checkpoint ? 0 : -1, &error, directory);
	return checkpoint;
}

/* A forward of the transformer with an adapter that is merged, or not. */
static void forward(const struct golden *golden, enum smalti_dtype compute, bool merged, double tolerance)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_transformer_config config;
	const struct smalti_tensor_view *x = smalti_safetensors_find(file, "x");
	const struct smalti_tensor_view *out = tensor(golden->name, "out");
	const struct smalti_tensor_view *text = smalti_safetensors_find(file, "text");
	int64_t timestep; /* I64, which checkpoints do not have */
	memcpy(&timestep, smalti_safetensors_find(file, "t")->data, sizeof(timestep));
	SUCCEEDS(
	    smalti_transformer_config_read(test_data("golden/transformer-2/config.json"), &config, &error),
	    &error, "config");
	struct smalti_adapter_set *set = open_set(golden);
	struct smalti_checkpoint *checkpoint =
	    open_checkpoint(test_data("golden/transformer-2"), SMALTI_STEM_DIFFUSERS);
	checkpoint->adapters = merged ? set : NULL;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "weights", 0, &error);
	struct smalti_denoiser *base = smalti_dit_new(task_group, &config, checkpoint, compute, &error);
	SUCCEEDS(base ? 0 : -1, &error, golden->name);
	struct smalti_denoiser *dit = merged ? base : base->functions->adapted(base, task_group, set, &error);
	SUCCEEDS(dit ? 0 : -1, &error, golden->name);
	float *v = malloc((size_t)out->bytes);
	SUCCEEDS(stage_dit(session, dit, x->data, x->shape[2], x->shape[3], (float)timestep, text->data,
			   text->shape[1], 64, 8, v, &error),
		 &error, golden->name);
	const int64_t count = out->bytes / (int64_t)sizeof(float);
	printf("\n    %s: %.1e of the largest", golden->name,
	       test_max_error(v, out->data, count) / test_max_abs(out->data, count));
	golden_near(v, out->data, count, tolerance, golden->name);
	free(v);
	if (dit != base)
		smalti_denoiser_free(dit);
	smalti_denoiser_free(base);
	smalti_task_group_free(task_group);
	smalti_checkpoint_close(checkpoint);
	smalti_adapter_set_free(set);
}

static void forwards(enum smalti_dtype compute, bool merged, double tolerance)
{
	for (int i = 0; i < COUNT(goldens); i++)
		if (merged || strncmp(goldens[i].name, "dora", 4) != 0)
			forward(&goldens[i], compute, merged, tolerance);
}

static void merged_f32(void)
{
	forwards(SMALTI_F32, true, 2e-5);
}

static void merged_bf16(void)
{
	forwards(SMALTI_BF16, true, 1e-2);
}

static void unmerged_f32(void)
{
	forwards(SMALTI_F32, false, 2e-5);
}

static void unmerged_bf16(void)
{
	forwards(SMALTI_BF16, false, 1e-2);
}

/* The merged matrices, whole and by pieces of awkward sizes, which have the same bits. */
static void merged_matrices(void)
{
	int seen = 0;
	for (int64_t i = 0; i < file->count; i++) {
		const struct smalti_tensor_view *expected = &file->tensors[i];
		const char *dot = strstr(expected->name, ".merged.");
		if (!dot)
			continue;
		struct golden golden = {.name = expected->name, .loras = {{NULL, 0}}};
		for (int g = 0; g < COUNT(goldens); g++)
			if (strlen(goldens[g].name) == (size_t)(dot - expected->name) &&
			    strncmp(goldens[g].name, expected->name, strlen(goldens[g].name)) == 0)
				golden = goldens[g];
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_adapter_set *set = open_set(&golden);
		struct smalti_checkpoint *checkpoint =
		    open_checkpoint(test_data("golden/transformer-2"), SMALTI_STEM_DIFFUSERS);
		struct smalti_tensor_view view;
		SUCCEEDS(smalti_checkpoint_find(checkpoint, dot + strlen(".merged."), expected->rank,
						expected->shape, &view, &error),
			 &error, expected->name);
		struct smalti_merge *merge = NULL;
		SUCCEEDS(smalti_merge_new(&merge, set, &view, &error), &error, expected->name);
		const int64_t out = expected->shape[0], count = expected->bytes / (int64_t)sizeof(float);
		const int64_t in = count / out, cut = in / 3, rows = out - 5;
		float *whole = malloc((size_t)expected->bytes), *piece = malloc((size_t)expected->bytes);
		SUCCEEDS(smalti_merge_rows(merge, 0, out, 0, in, whole, &error), &error, expected->name);
		golden_near(whole, expected->data, count, 1e-6, expected->name);
		SUCCEEDS(smalti_merge_rows(merge, 3, rows, cut, in - cut, piece, &error), &error,
			 expected->name);
		bool equal = true;
		for (int64_t r = 0; r < rows; r++)
			equal = equal && memcmp(piece + r * (in - cut), whole + (r + 3) * in + cut,
						(size_t)(in - cut) * sizeof(float)) == 0;
		CHECK(equal, expected->name);
		free(whole);
		free(piece);
		smalti_merge_free(merge);
		smalti_checkpoint_close(checkpoint);
		smalti_adapter_set_free(set);
		seen++;
	}
	CHECK(seen == 5, "every merged matrix was seen");
}

/* Makes magnitudes of columns of an adapter: 1, 1.5, 2, … */
static void magnitudes_by_column(struct smalti_low_rank *change)
{
	change->by_column = true;
	change->magnitude = malloc((size_t)change->in * sizeof(float));
	for (int64_t i = 0; i < change->in; i++)
		change->magnitude[i] = 1 + 0.5f * (float)i;
}

/* DoRA by column, W' = m · V/‖V‖ of each column of V = W + w·s·B·A, in double. */
static void columns_of_dora(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const double weight = 0.5;
	const struct golden golden = {"peft", {{"peft", weight}}};
	struct smalti_adapter_set *set = open_set(&golden);
	struct smalti_low_rank *c = &set->uses[0].adapter->changes[2];
	struct smalti_checkpoint *checkpoint =
	    open_checkpoint(test_data("golden/transformer-2"), SMALTI_STEM_DIFFUSERS);
	const struct smalti_tensor_view *tensor = &smalti_checkpoint_entry(checkpoint, c->tensor)->view;
	const int64_t count = c->out * c->in;
	float *w = malloc((size_t)count * sizeof(*w)), *found = malloc((size_t)count * sizeof(*found));
	magnitudes_by_column(c);
	smalti_tensor_values(tensor, 0, c->out, w);
	for (int64_t i = 0; i < c->in; i++) {
		double v[2048], norm = 0;
		for (int64_t o = 0; o < c->out; o++) {
			v[o] = (double)w[o * c->in + i];
			for (int64_t r = 0; r < c->rank; r++)
				v[o] += weight * c->scale * (double)c->b[o * c->rank + r] *
					(double)c->a[r * c->in + i];
			norm += v[o] * v[o];
		}
		for (int64_t o = 0; o < c->out; o++)
			w[o * c->in + i] = (float)((double)c->magnitude[i] * v[o] / sqrt(norm));
	}
	struct smalti_merge *merge = NULL;
	SUCCEEDS(smalti_merge_new(&merge, set, tensor, &error), &error, c->tensor);
	SUCCEEDS(smalti_merge_rows(merge, 0, c->out, 0, c->in, found, &error), &error, c->tensor);
	golden_near(found, w, count, 1e-6, c->tensor);
	smalti_merge_free(merge);
	free(w);
	free(found);
	smalti_checkpoint_close(checkpoint);
	smalti_adapter_set_free(set);
}

static void text_encoder(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_tensor_view *given = smalti_safetensors_find(file, "t5.ids"),
					*out = tensor("t5", "out");
	const struct golden golden = {"t5", {{"t5/lora.safetensors", 1}}};
	struct smalti_t5_config config;
	SUCCEEDS(smalti_t5_config_read(test_model("tesserae/text_encoder/config.json"), &config, &error),
		 &error, "config");
	int32_t ids[64];
	const int64_t count = given->shape[1];
	for (int64_t i = 0; i < count; i++) {
		int64_t id;
		memcpy(&id, (const char *)given->data + i * (int64_t)sizeof(id), sizeof(id));
		ids[i] = (int32_t)id;
	}
	struct smalti_adapter_set *set = open_set(&golden);
	CHECK(smalti_adapter_set_find(set, 0, false) && !smalti_adapter_set_find(set, 1, false), "T5 alone");
	struct smalti_checkpoint *checkpoint =
	    open_checkpoint(test_model("tesserae/text_encoder"), SMALTI_STEM_T5);
	checkpoint->adapters = set;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "weights", 0, &error);
	struct smalti_text_encoder *t5 = smalti_t5_new(task_group, &config, checkpoint, SMALTI_F32, &error);
	SUCCEEDS(t5 ? 0 : -1, &error, "t5");
	float *y = malloc((size_t)out->bytes);
	SUCCEEDS(stage_t5(session, t5, ids, count, y, &error), &error, "t5");
	golden_near(y, out->data, out->bytes / (int64_t)sizeof(float), 2e-5, "t5");
	free(y);
	smalti_text_encoder_free(t5);
	smalti_task_group_free(task_group);
	smalti_checkpoint_close(checkpoint);
	smalti_adapter_set_free(set);
}

static void outputs(void)
{
	file = golden_open("golden/lora/forward.safetensors");
}

static const struct test tests[] = {
    {"golden outputs", outputs},         {"merged matrices", merged_matrices},
    {"merged, f32", merged_f32},         {"merged, bf16", merged_bf16},
    {"unmerged, f32", unmerged_f32},     {"unmerged, bf16", unmerged_bf16},
    {"DoRA by column", columns_of_dora}, {"text encoder", text_encoder},
};

TEST_PROGRAM()
{
	session = stage_session(NULL, 0);
	const int status = test_main("adapters", tests, COUNT(tests));
	struct smalti_error error = SMALTI_NO_ERROR;
	smalti_safetensors_close(file);
	return smalti_session_close(session, &error) < 0 ? 1 : status;
}
