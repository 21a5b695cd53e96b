/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/adapter.h"
#include "base/file.h"
#include "checkpoint/adapter_names.h"
#include "checkpoint/adapter_scale.h"

#include <math.h>

enum { MAX_CONFIG = 4 << 20, NAMED = 3, RANK_MAX = 65536 };

/* The reading of one file. */
struct reading {
	const char *path;
	const struct smalti_safetensors *file;
	const cJSON *config; /* peft's; NULL: none */
	struct smalti_known_modules known;
	const struct smalti_tensor_view *(*found)[SMALTI_ADAPTER_ROLES]; /* of each known module */
	struct smalti_adapter_scaling scaling[SMALTI_ADAPTED_COMPONENTS];
	struct smalti_adapter *adapter;
};

/* --- which files ------------------------------------------------------------------------------ */

static const char peft_weights[] = "adapter_model.safetensors", peft_config[] = "adapter_config.json",
		  diffusers_weights[] = "pytorch_lora_weights.safetensors";

/* Returns the file of weights that a user's path says, for free(). */
static char *find_weights(const char *path, struct smalti_error *error)
{
	const char *const names[] = {peft_weights, diffusers_weights};
	if (!smalti_is_directory(path))
		return smalti_format(error, "%s", path);
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		char *file = smalti_format(error, "%s/%s", path, names[i]);
		const int found = file ? smalti_find_file(file, error) : -1;
		if (found)
			return found > 0 ? file : (free(file), NULL);
		free(file);
	}
	smalti_fail(error, SMALTI_EIO, "%s: no adapter here: neither %s nor %s", path, peft_weights,
		    diffusers_weights);
	return NULL;
}

/* Reads peft's configuration beside its weights; *config is NULL for other files. */
static int read_config(const char *weights, cJSON **config, struct smalti_error *error)
{
	const char *slash = strrchr(weights, '/');
	const int directory = slash ? (int)(slash + 1 - weights) : 0;
	if (strcmp(weights + directory, peft_weights) != 0)
		return 0;
	SCOPED(free) char *path = smalti_format(error, "%.*s%s", directory, weights, peft_config);
	*config = path ? smalti_json_read(path, MAX_CONFIG, error) : NULL;
	return *config ? 0 : -1;
}

/* --- scaling ---------------------------------------------------------------------------------- */

/* Reads what diffusers' savers leave in the metadata, a JSON text. */
static int read_metadata(struct reading *r, struct smalti_error *error)
{
	static const char *const prefixes[SMALTI_ADAPTED_COMPONENTS] = {"text_encoder.", "transformer."};
	const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(r->file->header, "__metadata__");
	const cJSON *text = cJSON_GetObjectItemCaseSensitive(metadata, "lora_adapter_metadata"), *item;
	if (!text)
		return 0;
	SCOPED(cJSON_Delete)
	cJSON *config = smalti_json_parse(text->valuestring, strlen(text->valuestring), error);
	if (!config)
		smalti_error_prefix(error, "lora_adapter_metadata");
	int status = config ? 0 : -1;
	for (int c = 0; c < SMALTI_ADAPTED_COMPONENTS && status == 0; c++) {
		bool has = false;
		cJSON_ArrayForEach (item, config)
			has = has || strncmp(item->string, prefixes[c], strlen(prefixes[c])) == 0;
		if (has)
			status = smalti_adapter_scaling_read(&r->scaling[c], config, prefixes[c], error);
	}
	return status;
}

static int read_scaling(struct reading *r, struct smalti_error *error)
{
	int status = r->config ? 0 : read_metadata(r, error);
	for (int c = 0; r->config && c < SMALTI_ADAPTED_COMPONENTS && status == 0; c++)
		status = smalti_adapter_scaling_read(&r->scaling[c], r->config, "", error);
	if (r->config && status < 0)
		smalti_error_prefix(error, "%s", peft_config);
	return status;
}

/* --- tensors ---------------------------------------------------------------------------------- */

static int fail_unknown(const struct reading *r, const char *names, int64_t count, const char *reason,
			struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_EFORMAT,
			   "%lld of %lld tensors belong to no module of the model: %s%s: %s; was it trained "
			   "for another model?",
			   (long long)count, (long long)r->file->count, names, count > NAMED ? ", ..." : "",
			   reason);
}

/* Puts a tensor where it belongs: 1; 0: there is no such module; -1. */
static int place(struct reading *r, const struct smalti_tensor_view *view, size_t *length,
		 struct smalti_error *error)
{
	enum smalti_adapter_role role;
	const char *kind = smalti_adapter_unsupported(view->name);
	if (kind)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "tensor %.200s: %s is not supported: LoRA and DoRA are", view->name, kind);
	*length = strlen(view->name);
	if (!smalti_adapter_split(view->name, length, &role))
		return 0;
	const int64_t module = smalti_known_modules_find(&r->known, view->name, *length);
	if (module < 0)
		return 0;
	if (r->found[module][role])
		return smalti_fail(error, SMALTI_EFORMAT, "tensors %.200s and %.200s are for the same matrix",
				   r->found[module][role]->name, view->name);
	r->found[module][role] = view;
	return 1;
}

/* Says what the training script's second file lacks. */
static void look_for_lost_alpha(const struct reading *r, const char *name)
{
	if (strncmp(name, SMALTI_SCRIPT_PREFIX, strlen(SMALTI_SCRIPT_PREFIX)) == 0)
		smalti_fail(&r->adapter->note, SMALTI_EFORMAT,
			    "%.300s: such files of PixArt's training script have lost the adapter's alpha, "
			    "which is taken as its rank: use the directory above it",
			    r->path);
}

static int place_all(struct reading *r, struct smalti_error *error)
{
	char names[NAMED * 100] = "", reason[256] = "";
	int64_t unknown = 0;
	for (int64_t i = 0; i < r->file->count; i++) {
		const struct smalti_tensor_view *view = &r->file->tensors[i];
		size_t length;
		if (strncmp(view->name, "bundle_emb.", strlen("bundle_emb.")) == 0) {
			smalti_fail(&r->adapter->note, SMALTI_EUNSUPPORTED,
				    "%.300s: embeddings of special words (bundle_emb) are not used", r->path);
			continue;
		}
		const int placed = place(r, view, &length, error);
		if (placed < 0)
			return -1;
		look_for_lost_alpha(r, view->name);
		if (placed)
			continue;
		if (unknown++ == 0)
			smalti_known_modules_explain(&r->known, view->name, length, reason, sizeof(reason));
		if (unknown <= NAMED)
			smalti_append(names, sizeof(names), ", ", "%.90s", view->name);
	}
	return unknown ? fail_unknown(r, names, unknown, reason, error) : 0;
}

/* --- values ----------------------------------------------------------------------------------- */

static int64_t elements(const struct smalti_tensor_view *view)
{
	return view->bytes / smalti_dtype_bytes(view->dtype);
}

/* Reads `count` finite values from element `first` on, for free(). */
static float *read_values(const struct smalti_tensor_view *view, int64_t first, int64_t count,
			  struct smalti_error *error)
{
	float *values = smalti_calloc(count, sizeof(*values), error);
	if (!values)
		return NULL;
	smalti_widen(view->dtype, (const char *)view->data + first * smalti_dtype_bytes(view->dtype), count,
		     values);
	for (int64_t i = 0; i < count; i++)
		if (!isfinite(values[i])) {
			smalti_fail(error, SMALTI_EFORMAT, "tensor %.200s: value %lld is not finite",
				    view->name, (long long)(first + i));
			free(values);
			return NULL;
		}
	return values;
}

static int fail_shape(const struct smalti_tensor_view *view, const char *expected, struct smalti_error *error)
{
	char found[128] = "";
	for (int i = 0; i < view->rank; i++)
		smalti_append(found, sizeof(found), ", ", "%" PRId64, view->shape[i]);
	return smalti_fail(error, SMALTI_EFORMAT,
			   "tensor %.200s should have the shape %s, found [%s]; was it trained for another "
			   "model?",
			   view->name, expected, found);
}

/* Checks that a tensor is a matrix [rows, columns], or a convolution of as many values. */
static int check_matrix(const struct smalti_tensor_view *view, int64_t rows, int64_t columns,
			struct smalti_error *error)
{
	char expected[64];
	int64_t count = rows;
	if (view->rank >= 2 && view->shape[0] == rows && smalti_multiply(&count, columns) &&
	    elements(view) == count)
		return 0;
	snprintf(expected, sizeof(expected), "[%" PRId64 ", %" PRId64 "]", rows, columns);
	return fail_shape(view, expected, error);
}

/* Checks the tensors of a module, whose matrix is [out, in]. */
static int check_module(const struct smalti_known_module *module,
			const struct smalti_tensor_view *const found[], int64_t out, int64_t in,
			struct smalti_error *error)
{
	const struct smalti_tensor_view *a = found[SMALTI_ADAPTER_A], *b = found[SMALTI_ADAPTER_B];
	for (int role = 0; role < SMALTI_ADAPTER_ROLES; role++)
		if (found[role] && !found[role]->usable)
			return smalti_fail(error, SMALTI_EUNSUPPORTED,
					   "tensor %.200s should be F32, F16 or BF16, found %s",
					   found[role]->name, found[role]->stored);
	if (!a || !b)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "module %s has only one of its two matrices: %s is missing", module->name,
				   a ? "lora_B (lora_up)" : "lora_A (lora_down)");
	const int64_t rank = a->rank ? a->shape[0] : 0;
	if (rank < 1 || rank > RANK_MAX)
		return fail_shape(a, "[rank, inputs]", error);
	if (check_matrix(a, rank, in, error) < 0 || check_matrix(b, out, rank, error) < 0)
		return -1;
	const struct smalti_tensor_view *alpha = found[SMALTI_ADAPTER_ALPHA];
	return !alpha || elements(alpha) == 1 ? 0 : fail_shape(alpha, "[]", error);
}

static int read_scale(const struct reading *r, const struct smalti_known_module *module,
		      const struct smalti_tensor_view *alpha, struct smalti_low_rank *change,
		      struct smalti_error *error)
{
	char name[160];
	snprintf(name, sizeof(name), "%.*s", (int)(strlen(change->tensor) - strlen(".weight")),
		 change->tensor);
	if (!alpha)
		return smalti_adapter_scale(&r->scaling[module->component], name, change->rank,
					    &change->scale, error);
	SCOPED(free) float *value = read_values(alpha, 0, 1, error);
	if (value)
		change->scale = (double)*value / (double)change->rank;
	return value ? 0 : -1;
}

/* Reads DoRA's magnitudes of rows `first` on of `all`, or of the columns. */
static int read_magnitude(const struct smalti_tensor_view *const found[], int64_t first, int64_t all,
			  struct smalti_low_rank *change, struct smalti_error *error)
{
	const struct smalti_tensor_view *m = found[SMALTI_ADAPTER_MAGNITUDE],
					*scale = found[SMALTI_ADAPTER_SCALE];
	if (m && scale)
		return smalti_fail(error, SMALTI_EFORMAT, "tensors %.200s and %.200s are for the same matrix",
				   m->name, scale->name);
	if (!m && !scale)
		return 0;
	change->by_column = scale && scale->rank > 1 && scale->shape[0] == 1 && all > 1;
	const struct smalti_tensor_view *view = m ? m : scale;
	char expected[64];
	snprintf(expected, sizeof(expected), "[%" PRId64 "] or [1, %" PRId64 "]", all, change->in);
	if (elements(view) != (change->by_column ? change->in : all))
		return fail_shape(view, expected, error);
	if (change->by_column && change->out < all)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "tensor %.200s: a magnitude per column is not supported where q, k and v "
				   "are in one matrix",
				   view->name);
	change->magnitude = read_values(view, change->by_column ? 0 : first,
					change->by_column ? change->in : change->out, error);
	return change->magnitude ? 0 : -1;
}

/* Adds the change of one part of a module: rows `first` on of its `all` rows. */
static int add_part(struct reading *r, const struct smalti_known_module *module, int part, int64_t first,
		    int64_t all, struct smalti_error *error)
{
	const struct smalti_tensor_view *const *found = r->found[module - r->known.modules];
	const struct smalti_tensor_view *matrix = module->parts[part], *a = found[SMALTI_ADAPTER_A];
	struct smalti_adapter *adapter = r->adapter;
	struct smalti_low_rank change = {.tensor = matrix->name,
					 .component = module->component,
					 .out = matrix->shape[0],
					 .in = smalti_tensor_row(matrix),
					 .rank = a->shape[0]};
	if (smalti_grow(&adapter->changes, adapter->count, sizeof(change), error) < 0)
		return -1;
	change.a = read_values(a, 0, change.rank * change.in, error);
	change.b = change.a ? read_values(found[SMALTI_ADAPTER_B], first * change.rank,
					  change.out * change.rank, error)
			    : NULL;
	int status = change.b ? read_scale(r, module, found[SMALTI_ADAPTER_ALPHA], &change, error) : -1;
	if (status == 0)
		status = read_magnitude(found, first, all, &change, error);
	adapter->changes[adapter->count++] = change;
	return status;
}

static int add_module(struct reading *r, const struct smalti_known_module *module, struct smalti_error *error)
{
	const struct smalti_tensor_view *const *found = r->found[module - r->known.modules];
	bool any = false;
	int64_t all = 0, first = 0;
	for (int role = 0; role < SMALTI_ADAPTER_ROLES; role++)
		any = any || found[role];
	if (!any)
		return 0;
	for (int part = 0; part < module->count; part++)
		all += module->parts[part]->shape[0];
	int status = check_module(module, found, all, smalti_tensor_row(module->parts[0]), error);
	for (int part = 0; part < module->count && status == 0; part++) {
		status = add_part(r, module, part, first, all, error);
		first += module->parts[part]->shape[0];
	}
	return status;
}

/* Sorts the changes; a matrix named in two ways is refused. */
static int sort(struct smalti_adapter *adapter, struct smalti_error *error)
{
	if (adapter->count == 0)
		return smalti_fail(error, SMALTI_EFORMAT, "no tensor of an adapter is in it");
	qsort(adapter->changes, (size_t)adapter->count, sizeof(*adapter->changes), smalti_by_name);
	for (int64_t i = 1; i < adapter->count; i++)
		if (strcmp(adapter->changes[i - 1].tensor, adapter->changes[i].tensor) == 0)
			return smalti_fail(error, SMALTI_EFORMAT, "two changes of %s",
					   adapter->changes[i].tensor);
	return 0;
}

static int read_all(struct reading *r, const struct smalti_adapter_base *base, struct smalti_error *error)
{
	if (smalti_known_modules_list(&r->known, base, error) < 0)
		return -1;
	r->found = smalti_calloc(r->known.count, sizeof(*r->found), error);
	if (!r->found || read_scaling(r, error) < 0 || place_all(r, error) < 0)
		return -1;
	int status = 0;
	for (int64_t i = 0; i < r->known.count && status == 0; i++)
		status = add_module(r, &r->known.modules[i], error);
	return status == 0 ? sort(r->adapter, error) : -1;
}

struct smalti_adapter *smalti_adapter_read(const struct smalti_safetensors *file, const cJSON *config,
					   const char *path, const struct smalti_adapter_base *base,
					   struct smalti_error *error)
{
	struct smalti_adapter *adapter = smalti_calloc(1, sizeof(*adapter), error);
	if (!adapter)
		return NULL;
	struct reading r = {.path = path, .file = file, .config = config, .adapter = adapter};
	adapter->path = smalti_format(error, "%s", path);
	int status = adapter->path ? read_all(&r, base, error) : -1;
	if (status < 0)
		smalti_error_prefix(error, "%s", path);
	for (int c = 0; c < SMALTI_ADAPTED_COMPONENTS; c++)
		smalti_adapter_scaling_free(&r.scaling[c]);
	smalti_known_modules_free(&r.known);
	free(r.found);
	if (status == 0)
		return adapter;
	smalti_adapter_close(adapter);
	return NULL;
}

SCOPED_RELEASE(struct smalti_safetensors *, smalti_safetensors_close)

struct smalti_adapter *smalti_adapter_open(const char *path, const struct smalti_adapter_base *base,
					   struct smalti_error *error)
{
	SCOPED(free) char *weights = find_weights(path, error);
	SCOPED(cJSON_Delete) cJSON *config = NULL;
	if (!weights || read_config(weights, &config, error) < 0)
		return NULL;
	SCOPED(smalti_safetensors_close)
	struct smalti_safetensors *file = smalti_safetensors_open(weights, error);
	struct smalti_adapter *adapter =
	    file ? smalti_adapter_read(file, config, weights, base, error) : NULL;
	if (!adapter || smalti_safetensors_check(file, error) == 0)
		return adapter;
	smalti_adapter_close(adapter);
	return NULL;
}

void smalti_adapter_close(struct smalti_adapter *adapter)
{
	if (!adapter)
		return;
	for (int64_t i = 0; i < adapter->count; i++) {
		free(adapter->changes[i].a);
		free(adapter->changes[i].b);
		free(adapter->changes[i].magnitude);
	}
	free(adapter->changes);
	free(adapter->path);
	free(adapter);
}

const struct smalti_low_rank *smalti_adapter_find(const struct smalti_adapter *adapter, const char *tensor)
{
	const struct smalti_low_rank key = {.tensor = tensor};
	return bsearch(&key, adapter->changes, (size_t)adapter->count, sizeof(key), smalti_by_name);
}
