/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/quantize_component.h"
#include "base/fp8.h"
#include "base/int8.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/pipeline_directory.h"
#include "graphs/tensors.h"

#include <math.h>

enum { MAX_CONFIG = 1 << 20 };

/* How the tensors of a form are written. */
static const struct form {
	const struct smalti_coding *coding;
	const char *scale; /* X.SCALE beside X.weight */
	bool by_row, marked;
} forms[] = {
    [SMALTI_QUANTIZE_INT8] = {&smalti_coding_i8, "weight_scale", true, false},
    [SMALTI_QUANTIZE_FP8] = {&smalti_coding_e4m3, "scale_weight", false, true},
};

/* Each component: its files, how its configuration is told from the other's, and the matrices that get 8
 * bits. */
static const struct component {
	const char *stem, *key;
	const char *const *matrices; /* what the names hold, one of them */
} components[] = {
    [SMALTI_TEXT_ENCODER] = {SMALTI_STEM_T5, "d_model",
			     (const char *const[]){".SelfAttention.q.weight", ".SelfAttention.k.weight",
						   ".SelfAttention.v.weight", ".SelfAttention.o.weight",
						   ".DenseReluDense.wi_0.weight",
						   ".DenseReluDense.wi_1.weight", NULL}},
    [SMALTI_TRANSFORMER] = {SMALTI_STEM_DIFFUSERS, "num_attention_heads",
			    (const char *const[]){"transformer_blocks.", NULL}},
};

/* A tensor to be written. */
struct output {
	struct smalti_tensor_view view; /* data NULL: it is made from `from` */
	struct smalti_tensor_view from;
	bool scale; /* those of the output before */
	char *name; /* owned, of a scale */
};

struct work {
	const struct form *form;
	struct smalti_checkpoint *checkpoint;
	struct output *outputs;
	int count;
	void *made;    /* the tensor that is being written */
	float *scales; /* of the last matrix */
};

static bool is_matrix(const struct component *component, const struct smalti_tensor_view *view)
{
	const char *dot = strrchr(view->name, '.');
	bool listed = false;
	for (const char *const *part = component->matrices; *part; part++)
		listed = listed || strstr(view->name, *part);
	return listed && view->rank == 2 && dot && strcmp(dot, ".weight") == 0;
}

static struct output *add(struct work *work, const struct smalti_tensor_view *from,
			  struct smalti_error *error)
{
	if (smalti_grow(&work->outputs, work->count, sizeof(*work->outputs), error) < 0)
		return NULL;
	struct output *output = &work->outputs[work->count++];
	*output = (struct output){.view = *from, .from = *from};
	return output;
}

/* Adds a matrix in 8 bits, and its scale. */
static int add_matrix(struct work *work, const struct smalti_tensor_view *from, struct smalti_error *error)
{
	const struct form *form = work->form;
	struct output *matrix = add(work, from, error);
	if (!matrix)
		return -1;
	matrix->view.coding = form->coding;
	matrix->view.data = NULL;
	struct output *scale = add(work, from, error);
	if (!scale)
		return -1;
	const int stem = (int)(strrchr(from->name, '.') - from->name);
	scale->name = smalti_format(error, "%.*s.%s", stem, from->name, form->scale);
	scale->scale = true;
	scale->view = (struct smalti_tensor_view){.name = scale->name,
						  .dtype = SMALTI_F32,
						  .rank = 1,
						  .shape = {form->by_row ? from->shape[0] : 1}};
	return scale->name ? 0 : -1;
}

/* Adds a tensor that keeps its dtype; a coded one becomes f32, and T5's embedding f16. */
static int add_kept(struct work *work, const struct smalti_tensor_view *from, struct smalti_error *error)
{
	struct output *kept = add(work, from, error);
	if (!kept)
		return -1;
	const enum smalti_dtype dtype = from->coding ? SMALTI_F32 : from->dtype;
	kept->view.coding = NULL;
	kept->view.dtype =
	    strcmp(from->name, "shared.weight") == 0 && dtype == SMALTI_F32 ? SMALTI_F16 : dtype;
	if (from->coding || kept->view.dtype != dtype)
		kept->view.data = NULL;
	return 0;
}

static int add_marker(struct work *work, struct smalti_error *error)
{
	const struct smalti_tensor_view marker = {
	    .name = "scaled_fp8", .coding = &smalti_coding_e4m3, .rank = 1, .data = ""};
	return add(work, &marker, error) ? 0 : -1;
}

/* Lists what is written: the tensors that the component has. */
static int list(struct work *work, const struct component *component, const struct smalti_inventory *tensors,
		struct smalti_quantize_result *result, struct smalti_error *error)
{
	for (int i = 0; i < tensors->count; i++) {
		const struct smalti_tensor_view *wanted = &tensors->tensors[i];
		struct smalti_tensor_view view;
		if (smalti_checkpoint_find(work->checkpoint, wanted->name, wanted->rank, wanted->shape, &view,
					   error) < 0)
			return -1;
		const bool matrix = is_matrix(component, &view);
		result->matrices += matrix;
		result->before += view.bytes;
		if ((matrix ? add_matrix : add_kept)(work, &view, error) < 0)
			return -1;
	}
	if (work->form->marked && add_marker(work, error) < 0)
		return -1;
	for (int i = 0; i < work->count; i++) {
		const struct smalti_tensor_view *view = &work->outputs[i].view;
		result->after += smalti_tensor_row_bytes(view, view->shape[0]);
	}
	return 0;
}

static int fail_values(const struct work *work, const struct smalti_tensor_view *view,
		       struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_ECORRUPT,
			   "%s: tensor %s has values that are not finite, or beyond F16",
			   work->checkpoint->directory, view->name);
}

/* Makes rows of int8 with a scale each. */
static int make_rows(struct work *work, const struct output *output, float *values,
		     struct smalti_error *error)
{
	const int64_t row = smalti_tensor_row(&output->from);
	for (int64_t r = 0; r < output->from.shape[0]; r++) {
		smalti_tensor_values(&output->from, r, 1, values);
		work->scales[r] = smalti_int8_scale(values, row);
		if (!isfinite(work->scales[r]))
			return fail_values(work, &output->from, error);
		smalti_int8_round(values, row, work->scales[r], (int8_t *)work->made + r * row);
	}
	return 0;
}

/* Makes fp8 with one scale. */
static int make_fp8(struct work *work, const struct output *output, float *values, struct smalti_error *error)
{
	const int64_t row = smalti_tensor_row(&output->from), rows = output->from.shape[0];
	float largest = 0;
	for (int64_t r = 0; r < rows; r++) {
		smalti_tensor_values(&output->from, r, 1, values);
		for (int64_t i = 0; i < row; i++) {
			if (!isfinite(values[i]))
				return fail_values(work, &output->from, error);
			largest = fmaxf(largest, fabsf(values[i]));
		}
	}
	const float scale = work->scales[0] = largest / smalti_e4m3.largest_value;
	for (int64_t r = 0; r < rows; r++) {
		smalti_tensor_values(&output->from, r, 1, values);
		for (int64_t i = 0; i < row; i++)
			((uint8_t *)work->made)[r * row + i] =
			    smalti_fp8_narrow(&smalti_e4m3, scale > 0 ? values[i] / scale : 0);
	}
	return 0;
}

/* Makes a tensor of another dtype. */
static int make_narrow(struct work *work, const struct output *output, float *values,
		       struct smalti_error *error)
{
	const int64_t row = smalti_tensor_row(&output->from), size = smalti_dtype_bytes(output->view.dtype);
	for (int64_t r = 0; r < output->from.shape[0]; r++) {
		smalti_tensor_values(&output->from, r, 1, values);
		for (int64_t i = 0; i < row; i++)
			if (!isfinite(smalti_round(output->view.dtype, values[i])))
				return fail_values(work, &output->from, error);
		smalti_narrow(output->view.dtype, values, row, (char *)work->made + r * row * size);
	}
	return 0;
}

static int make(struct work *work, const struct output *output, struct smalti_error *error)
{
	const struct smalti_tensor_view *view = &output->view;
	SCOPED(free) float *values = smalti_calloc(smalti_tensor_row(&output->from), sizeof(*values), error);
	free(work->made);
	work->made = smalti_calloc(smalti_tensor_row_bytes(view, view->shape[0]), 1, error);
	if (!values || !work->made)
		return -1;
	if (!view->coding)
		return make_narrow(work, output, values, error);
	free(work->scales);
	work->scales = smalti_calloc(output->from.shape[0], sizeof(*work->scales), error);
	if (!work->scales)
		return -1;
	return (work->form->by_row ? make_rows : make_fp8)(work, output, values, error);
}

static const void *piece(void *user, int index, int64_t first, int64_t count, struct smalti_error *error)
{
	struct work *work = user;
	const struct output *output = &work->outputs[index];
	const int64_t size =
	    output->view.coding ? output->view.coding->block_bytes : smalti_dtype_bytes(output->view.dtype);
	(void)count;
	if (!output->scale && !output->view.data && first == 0 && make(work, output, error) < 0)
		return NULL;
	const void *data = output->scale ? work->scales : output->view.data ? output->view.data : work->made;
	return (const char *)data + first * size;
}

static int write_weights(struct work *work, const char *path, enum smalti_quantization quantization,
			 struct smalti_error *error)
{
	SCOPED(free) struct smalti_tensor_view *views = smalti_calloc(work->count, sizeof(*views), error);
	SCOPED(cJSON_Delete) cJSON *metadata = cJSON_CreateObject();
	if (!views || !cJSON_AddStringToObject(metadata, "format", "pt") ||
	    !cJSON_AddStringToObject(metadata, "quantization",
				     quantization == SMALTI_QUANTIZE_INT8 ? "int8-rows" : "fp8-scaled"))
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a file's header");
	for (int i = 0; i < work->count; i++)
		views[i] = work->outputs[i].view;
	if (smalti_safetensors_stream_with(path, metadata, views, work->count, piece, work, error) < 0)
		return -1;
	return smalti_checkpoint_check(work->checkpoint, error);
}

/* Reads the source's config.json and tells its component by it; -1 with an error. */
static int read_config(const char *source, cJSON **config, struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_format(error, "%s/config.json", source);
	if (!path || smalti_component_check(source, error) < 0)
		return -1;
	*config = smalti_json_read(path, MAX_CONFIG, error);
	if (!*config)
		return -1;
	for (int i = 0; i < (int)COUNT_OF(components); i++)
		if (cJSON_GetObjectItemCaseSensitive(*config, components[i].key))
			return i;
	return smalti_fail(error, SMALTI_EUNSUPPORTED,
			   "%s: is neither of a T5 text encoder nor of a PixArt transformer", path);
}

static int list_tensors(int component, const cJSON *config, struct smalti_inventory *tensors,
			struct smalti_error *error)
{
	struct smalti_t5_config t5;
	struct smalti_transformer_config transformer;
	if (component == SMALTI_TEXT_ENCODER)
		return smalti_t5_config_parse(config, &t5, error) < 0
			   ? -1
			   : smalti_component_tensors(tensors, SMALTI_TEXT_ENCODER, &t5, SMALTI_F32, error);
	return smalti_transformer_config_parse(config, &transformer, error) < 0
		   ? -1
		   : smalti_component_tensors(tensors, SMALTI_TRANSFORMER, &transformer, SMALTI_F32, error);
}

static void free_work(struct work *work)
{
	for (int i = 0; i < work->count; i++)
		free(work->outputs[i].name);
	free(work->outputs);
	free(work->made);
	free(work->scales);
	smalti_checkpoint_close(work->checkpoint);
}

int smalti_quantize_component(const char *source, const char *directory, const char *variant,
			      enum smalti_quantization quantization, struct smalti_quantize_result *result,
			      struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *config = NULL;
	struct smalti_inventory tensors = {NULL, 0};
	struct work work = {.form = &forms[quantization]};
	const int kind = read_config(source, &config, error);
	if (kind < 0)
		return -1;
	const struct component *component = &components[kind];
	SCOPED(free) char *weights = smalti_format(error, "%s/%s.safetensors", directory, component->stem);
	SCOPED(free) char *path = smalti_format(error, "%s/config.json", directory);
	work.checkpoint = smalti_checkpoint_open(source, component->stem, variant, error);
	int status = weights && path && work.checkpoint ? list_tensors(kind, config, &tensors, error) : -1;
	if (status == 0)
		status = list(&work, component, &tensors, result, error);
	if (status == 0)
		status = write_weights(&work, weights, quantization, error);
	if (status == 0)
		status = smalti_json_write(path, config, error);
	smalti_inventory_free(&tensors);
	free_work(&work);
	return status;
}
