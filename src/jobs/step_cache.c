/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/step_cache.h"
#include "base/file.h"
#include "base/parse.h"

#include <math.h>
#include <xxhash.h>

/* A bound is the largest error that a calibration saw times this (docs/step-cache.md). */
#define FACTOR 1.5

enum { MOST_TABLES = 10000 };

static const struct {
	const char *name;
	enum smalti_step_cache_kind kind;
} kinds[] = {{"first-block:", SMALTI_STEP_CACHE_FIRST_BLOCK}, {"bound:", SMALTI_STEP_CACHE_BOUND}};

int smalti_step_cache_parse(const char *text, struct smalti_step_cache_rule *rule, struct smalti_error *error)
{
	*rule = (struct smalti_step_cache_rule){.kind = SMALTI_STEP_CACHE_NONE, .factor = FACTOR};
	if (text && strcmp(text, "calibration") == 0)
		rule->kind = SMALTI_STEP_CACHE_CALIBRATION;
	for (size_t i = 0; text && i < COUNT_OF(kinds); i++) {
		const size_t length = strlen(kinds[i].name);
		if (strncmp(text, kinds[i].name, length) == 0 &&
		    smalti_parse_double(text + length, 0, 1000, &rule->threshold, NULL) == 0)
			rule->kind = kinds[i].kind;
	}
	if (!text || rule->kind)
		return 0;
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "step cache: expected bound:X or first-block:X, with X from 0 to 1000, found %.99s", text);
}

/* Files: {"tables": [{"model", "precision", "scheduler", "guidance_scale", "timesteps": [...], "images",
 * "ratios": [[...],
 * ...]}, ...], "xxh3"} */

static bool has_number(const cJSON *item, double value)
{
	return cJSON_IsNumber(item) && item->valuedouble == value;
}

static bool has_text(const cJSON *table, const char *key, const char *text)
{
	const char *found = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(table, key));
	return found && strcmp(found, text ? text : "") == 0;
}

/* Timesteps are the model's input, in f32. */
static bool has_timesteps(const cJSON *list, const struct smalti_sampler *sampler)
{
	int64_t i = 0;
	const cJSON *item;
	cJSON_ArrayForEach (item, list)
		if (i == sampler->steps || !has_number(item, (double)(float)sampler->step[i++].timestep))
			return false;
	return i == sampler->steps;
}

static bool is_of(const cJSON *table, const struct smalti_step_cache_key *key)
{
	return has_text(table, "model", key->model) && has_text(table, "precision", key->precision) &&
	       has_text(table, "scheduler", key->scheduler) &&
	       has_number(cJSON_GetObjectItemCaseSensitive(table, "guidance_scale"), key->guidance) &&
	       has_timesteps(cJSON_GetObjectItemCaseSensitive(table, "timesteps"), key->sampler);
}

static cJSON *find(cJSON *tables, const struct smalti_step_cache_key *key)
{
	cJSON *table;
	cJSON_ArrayForEach (table, tables)
		if (is_of(table, key))
			return table;
	return NULL;
}

/* Returns the list of tables; NULL with an error. */
static cJSON *list_of(cJSON *file, const char *path, struct smalti_error *error)
{
	cJSON *tables = cJSON_GetObjectItemCaseSensitive(file, "tables");
	if (cJSON_IsArray(tables) && cJSON_GetArraySize(tables) <= MOST_TABLES)
		return tables;
	smalti_fail(error, SMALTI_EFORMAT, "%s: \"tables\" should be a list of at most %d tables", path,
		    MOST_TABLES);
	return NULL;
}

static int read_ratios(const cJSON *list, struct smalti_step_cache_table *table, struct smalti_error *error)
{
	int64_t step = 0;
	const cJSON *row, *item;
	cJSON_ArrayForEach (row, list) {
		int g = 0;
		if (step == table->steps)
			break;
		cJSON_ArrayForEach (item, row) {
			if (g == SMALTI_STEP_GAPS || !cJSON_IsNumber(item) ||
			    !(item->valuedouble >= 0 && item->valuedouble <= 1e30))
				return smalti_fail(error, SMALTI_EFORMAT,
						   "\"ratios\": row %lld should have %d numbers of 0 or more",
						   (long long)step, SMALTI_STEP_GAPS);
			table->ratios[step][g++] = item->valuedouble;
		}
		step++;
	}
	return step == table->steps && !row
		   ? 0
		   : smalti_fail(error, SMALTI_EFORMAT, "\"ratios\" should have a row for each of %lld steps",
				 (long long)table->steps);
}

static struct smalti_step_cache_table *make_table(const cJSON *found, int64_t steps,
						  struct smalti_error *error)
{
	struct smalti_step_cache_table *table = NULL;
	table = smalti_calloc(1, (int64_t)sizeof(*table) + steps * (int64_t)sizeof(table->ratios[0]), error);
	if (!table)
		return NULL;
	table->steps = steps;
	if (read_ratios(cJSON_GetObjectItemCaseSensitive(found, "ratios"), table, error) < 0) {
		free(table);
		return NULL;
	}
	smalti_hex_print(XXH3_64bits(table->ratios, (size_t)steps * sizeof(table->ratios[0])), table->digest);
	return table;
}

struct smalti_step_cache_table *smalti_step_cache_table_read(const char *path,
							     const struct smalti_step_cache_key *key,
							     struct smalti_error *error)
{
	const int there = smalti_find_file(path, error);
	if (there == 0)
		smalti_fail(
		    error, SMALTI_EIO,
		    "%s: is not there; it has the tables of bounds: measure one with smalti step-cache",
		    path);
	SCOPED(cJSON_Delete) cJSON *file = there > 0 ? smalti_sealed_read(path, error) : NULL;
	cJSON *tables = file ? list_of(file, path, error) : NULL;
	if (!tables)
		return NULL;
	const cJSON *found = find(tables, key);
	if (!found) {
		smalti_fail(
		    error, SMALTI_EINVAL,
		    "%s: none of its %d tables is of this model in %s with the scheduler \"%s\", %lld "
		    "steps and a guidance scale of %g; measure one with smalti step-cache",
		    path, cJSON_GetArraySize(tables), key->precision, key->scheduler ? key->scheduler : "",
		    (long long)key->sampler->steps, key->guidance);
		return NULL;
	}
	struct smalti_step_cache_table *table = make_table(found, key->sampler->steps, error);
	if (!table)
		smalti_error_prefix(error, "%s", path);
	return table;
}

/* Adds a list of numbers; those that are no numbers become 0. */
static bool add_numbers(cJSON *list, const double *values, int64_t count)
{
	bool ok = list;
	for (int64_t i = 0; ok && i < count; i++)
		ok = cJSON_AddItemToArray(list, cJSON_CreateNumber(isfinite(values[i]) ? values[i] : 0));
	return ok;
}

static bool fill(cJSON *table, const struct smalti_step_cache_key *key, int64_t images,
		 const smalti_step_ratios *ratios)
{
	bool ok = table && cJSON_AddStringToObject(table, "model", key->model) &&
		  cJSON_AddStringToObject(table, "precision", key->precision) &&
		  cJSON_AddStringToObject(table, "scheduler", key->scheduler ? key->scheduler : "") &&
		  cJSON_AddNumberToObject(table, "guidance_scale", key->guidance);
	cJSON *timesteps = ok ? cJSON_AddArrayToObject(table, "timesteps") : NULL;
	for (int64_t i = 0; timesteps && i < key->sampler->steps; i++) {
		const double timestep = (double)(float)key->sampler->step[i].timestep;
		ok = ok && add_numbers(timesteps, &timestep, 1);
	}
	ok = ok && timesteps && cJSON_AddNumberToObject(table, "images", (double)images);
	cJSON *rows = ok ? cJSON_AddArrayToObject(table, "ratios") : NULL;
	for (int64_t i = 0; rows && i < key->sampler->steps; i++) {
		cJSON *row = cJSON_CreateArray();
		ok = ok && cJSON_AddItemToArray(rows, row) && add_numbers(row, ratios[i], SMALTI_STEP_GAPS);
	}
	return ok && rows;
}

/* Returns the file's object, or a new one if there is no file. */
static cJSON *open_file(const char *path, struct smalti_error *error)
{
	const int there = smalti_find_file(path, error);
	if (there)
		return there > 0 ? smalti_sealed_read(path, error) : NULL;
	cJSON *file = cJSON_CreateObject();
	if (file && cJSON_AddArrayToObject(file, "tables"))
		return file;
	cJSON_Delete(file);
	smalti_fail(error, SMALTI_ENOMEM, "no memory for a table");
	return NULL;
}

int smalti_step_cache_table_write(const char *path, const struct smalti_step_cache_key *key, int64_t images,
				  const smalti_step_ratios *ratios, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *file = open_file(path, error);
	cJSON *tables = file ? list_of(file, path, error) : NULL;
	if (!tables)
		return -1;
	cJSON_Delete(cJSON_DetachItemViaPointer(tables, find(tables, key)));
	cJSON_DeleteItemFromObjectCaseSensitive(file, "xxh3");
	cJSON *table = cJSON_CreateObject();
	if (!fill(table, key, images, ratios) || !cJSON_AddItemToArray(tables, table)) {
		cJSON_Delete(table);
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a table");
	}
	return smalti_sealed_write(path, file, error);
}
