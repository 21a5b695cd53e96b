/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_fields.h"

enum { MAX_CONFIG = 4 << 20 };

static int only(const cJSON *file, const char *key, const char *supported, bool ok,
		struct smalti_error *error)
{
	char found[64];
	if (ok)
		return 0;
	return smalti_fail(error, SMALTI_EUNSUPPORTED, "\"%s\" is %s, only %s can be used", key,
			   smalti_json_describe(cJSON_GetObjectItemCaseSensitive(file, key), found),
			   supported);
}

static int read_text(const cJSON *file, const struct smalti_field *field, char **to,
		     struct smalti_error *error)
{
	const char *text = NULL;
	if (smalti_json_string(file, field->key, field->need, &text, error))
		return -1;
	if (text)
		*to = smalti_format(error, "%s", text);
	return !text || *to ? 0 : -1;
}

static int read_field(const cJSON *file, const struct smalti_field *field, void *config,
		      struct smalti_error *error)
{
	union {
		int64_t integer;
		double number;
		int choice;
	} unkept;
	void *to = field->offset == SMALTI_FIELD_NOT_KEPT ? (void *)&unkept : (char *)config + field->offset;
	bool flag = false;
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(file, field->key);
	switch (field->kind) {
	case SMALTI_FIELD_INT:
		return smalti_json_int(file, field->key, field->need, (int64_t)field->min,
				       (int64_t)field->max, to, error);
	case SMALTI_FIELD_DOUBLE:
		return smalti_json_double(file, field->key, field->need, field->min, field->max, to, error);
	case SMALTI_FIELD_BOOL:
		return smalti_json_bool(file, field->key, field->need, to, error);
	case SMALTI_FIELD_TEXT:
		return read_text(file, field, to, error);
	case SMALTI_FIELD_CHOICE:
		return smalti_json_choice(file, field->key, field->need, field->names, to, error);
	case SMALTI_FIELD_FALSE:
		if (smalti_json_bool(file, field->key, SMALTI_JSON_NULLABLE, &flag, error))
			return -1;
		return only(file, field->key, "false", !flag, error);
	case SMALTI_FIELD_NULL:
		return only(file, field->key, "null", !item || cJSON_IsNull(item), error);
	}
	return 0;
}

int smalti_fields_read(const cJSON *file, const struct smalti_field *fields, size_t count, void *config,
		       struct smalti_error *error)
{
	for (size_t i = 0; i < count; i++)
		if (read_field(file, &fields[i], config, error))
			return -1;
	return 0;
}

cJSON *smalti_config_open(const char *path, struct smalti_error *error)
{
	cJSON *file = smalti_json_read(path, MAX_CONFIG, error);
	if (!file || cJSON_IsObject(file))
		return file;
	smalti_fail(error, SMALTI_EFORMAT, "%s: a JSON object was expected", path);
	cJSON_Delete(file);
	return NULL;
}

int smalti_config_close(cJSON *file, const char *path, int status, struct smalti_error *error)
{
	if (file && status)
		smalti_error_prefix(error, "%s", path);
	cJSON_Delete(file);
	return status;
}
