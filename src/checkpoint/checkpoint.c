/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/checkpoint.h"
#include "base/json.h"
#include "checkpoint/gguf_names.h"
#include "checkpoint/scales.h"

#include <limits.h>
#include <sys/stat.h>

enum { MAX_INDEX = 16 << 20, MAX_SHARDS = 4096 };

struct smalti_checkpoint_entry *smalti_checkpoint_entry(const struct smalti_checkpoint *checkpoint,
							const char *name)
{
	struct smalti_checkpoint_entry key = {.view.name = name};
	return bsearch(&key, checkpoint->entries, (size_t)checkpoint->count, sizeof(key), smalti_by_name);
}

/* --- old names ------------------------------------------------------------------------------- */

static const struct old_name {
	const char *old, *present;
} old_names[] = {
    {".attentions.0.query.", ".attentions.0.to_q."},  {".attentions.0.key.", ".attentions.0.to_k."},
    {".attentions.0.value.", ".attentions.0.to_v."},  {".attentions.0.proj_attn.", ".attentions.0.to_out.0."},
    {"encoder.embed_tokens.weight", "shared.weight"},
};

/* Drops axes: the original layout kept the attention's matrices as 1×1 convolutions. */
static void drop_kernel_axes(struct smalti_tensor_view *view)
{
	if (view->rank == 4 && view->shape[2] == 1 && view->shape[3] == 1)
		view->rank = 2;
}

static int rename_old(const struct smalti_checkpoint *checkpoint, struct smalti_checkpoint_entry *entry,
		      struct smalti_error *error)
{
	const char *name = entry->view.name;
	for (size_t i = 0; i < COUNT_OF(old_names); i++) {
		const char *at = strstr(name, old_names[i].old);
		if (!at)
			continue;
		char *present = smalti_format(error, "%.*s%s%s", (int)(at - name), name, old_names[i].present,
					      at + strlen(old_names[i].old));
		if (!present)
			return -1;
		if (smalti_checkpoint_entry(checkpoint, present)) {
			free(present);
			return 0;
		}
		entry->renamed = present;
		drop_kernel_axes(&entry->view);
		return 0;
	}
	return 0;
}

static int rename_all_old(struct smalti_checkpoint *checkpoint, struct smalti_error *error)
{
	for (int64_t i = 0; i < checkpoint->count; i++)
		if (rename_old(checkpoint, &checkpoint->entries[i], error))
			return -1;
	for (int64_t i = 0; i < checkpoint->count; i++)
		if (checkpoint->entries[i].renamed)
			checkpoint->entries[i].view.name = checkpoint->entries[i].renamed;
	qsort(checkpoint->entries, (size_t)checkpoint->count, sizeof(*checkpoint->entries), smalti_by_name);
	return 0;
}

/* --- a single file --------------------------------------------------------------------------- */

static int open_shard(struct smalti_checkpoint *checkpoint, const char *name, struct smalti_error *error)
{
	struct smalti_checkpoint_shard *shard = &checkpoint->shards[checkpoint->shard_count++];
	shard->name = name;
	shard->path = smalti_format(error, "%s/%s", checkpoint->directory, name);
	shard->file = shard->path ? smalti_safetensors_open(shard->path, error) : NULL;
	return shard->file ? 0 : -1;
}

static int open_single(struct smalti_checkpoint *checkpoint, const char *name, struct smalti_error *error)
{
	checkpoint->shards = smalti_calloc(1, sizeof(*checkpoint->shards), error);
	if (!checkpoint->shards || open_shard(checkpoint, name, error))
		return -1;
	const struct smalti_checkpoint_shard *shard = checkpoint->shards;
	checkpoint->count = shard->file->count;
	checkpoint->entries = smalti_calloc(checkpoint->count, sizeof(*checkpoint->entries), error);
	if (!checkpoint->entries)
		return -1;
	for (int64_t i = 0; i < checkpoint->count; i++)
		checkpoint->entries[i] =
		    (struct smalti_checkpoint_entry){.view = shard->file->tensors[i], .path = shard->path};
	return 0;
}

/* --- shards named by an index ----------------------------------------------------------------- */

static bool plain_name(const char *name)
{
	return !strchr(name, '/') && name[0] != '.' && smalti_stem(name, ".safetensors") > 0;
}

static const struct smalti_checkpoint_shard *find_shard(const struct smalti_checkpoint *checkpoint,
							const char *name)
{
	for (int i = 0; i < checkpoint->shard_count; i++)
		if (!strcmp(checkpoint->shards[i].name, name))
			return &checkpoint->shards[i];
	return NULL;
}

static int add_indexed(struct smalti_checkpoint *checkpoint, const cJSON *item, struct smalti_error *error)
{
	if (!cJSON_IsString(item) || !plain_name(item->valuestring))
		return smalti_fail(
		    error, SMALTI_EFORMAT,
		    "tensor %.200s should name a .safetensors file in the index's own directory",
		    item->string);
	const char *name = item->valuestring;
	const struct smalti_checkpoint_shard *shard = find_shard(checkpoint, name);
	if (!shard && checkpoint->shard_count == MAX_SHARDS)
		return smalti_fail(error, SMALTI_EFORMAT, "more than %d shards", MAX_SHARDS);
	if (!shard && open_shard(checkpoint, name, error))
		return -1;
	shard = find_shard(checkpoint, name);
	const struct smalti_tensor_view *view = smalti_safetensors_find(shard->file, item->string);
	if (!view)
		return smalti_fail(error, SMALTI_EFORMAT, "tensor %.200s is not in %s", item->string,
				   shard->path);
	checkpoint->entries[checkpoint->count++] =
	    (struct smalti_checkpoint_entry){.view = *view, .path = shard->path};
	return 0;
}

static int read_index(struct smalti_checkpoint *checkpoint, const cJSON *index, struct smalti_error *error)
{
	const cJSON *map = cJSON_GetObjectItemCaseSensitive(index, "weight_map");
	if (!cJSON_IsObject(map))
		return smalti_fail(error, SMALTI_EFORMAT, "\"weight_map\" should be an object");
	int64_t capacity = cJSON_GetArraySize(map);
	checkpoint->shards = smalti_calloc(MAX_SHARDS, sizeof(*checkpoint->shards), error);
	checkpoint->entries = smalti_calloc(capacity, sizeof(*checkpoint->entries), error);
	if (!checkpoint->shards || !checkpoint->entries)
		return -1;
	const cJSON *item;
	cJSON_ArrayForEach (item, map)
		if (add_indexed(checkpoint, item, error))
			return -1;
	qsort(checkpoint->entries, (size_t)checkpoint->count, sizeof(*checkpoint->entries), smalti_by_name);
	return 0;
}

static int open_indexed(struct smalti_checkpoint *checkpoint, const char *name, struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_format(error, "%s/%s", checkpoint->directory, name);
	SCOPED(cJSON_Delete) cJSON *index = path ? smalti_json_read(path, MAX_INDEX, error) : NULL;
	int status = index ? read_index(checkpoint, index, error) : -1;
	if (index && status)
		smalti_error_prefix(error, "%s", path);
	for (int i = 0; i < checkpoint->shard_count; i++)
		checkpoint->shards[i].name = NULL; /* the index owned it */
	return status;
}

/* --- a GGUF file ------------------------------------------------------------------------------ */

static bool is_gguf(const char *name)
{
	const char *dot = strrchr(name, '.');
	return dot && strcmp(dot, ".gguf") == 0;
}

/* Offers a tensor of T5 under transformers' name. */
static int rename_t5(struct smalti_checkpoint_entry *entry, struct smalti_error *error)
{
	char present[SMALTI_GGUF_NAME];
	smalti_gguf_t5_name(entry->view.name, present);
	if (strcmp(present, entry->view.name) == 0)
		return 0;
	entry->renamed = smalti_format(error, "%s", present);
	entry->view.name = entry->renamed;
	return entry->renamed ? 0 : -1;
}

/* Opens the file at `path`, which the checkpoint owns from now on. */
static int open_gguf(struct smalti_checkpoint *checkpoint, char *path, const char *stem,
		     struct smalti_error *error)
{
	checkpoint->shards = smalti_calloc(1, sizeof(*checkpoint->shards), error);
	if (!checkpoint->shards) {
		free(path);
		return -1;
	}
	struct smalti_checkpoint_shard *shard = checkpoint->shards;
	checkpoint->shard_count = 1;
	shard->path = path;
	shard->gguf = smalti_gguf_open(path, error);
	if (!shard->gguf)
		return -1;
	checkpoint->entries = smalti_calloc(shard->gguf->count, sizeof(*checkpoint->entries), error);
	if (!checkpoint->entries)
		return -1;
	checkpoint->count = shard->gguf->count;
	for (int64_t i = 0; i < checkpoint->count; i++) {
		checkpoint->entries[i] =
		    (struct smalti_checkpoint_entry){.view = shard->gguf->tensors[i], .path = path};
		if (strcmp(stem, SMALTI_STEM_T5) == 0 && rename_t5(&checkpoint->entries[i], error))
			return -1;
	}
	qsort(checkpoint->entries, (size_t)checkpoint->count, sizeof(*checkpoint->entries), smalti_by_name);
	return 0;
}

/* Opens the directory's only GGUF file: 1; 0: there is none; -1: failed. */
static int open_only_gguf(struct smalti_checkpoint *checkpoint, const char *stem, struct smalti_error *error)
{
	SCOPED(closedir) DIR *directory = opendir(checkpoint->directory);
	SCOPED(free) char *found = NULL;
	for (const struct dirent *item; directory && (item = readdir(directory));) {
		if (!is_gguf(item->d_name) || item->d_name[0] == '.')
			continue;
		if (found)
			return smalti_fail(error, SMALTI_EINVAL,
					   "%s: has several GGUF files: give the path of one instead of the "
					   "directory",
					   checkpoint->directory);
		found = smalti_format(error, "%s/%s", checkpoint->directory, item->d_name);
		if (!found)
			return -1;
	}
	if (!found)
		return 0;
	char *path = found;
	found = NULL;
	return open_gguf(checkpoint, path, stem, error) ? -1 : 1;
}

const cJSON *smalti_checkpoint_metadata(const struct smalti_checkpoint *checkpoint)
{
	return checkpoint->shard_count && checkpoint->shards[0].gguf ? checkpoint->shards[0].gguf->metadata
								     : NULL;
}

/* --- which files ------------------------------------------------------------------------------ */

/* Tells whether it exists, even as a dangling link. */
static bool is_there(const struct smalti_checkpoint *checkpoint, const char *name)
{
	char path[PATH_MAX];
	struct stat info;
	snprintf(path, sizeof(path), "%s/%s", checkpoint->directory, name);
	return !lstat(path, &info) || errno != ENOENT;
}

/* Tells whether all shards of the index are missing: 1, 0; -1: the index cannot be read. */
static int lost_its_shards(const struct smalti_checkpoint *checkpoint, const char *index,
			   struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_format(error, "%s/%s", checkpoint->directory, index);
	SCOPED(cJSON_Delete) cJSON *file = path ? smalti_json_read(path, MAX_INDEX, error) : NULL;
	const cJSON *map = cJSON_GetObjectItemCaseSensitive(file, "weight_map"), *item;
	bool gone = cJSON_IsObject(map) && map->child;
	cJSON_ArrayForEach (item, map)
		gone = gone && cJSON_IsString(item) && plain_name(item->valuestring) &&
		       !is_there(checkpoint, item->valuestring);
	return file ? gone : -1;
}

/* Tells whether the index is read: 1, 0, -1. Of both forms diffusers reads the index, transformers the single
 * file. An index whose shards are all missing is skipped. */
static int takes_index(const struct smalti_checkpoint *checkpoint, const char *stem, const char *single,
		       const char *index, struct smalti_error *error)
{
	if (!is_there(checkpoint, index))
		return 0;
	if (!is_there(checkpoint, single))
		return 1;
	if (strcmp(stem, SMALTI_STEM_DIFFUSERS) != 0)
		return 0;
	const int lost = lost_its_shards(checkpoint, index, error);
	return lost < 0 ? -1 : !lost;
}

/* Opens a variant's files: 1; 0: neither form exists; -1: failed. `variant` is empty or begins with a dot. */
static int open_variant(struct smalti_checkpoint *checkpoint, const char *stem, const char *variant,
			struct smalti_error *error)
{
	SCOPED(free) char *single = smalti_format(error, "%s%s.safetensors", stem, variant);
	SCOPED(free) char *index = smalti_format(error, "%s.safetensors.index%s.json", stem, variant);
	const int indexed = single && index ? takes_index(checkpoint, stem, single, index, error) : -1;
	if (indexed < 0)
		return -1;
	if (!indexed && !is_there(checkpoint, single))
		return 0;
	const int status =
	    indexed ? open_indexed(checkpoint, index, error) : open_single(checkpoint, single, error);
	return status ? -1 : 1;
}

/* Fails without weights; pickled files, which can run any code, are not read. */
static int fail_without(const struct smalti_checkpoint *checkpoint, const char *stem, const char *variant,
			struct smalti_error *error)
{
	static const char *const pickled[] = {"diffusion_pytorch_model.bin", "pytorch_model.bin",
					      "pytorch_model.bin.index.json",
					      "diffusion_pytorch_model.bin.index.json"};
	for (size_t i = 0; i < COUNT_OF(pickled); i++)
		if (is_there(checkpoint, pickled[i]))
			return smalti_fail(
			    error, SMALTI_EUNSUPPORTED,
			    "%s/%s: such files are not read; make safetensors of them: load the "
			    "pipeline with diffusers and save it with save_pretrained()",
			    checkpoint->directory, pickled[i]);
	return smalti_fail(error, SMALTI_EIO,
			   "%s: no weights here, %s%s.safetensors or its index was expected",
			   checkpoint->directory, stem, variant);
}

static int open_files(struct smalti_checkpoint *checkpoint, const char *stem, const char *variant,
		      struct smalti_error *error)
{
	static const char *const defaults[] = {"", ".fp16", ".bf16"};
	char given[64] = "";
	if (variant)
		snprintf(given, sizeof(given), ".%s", variant);
	if (is_gguf(checkpoint->directory)) {
		char *path = smalti_format(error, "%s", checkpoint->directory);
		return path ? open_gguf(checkpoint, path, stem, error) : -1;
	}
	int opened = variant ? open_variant(checkpoint, stem, given, error) : 0;
	for (int i = 0; i < 3 && !variant && !opened; i++)
		opened = open_variant(checkpoint, stem, defaults[i], error);
	if (!opened)
		opened = open_only_gguf(checkpoint, stem, error);
	if (!opened)
		return fail_without(checkpoint, stem, given, error);
	return opened < 0 ? -1 : 0;
}

struct smalti_checkpoint *smalti_checkpoint_open(const char *directory, const char *stem, const char *variant,
						 struct smalti_error *error)
{
	struct smalti_checkpoint *checkpoint = smalti_calloc(1, sizeof(*checkpoint), error);
	if (!checkpoint)
		return NULL;
	checkpoint->directory = smalti_format(error, "%s", directory);
	if (!checkpoint->directory || open_files(checkpoint, stem, variant, error) ||
	    smalti_scales_attach(checkpoint, error) || rename_all_old(checkpoint, error)) {
		smalti_checkpoint_close(checkpoint);
		return NULL;
	}
	return checkpoint;
}

struct smalti_checkpoint *smalti_checkpoint_record(struct smalti_inventory *inventory,
						   enum smalti_dtype dtype, struct smalti_error *error)
{
	struct smalti_checkpoint *checkpoint = smalti_calloc(1, sizeof(*checkpoint), error);
	if (checkpoint) {
		checkpoint->record = inventory;
		checkpoint->record_dtype = dtype;
	}
	return checkpoint;
}

void smalti_checkpoint_close(struct smalti_checkpoint *checkpoint)
{
	if (!checkpoint)
		return;
	for (int64_t i = 0; checkpoint->entries && i < checkpoint->count; i++)
		free(checkpoint->entries[i].renamed);
	for (int i = 0; i < checkpoint->shard_count; i++) {
		smalti_safetensors_close(checkpoint->shards[i].file);
		smalti_gguf_close(checkpoint->shards[i].gguf);
		free(checkpoint->shards[i].path);
	}
	free(checkpoint->entries);
	free(checkpoint->shards);
	free(checkpoint->directory);
	free(checkpoint);
}

int smalti_checkpoint_check(const struct smalti_checkpoint *checkpoint, struct smalti_error *error)
{
	int status = 0;
	for (int i = 0; i < checkpoint->shard_count && status == 0; i++) {
		const struct smalti_checkpoint_shard *shard = &checkpoint->shards[i];
		status = smalti_map_check(shard->gguf ? &shard->gguf->map : &shard->file->map, error);
	}
	return status;
}

/* --- what is in it ---------------------------------------------------------------------------- */

bool smalti_checkpoint_has(const struct smalti_checkpoint *checkpoint, const char *name)
{
	return smalti_checkpoint_entry(checkpoint, name) != NULL;
}

/* Tells whether the tensor has peft's name beside LoRA weights: X.base_layer.weight. */
static bool has_base_layer(const struct smalti_checkpoint *checkpoint, const char *name)
{
	char other[256];
	const char *dot = strrchr(name, '.');
	if (!dot)
		return false;
	snprintf(other, sizeof(other), "%.*s.base_layer%s", (int)(dot - name), name, dot);
	return smalti_checkpoint_entry(checkpoint, other) != NULL;
}

/* Writes "[6912, 1152]". */
static const char *shape_text(int rank, const int64_t *shape, char text[192])
{
	snprintf(text, 192, "[");
	for (int i = 0; i < rank; i++)
		smalti_append(text, 192, i ? ", " : "", "%" PRId64, shape[i]);
	smalti_append(text, 192, "", "]");
	return text;
}

int smalti_checkpoint_find(const struct smalti_checkpoint *checkpoint, const char *name, int rank,
			   const int64_t *shape, struct smalti_tensor_view *view, struct smalti_error *error)
{
	char wanted[192], found[192];
	if (checkpoint->record) {
		const struct smalti_tensor_view *added = smalti_inventory_add(
		    checkpoint->record, name, checkpoint->record_dtype, rank, shape, error);
		*view = added ? *added : (struct smalti_tensor_view){.name = name};
		const struct smalti_checkpoint_entry *coded =
		    checkpoint->like ? smalti_checkpoint_entry(checkpoint->like, name) : NULL;
		view->coding = coded ? coded->view.coding : NULL;
		return added ? 0 : -1;
	}
	shape_text(rank, shape, wanted);
	const struct smalti_checkpoint_entry *entry = smalti_checkpoint_entry(checkpoint, name);
	if (!entry)
		return smalti_fail(error, SMALTI_EFORMAT, "%s: tensor %s %s is missing%s",
				   checkpoint->directory, name, wanted,
				   has_base_layer(checkpoint, name)
				       ? "; LoRA weights are beside it, not merged: merge them with "
					 "peft's merge_and_unload(), and save it"
				       : "");
	if (entry->unscaled)
		return smalti_fail(
		    error, SMALTI_EFORMAT,
		    "%s: tensor %s is %s without its scale, which should be beside it as "
		    "X.scale_weight, X.weight_scale or X.SCB: the checkpoint is damaged, or was "
		    "converted wrongly",
		    entry->path, name, entry->view.stored);
	if (!entry->view.usable && !entry->view.coding)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%s: tensor %s is %s, neither F32, F16 nor BF16, nor any other type that "
				   "is read: convert the checkpoint",
				   entry->path, name, entry->view.stored);
	if (entry->view.rank != rank || memcmp(entry->view.shape, shape, (size_t)rank * sizeof(*shape)))
		return smalti_fail(error, SMALTI_EFORMAT, "%s: tensor %s should have the shape %s, found %s",
				   entry->path, name, wanted,
				   shape_text(entry->view.rank, entry->view.shape, found));
	*view = entry->view;
	return 0;
}
