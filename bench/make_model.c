/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/make_model.h"

#include "base/base.h"
#include "base/file.h"
#include "bench/weights.h"
#include "checkpoint/pipeline_directory.h"
#include "smalti/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct job {
	const struct smalti_make_model_options *options;
	char *staging; /* the directory where everything is made */
	cJSON *config[SMALTI_COMPONENTS];
	struct smalti_inventory inventory[SMALTI_COMPONENTS];
	int64_t done, total;
};

/* The possible entries of a model's directory; the one that makes it a model comes last. */
static const char *const entries[] = {"text_encoder", "transformer", "vae",
				      "tokenizer",    "scheduler",   "model_index.json"};
enum { ENTRIES = sizeof(entries) / sizeof(entries[0]) };

static bool is_there(const char *path)
{
	struct stat info;
	return lstat(path, &info) == 0;
}

static int check_free(const char *directory, struct smalti_error *error)
{
	for (int i = 0; i < ENTRIES; i++) {
		SCOPED(free) char *path = smalti_format(error, "%s/%s", directory, entries[i]);
		if (!path)
			return -1;
		if (is_there(path))
			return smalti_fail(error, SMALTI_EINVAL,
					   "%s: is there already; name a directory without a model", path);
	}
	return 0;
}

/* Planning */

static int plan(struct job *job, struct smalti_error *error)
{
	const struct smalti_make_model_options *o = job->options;
	for (int c = 0; c < SMALTI_COMPONENTS; c++) {
		if (!o->with[c])
			continue;
		job->config[c] = smalti_geometry_config(o->geometry, c, o->t5_layers, o->dtype, error);
		if (!job->config[c] ||
		    smalti_component_inventory(c, job->config[c], o->dtype, &job->inventory[c], error))
			return -1;
		for (int i = 0; i < job->inventory[c].count; i++)
			job->total += job->inventory[c].tensors[i].bytes;
	}
	return 0;
}

/* Writing */

static int moved(void *user, int64_t bytes)
{
	struct job *job = user;
	job->done += bytes;
	return job->options->progress ? job->options->progress(job->options->user, job->done, job->total) : 0;
}

/* Makes staging/NAME and returns its path. */
static char *make_part(const struct job *job, const char *name, struct smalti_error *error)
{
	char *path = smalti_format(error, "%s/%s", job->staging, name);
	if (path && smalti_make_directory(path, error)) {
		free(path);
		return NULL;
	}
	return path;
}

static int write_json(const char *directory, const char *name, const cJSON *value, struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_format(error, "%s/%s", directory, name);
	return path ? smalti_json_write(path, value, error) : -1;
}

static int write_component(struct job *job, enum smalti_component c, struct smalti_error *error)
{
	const struct smalti_component_names *names = &smalti_component_names[c];
	const struct smalti_advance advance = {moved, job};
	SCOPED(free) char *directory = make_part(job, names->directory, error);
	if (!directory || write_json(directory, "config.json", job->config[c], error) < 0)
		return -1;
	return smalti_weights_write(directory, names->stem, &job->inventory[c], job->options->shard_bytes,
				    job->options->hollow ? NULL : &advance, error);
}

/* Copies files of the embedded model; `names` ends with NULL. */
static int copy_part(const struct job *job, const char *part, const char *const *names,
		     struct smalti_error *error)
{
	const char *model = smalti_embedded_model(error);
	SCOPED(free) char *directory = model ? make_part(job, part, error) : NULL;
	for (int i = 0; directory && names[i]; i++) {
		SCOPED(free) char *from = smalti_format(error, "%s/%s/%s", model, part, names[i]);
		SCOPED(free) char *to = smalti_format(error, "%s/%s", directory, names[i]);
		if (!from || !to || smalti_pipeline_copy(from, to, error) < 0)
			return -1;
	}
	return directory ? 0 : -1;
}

/* Adds "NAME": ["LIBRARY", "KIND"], or nulls for an absent component. */
static bool add_entry(cJSON *index, const char *name, bool with, const char *library, const char *kind)
{
	cJSON *pair = cJSON_AddArrayToObject(index, name);
	return pair && cJSON_AddItemToArray(pair, with ? cJSON_CreateString(library) : cJSON_CreateNull()) &&
	       cJSON_AddItemToArray(pair, with ? cJSON_CreateString(kind) : cJSON_CreateNull());
}

static int write_model_index(const struct job *job, struct smalti_error *error)
{
	const struct smalti_make_model_options *o = job->options;
	cJSON *index = cJSON_CreateObject();
	bool ok = cJSON_AddStringToObject(index, "_class_name", smalti_geometry_pipeline(o->geometry)) &&
		  cJSON_AddStringToObject(index, "_diffusers_version", "0.27.0") &&
		  add_entry(index, "scheduler", true, "diffusers", "DPMSolverMultistepScheduler") &&
		  add_entry(index, "tokenizer", o->with[SMALTI_TEXT_ENCODER], "transformers", "T5Tokenizer");
	for (int c = 0; c < SMALTI_COMPONENTS; c++) {
		const struct smalti_component_names *names = &smalti_component_names[c];
		ok = ok && add_entry(index, names->directory, o->with[c], names->library, names->kind);
	}
	int status = ok ? write_json(job->staging, "model_index.json", index, error)
			: smalti_fail(error, SMALTI_ENOMEM, "out of memory for a configuration");
	cJSON_Delete(index);
	return status;
}

static int write_all(struct job *job, struct smalti_error *error)
{
	static const char *const scheduler[] = {"scheduler_config.json", NULL};
	static const char *const tokenizer[] = {"spiece.model", "tokenizer_config.json",
						"special_tokens_map.json", NULL};
	if (copy_part(job, "scheduler", scheduler, error) ||
	    (job->options->with[SMALTI_TEXT_ENCODER] && copy_part(job, "tokenizer", tokenizer, error)))
		return -1;
	for (int c = 0; c < SMALTI_COMPONENTS; c++)
		if (job->options->with[c] && write_component(job, c, error))
			return -1;
	return write_model_index(job, error);
}

/* Putting in place */

/* Moves entries[i] between the directory and staging, if it is there. */
static int move_entry(const char *from_directory, const char *to_directory, int i, struct smalti_error *error)
{
	SCOPED(free) char *from = smalti_format(error, "%s/%s", from_directory, entries[i]);
	SCOPED(free) char *to = smalti_format(error, "%s/%s", to_directory, entries[i]);
	if (!from || !to)
		return -1;
	return is_there(from) && rename(from, to) ? smalti_fail_errno(error, "%s: cannot be put in place", to)
						  : 0;
}

static int put_in_place(const struct job *job, struct smalti_error *error)
{
	const char *directory = job->options->directory;
	for (int i = 0; i < ENTRIES; i++) {
		if (!move_entry(job->staging, directory, i, error))
			continue;
		while (i-- > 0)
			move_entry(directory, job->staging, i, error);
		return -1;
	}
	return 0;
}

static int make_in(struct job *job, struct smalti_error *error)
{
	job->staging = smalti_format(error, "%s/.make-model.XXXXXX", job->options->directory);
	if (!job->staging)
		return -1;
	if (!mkdtemp(job->staging))
		return smalti_fail_errno(error, "%s: no directory can be made in it",
					 job->options->directory);
	int status = write_all(job, error) || put_in_place(job, error) ? -1 : 0;
	smalti_remove_directory(job->staging);
	return status;
}

static int make(struct job *job, struct smalti_error *error)
{
	const char *directory = job->options->directory;
	const bool there = is_there(directory);
	if (check_free(directory, error) || plan(job, error) || smalti_make_directory(directory, error))
		return -1;
	int status = make_in(job, error);
	if (status && !there)
		rmdir(directory);
	return status;
}

int smalti_make_model(const struct smalti_make_model_options *options, struct smalti_error *error)
{
	struct job job = {.options = options};
	int status = make(&job, error);
	for (int c = 0; c < SMALTI_COMPONENTS; c++) {
		smalti_inventory_free(&job.inventory[c]);
		cJSON_Delete(job.config[c]);
	}
	free(job.staging);
	return status;
}
