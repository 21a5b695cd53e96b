/* SPDX-License-Identifier: Apache-2.0 */
#include "train/saved.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "base/sealed.h"
#include "train/adapter_diffusers.h"
#include "train/tensors.h"

#include <math.h>
#include <xxhash.h>

#define STATE_FORMAT "smalti training"
static const char PART[] = ".part";
/* In the first layout configurations had no digests, and the digests of tensors left out the header. */
enum { FIRST_LAYOUT = 1, LAYOUT };
static const double MOST = 9007199254740992; /* 2^53: integers of JSON */

/* The files of tensors: which list of the trainer is in which. */
enum { WEIGHTS, AVERAGES, OPTIMIZER, NULL_CAPTION, FILES };

/* The names of a checkpoint of a transformer, and of one of an adapter. */
static const struct names {
	const char *files[FILES];
	const char *configs[2]; /* of the directories of weights */
	const char *copies[2];  /* of an adapter's weights, in diffusers' form */
} all_names[] = {
    {{"transformer/diffusion_pytorch_model.safetensors", "ema/diffusion_pytorch_model.safetensors",
      "optimizer.safetensors", "null_caption.safetensors"},
     {"transformer/config.json", "ema/config.json"},
     {NULL, NULL}},
    {{"adapter/adapter_model.safetensors", "ema/adapter_model.safetensors", "optimizer.safetensors",
      "null_caption.safetensors"},
     {"adapter/adapter_config.json", "ema/adapter_config.json"},
     {"adapter/pytorch_lora_weights.safetensors", "ema/pytorch_lora_weights.safetensors"}}};

static const struct names *names_of(const struct smalti_trainer *trainer)
{
	return &all_names[trainer->base != NULL];
}

struct tensors {
	const struct smalti_parameter *list;
	int64_t count;
};

static void list_tensors(const struct smalti_trainer *trainer, struct smalti_parameter *null_caption,
			 struct tensors tensors[FILES])
{
	const int64_t width = trainer->config.caption_channels;
	*null_caption = (struct smalti_parameter){.name = "hidden_states",
						  .rank = 2,
						  .shape = {trainer->null_tokens, width},
						  .count = trainer->null_tokens * width,
						  .value = trainer->null_caption};
	tensors[WEIGHTS] = (struct tensors){trainer->parameters->list, trainer->parameters->count};
	tensors[AVERAGES] = (struct tensors){trainer->averages.list, trainer->averages.count};
	tensors[OPTIMIZER] = (struct tensors){trainer->optimizer->state, trainer->optimizer->state_count};
	tensors[NULL_CAPTION] = (struct tensors){null_caption, 1};
}

int64_t smalti_saved_bytes(const struct smalti_trainer *trainer)
{
	struct smalti_parameter null_caption;
	struct tensors tensors[FILES];
	int64_t values = 0;
	list_tensors(trainer, &null_caption, tensors);
	for (int i = 0; i < FILES; i++)
		for (int64_t k = 0; k < tensors[i].count; k++)
			values += tensors[i].list[k].count;
	return values * (int64_t)sizeof(float);
}

void smalti_saved_free(struct smalti_saved *saved)
{
	free(saved->directory);
	free(saved->config);
	free(saved->position.waiting);
	cJSON_Delete(saved->identity);
	cJSON_Delete(saved->files);
	*saved = (struct smalti_saved){0};
}

/* Returns the step in a checkpoint's name; -1: it is no checkpoint. */
static int64_t step_of(const char *name)
{
	char same[64];
	const int64_t step = strncmp(name, "step-", 5) == 0 ? strtoll(name + 5, NULL, 10) : -1;
	snprintf(same, sizeof(same), "step-%" PRId64, step);
	return strcmp(same, name) == 0 ? step : -1;
}

static bool is_unfinished(const char *name)
{
	return strncmp(name, ".step-", 6) == 0 && smalti_stem(name, PART) > 0;
}

static void remove_in(const char *run, const char *name)
{
	SCOPED(free) char *path = smalti_format(NULL, "%s/%s", run, name);
	if (path)
		smalti_remove_directory(path);
}

/* Calls `visit` for each name in the run's directory; there may be no such directory. */
static int each_name(const char *run, void (*visit)(void *user, const char *run, const char *name),
		     void *user, struct smalti_error *error)
{
	SCOPED(closedir) DIR *entries = opendir(run);
	if (!entries)
		return errno == ENOENT ? 0 : smalti_fail_errno(error, "%s: cannot be read", run);
	for (const struct dirent *entry; (entry = readdir(entries));)
		visit(user, run, entry->d_name);
	return 0;
}

static void note_last(void *user, const char *run, const char *name)
{
	int64_t *last = user;
	*last = smalti_max(*last, step_of(name));
	if (is_unfinished(name))
		remove_in(run, name);
}

/* The numbers of the state as a table. */
#define CONFIG struct smalti_saved
static const struct smalti_field fields[] = {
    {FIELD_INT("step", REQUIRED, state.steps, 0, MOST)},
    {FIELD_INT("updates", REQUIRED, state.updates, 0, MOST)},
    {FIELD_INT("samples", REQUIRED, state.samples, 0, MOST)},
    {FIELD_DOUBLE("loss_scale", REQUIRED, state.scale.scale, 0, HUGE_VAL)},
    {FIELD_INT("good_steps", REQUIRED, state.scale.good, 0, MOST)},
    {FIELD_INT("bad_steps", REQUIRED, state.scale.bad, 0, MOST)},
    {FIELD_INT("epoch", REQUIRED, position.epoch, 0, MOST)},
    {FIELD_INT("rows", REQUIRED, position.rows, 0, MOST)},
    {FIELD_INT("damaged", REQUIRED, position.damaged, 0, MOST)},
    {FIELD_INT("null_tokens", REQUIRED, null_caption.tokens, 1, 1 << 16)},
};

static int read_waiting(const cJSON *state, struct smalti_data_position *position, struct smalti_error *error)
{
	const cJSON *waiting = cJSON_GetObjectItemCaseSensitive(state, "waiting"), *item;
	position->waiting = smalti_calloc(cJSON_GetArraySize(waiting) + 1, sizeof(*position->waiting), error);
	if (!position->waiting)
		return -1;
	cJSON_ArrayForEach (item, waiting) {
		const cJSON *epoch = cJSON_GetArrayItem(item, 0), *index = cJSON_GetArrayItem(item, 1);
		if (!cJSON_IsNumber(epoch) || !cJSON_IsNumber(index) || epoch->valuedouble < 0 ||
		    index->valuedouble < 0 || epoch->valuedouble > MOST || index->valuedouble > MOST)
			return smalti_fail(error, SMALTI_EFORMAT,
					   "\"waiting\": pairs of numbers were expected");
		position->waiting[position->waiting_count++] =
		    (struct smalti_waiting_item){(int64_t)epoch->valuedouble, (int64_t)index->valuedouble};
	}
	return 0;
}

static int parse_state(cJSON *state, struct smalti_saved *saved, struct smalti_error *error)
{
	const cJSON *version = cJSON_GetObjectItemCaseSensitive(state, "version");
	saved->bare = cJSON_IsNumber(version) && version->valuedouble == FIRST_LAYOUT;
	if (smalti_json_check_format(state, STATE_FORMAT, saved->bare ? FIRST_LAYOUT : LAYOUT, "", error) <
		0 ||
	    smalti_fields_read(state, fields, COUNT_OF(fields), saved, error) < 0 ||
	    read_waiting(state, &saved->position, error) < 0)
		return -1;
	saved->identity = cJSON_DetachItemFromObjectCaseSensitive(state, "identity");
	saved->files = cJSON_DetachItemFromObjectCaseSensitive(state, "files");
	if (!cJSON_IsObject(saved->identity) || !cJSON_IsObject(saved->files))
		return smalti_fail(error, SMALTI_EFORMAT, "\"identity\" or \"files\" (objects) are missing");
	return 0;
}

static int read_state(struct smalti_saved *saved, struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_format(error, "%s/state.json", saved->directory);
	SCOPED(cJSON_Delete) cJSON *state = path ? smalti_sealed_read(path, error) : NULL;
	if (!state)
		return -1;
	if (parse_state(state, saved, error) == 0 && saved->state.steps == saved->step)
		return 0;
	smalti_fail(error, SMALTI_ECORRUPT, "it is of step %" PRId64, saved->state.steps);
	smalti_error_prefix(error, "%s", path);
	return -1;
}

/* Adds advice to an error if a checkpoint's files are its cause. */
static int refuse(const struct smalti_error *cause, struct smalti_error *error)
{
	const bool is_damage = cause->code == SMALTI_ECORRUPT || cause->code == SMALTI_EFORMAT ||
			       cause->code == SMALTI_EUNSUPPORTED || cause->code == SMALTI_ENOENT;
	if (!is_damage)
		return smalti_pass(error, cause);
	return smalti_fail(
	    error, SMALTI_ECORRUPT,
	    "%.900s; the checkpoint is damaged: remove its directory to go on from the one before",
	    cause->message);
}

int smalti_saved_read(const char *run, struct smalti_saved *saved, struct smalti_error *error)
{
	int64_t last = -1;
	struct smalti_error cause = SMALTI_NO_ERROR;
	*saved = (struct smalti_saved){0};
	if (each_name(run, note_last, &last, error) < 0)
		return -1;
	if (last < 0)
		return 0;
	saved->step = last;
	saved->directory = smalti_format(error, "%s/step-%" PRId64, run, last);
	if (!saved->directory)
		return -1;
	if (read_state(saved, &cause) == 0)
		return 1;
	return cause.code == SMALTI_EUNSUPPORTED ? smalti_pass(error, &cause) /* of a later version */
						 : refuse(&cause, error);
}

static bool digest_in(const struct smalti_saved *saved, const char *name, uint64_t *digest)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(saved->files, name));
	return text && smalti_hex_parse(text, digest);
}

static int check_whole(const char *directory, const char *name, uint64_t digest, struct smalti_error *error)
{
	uint64_t found;
	SCOPED(free) char *path = smalti_format(error, "%s/%s", directory, name);
	if (!path || smalti_file_digest(path, &found, &(int64_t){0}, error) < 0)
		return -1;
	return found == digest ? 0
			       : smalti_fail(error, SMALTI_ECORRUPT, "%s: it is not as it was written", path);
}

/* Checks the files that are not loaded, as far as the checkpoint has them. */
static int check_others(const struct smalti_saved *saved, const struct names *names,
			struct smalti_error *error)
{
	const char *const others[] = {names->configs[0], names->configs[1], names->copies[0],
				      names->copies[1]};
	for (size_t i = 0; i < COUNT_OF(others); i++) {
		uint64_t digest;
		if (others[i] && digest_in(saved, others[i], &digest) &&
		    check_whole(saved->directory, others[i], digest, error) < 0)
			return -1;
	}
	return 0;
}

static int load(const struct smalti_saved *saved, const struct smalti_trainer *trainer,
		struct smalti_error *error)
{
	struct smalti_parameter null_caption;
	struct tensors tensors[FILES];
	list_tensors(trainer, &null_caption, tensors);
	for (int i = 0; i < FILES; i++) {
		uint64_t digest = 0;
		const char *name = names_of(trainer)->files[i];
		const bool listed = digest_in(saved, name, &digest);
		if (tensors[i].count == 0 || (i == AVERAGES && !listed))
			continue; /* the run had no averages: the caller begins them */
		if (i == NULL_CAPTION && saved->null_caption.values)
			continue; /* another null caption, which the trainer has */
		SCOPED(free) char *path = smalti_format(error, "%s/%s", saved->directory, name);
		if (!path)
			return -1;
		if (!listed)
			return smalti_fail(error, SMALTI_EFORMAT, "%s: state.json has no digest of it", path);
		if (smalti_tiles_read(path, trainer->task_group, tensors[i].list, tensors[i].count, digest,
				      saved->bare, error) < 0)
			return -1;
	}
	return 0;
}

int smalti_saved_load(const struct smalti_saved *saved, struct smalti_trainer *trainer,
		      struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	if (check_others(saved, names_of(trainer), &cause) < 0 || load(saved, trainer, &cause) < 0)
		return refuse(&cause, error);
	trainer->state = saved->state;
	return 0;
}

static int write_text(const char *path, const char *text, struct smalti_error *error)
{
	struct smalti_writer *writer = smalti_writer_open(path, error);
	if (!writer)
		return -1;
	fputs(text, smalti_writer_stream(writer));
	return smalti_writer_commit(writer, error);
}

static void add_digest(cJSON *files, const char *name, uint64_t digest)
{
	char text[SMALTI_HEX_DIGITS + 1];
	smalti_hex_print(digest, text);
	cJSON_AddStringToObject(files, name, text);
}

/* Makes a directory of weights, with its configuration under this name. */
static int make_folder(const char *directory, const char *name, const char *config, cJSON *files,
		       struct smalti_error *error)
{
	const uint64_t digest = XXH3_64bits(config, strlen(config));
	SCOPED(free) char *path = smalti_format(error, "%s/%s", directory, name);
	SCOPED(free) char *folder = path ? smalti_directory_of(path, error) : NULL;
	add_digest(files, name, digest);
	if (!folder || smalti_make_directory(folder, error) < 0 || write_text(path, config, error) < 0)
		return -1;
	return check_whole(directory, name, digest, error);
}

static int make_folders(const char *directory, const struct smalti_saved *saved,
			const struct smalti_trainer *trainer, cJSON *files, struct smalti_error *error)
{
	for (int i = 0; i <= (trainer->averages.count > 0); i++)
		if (make_folder(directory, names_of(trainer)->configs[i], saved->config, files, error) < 0)
			return -1;
	return 0;
}

/* Writes the files of tensors. Without a directory, and after a failure, it only inserts the tasks that the
 * other ranks insert. */
static int write_tensors(const char *directory, struct smalti_trainer *trainer, cJSON *files,
			 struct smalti_error *error)
{
	struct smalti_parameter null_caption;
	struct tensors tensors[FILES];
	int status = 0;
	list_tensors(trainer, &null_caption, tensors);
	for (int i = 0; i < FILES; i++) {
		uint64_t digest = 0;
		const bool writes = directory && status == 0;
		const char *name = names_of(trainer)->files[i];
		if (tensors[i].count == 0)
			continue;
		SCOPED(free)
		char *path = writes ? smalti_format(error, "%s/%s", directory, name) : NULL;
		if ((writes && !path) ||
		    smalti_tiles_write(path, trainer->task_group, tensors[i].list, tensors[i].count, &digest,
				       status < 0 ? NULL : error) < 0)
			status = -1;
		else if (writes)
			add_digest(files, name, digest);
	}
	return status;
}

/* Writes an adapter's weights in diffusers' form, too. */
static int write_copies(const char *directory, const struct smalti_saved *saved,
			const struct smalti_trainer *trainer, cJSON *files, struct smalti_error *error)
{
	const struct names *names = names_of(trainer);
	for (int i = 0; names->copies[0] && i <= (trainer->averages.count > 0); i++) {
		uint64_t digest;
		SCOPED(free) char *from = smalti_format(error, "%s/%s", directory, names->files[i]);
		SCOPED(free) char *to = smalti_format(error, "%s/%s", directory, names->copies[i]);
		if (!from || !to || smalti_adapter_write_diffusers(from, saved->config, to, error) < 0 ||
		    smalti_file_digest(to, &digest, &(int64_t){0}, error) < 0)
			return -1;
		add_digest(files, names->copies[i], digest);
	}
	return 0;
}

static void add_fields(cJSON *object, const struct smalti_saved *values)
{
	for (size_t i = 0; i < COUNT_OF(fields); i++) {
		const char *at = (const char *)values + fields[i].offset;
		double number;
		int64_t integer;
		memcpy(&integer, at, sizeof(integer));
		memcpy(&number, at, sizeof(number));
		cJSON_AddNumberToObject(object, fields[i].key,
					fields[i].kind == SMALTI_FIELD_INT ? (double)integer : number);
	}
}

static int write_state(const char *directory, const struct smalti_saved *saved,
		       const struct smalti_trainer *trainer, const struct smalti_data_position *position,
		       const cJSON *files, struct smalti_error *error)
{
	const struct smalti_saved values = {
	    .null_caption.tokens = trainer->null_tokens, .position = *position, .state = trainer->state};
	SCOPED(free) char *path = smalti_format(error, "%s/state.json", directory);
	SCOPED(cJSON_Delete) cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "format", STATE_FORMAT);
	cJSON_AddNumberToObject(object, "version", LAYOUT);
	add_fields(object, &values);
	cJSON *waiting = cJSON_AddArrayToObject(object, "waiting");
	bool ok = path && waiting;
	for (int64_t i = 0; i < position->waiting_count && ok; i++) {
		const struct smalti_waiting_item *item = &position->waiting[i];
		ok = cJSON_AddItemToArray(
		    waiting,
		    cJSON_CreateDoubleArray((double[]){(double)item->epoch, (double)item->index}, 2));
	}
	ok = ok && cJSON_AddItemToObject(object, "identity", cJSON_Duplicate(saved->identity, true)) &&
	     cJSON_AddItemToObject(object, "files", cJSON_Duplicate(files, true));
	if (!ok)
		return smalti_fail(error, SMALTI_ENOMEM, "%s: no memory for its state.json", directory);
	return smalti_sealed_write(path, object, error);
}

/* Writes a checkpoint under another name. */
static int write_part(const char *part, const struct smalti_saved *saved, struct smalti_trainer *trainer,
		      const struct smalti_data_position *position, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *files = cJSON_CreateObject();
	smalti_remove_directory(part);
	const bool made =
	    smalti_make_directory(part, error) == 0 && make_folders(part, saved, trainer, files, error) == 0;
	if (write_tensors(made ? part : NULL, trainer, files, made ? error : NULL) < 0 || !made ||
	    write_copies(part, saved, trainer, files, error) < 0)
		return -1;
	return write_state(part, saved, trainer, position, files, error);
}

struct older {
	int64_t below, found; /* found: the largest step that is less; -1: there is none */
};

static void note_older(void *user, const char *run, const char *name)
{
	(void)run;
	struct older *older = user;
	const int64_t step = step_of(name);
	if (step >= 0 && step < older->below)
		older->found = smalti_max(older->found, step);
}

/* Removes a checkpoint: first its name, then its files. */
static void remove_checkpoint(const char *run, int64_t step)
{
	SCOPED(free) char *path = smalti_format(NULL, "%s/step-%" PRId64, run, step);
	SCOPED(free) char *part = smalti_format(NULL, "%s/.step-%" PRId64 "%s", run, step, PART);
	if (path && part && rename(path, part) == 0)
		smalti_remove_directory(part);
}

static int remove_older(const char *run, int64_t step, int64_t keep, struct smalti_error *error)
{
	struct older older = {.below = step};
	for (int64_t kept = 1;; kept++) {
		older.found = -1;
		if (each_name(run, note_older, &older, error) < 0)
			return -1;
		if (older.found < 0)
			return 0;
		older.below = older.found;
		if (kept >= keep)
			remove_checkpoint(run, older.found);
	}
}

int smalti_saved_follow(struct smalti_trainer *trainer, struct smalti_error *error)
{
	return write_tensors(NULL, trainer, NULL, error);
}

int smalti_saved_write(const char *run, const struct smalti_saved *saved, struct smalti_trainer *trainer,
		       const struct smalti_data_position *position, int64_t keep, struct smalti_error *error)
{
	const int64_t step = trainer->state.steps;
	SCOPED(free) char *path = smalti_format(error, "%s/step-%" PRId64, run, step);
	SCOPED(free) char *part = smalti_format(error, "%s/.step-%" PRId64 "%s", run, step, PART);
	if (!path || !part)
		return -1;
	if (write_part(part, saved, trainer, position, error) < 0) {
		smalti_remove_directory(part);
		return -1;
	}
	if (rename(part, path) < 0) {
		smalti_fail_errno(error, "%s: cannot be put in place", path);
		smalti_remove_directory(part);
		return -1;
	}
	if (smalti_sync_directory(run, error) < 0)
		return -1;
	return keep > 0 ? remove_older(run, step, keep, error) : 0;
}
