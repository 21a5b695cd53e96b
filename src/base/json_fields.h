/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/* A JSON object as a table: one row per key says what it may hold and where it is stored. */
enum smalti_field_kind {
	SMALTI_FIELD_INT,    /* int64_t, min … max */
	SMALTI_FIELD_DOUBLE, /* double, min … max */
	SMALTI_FIELD_BOOL,   /* bool */
	SMALTI_FIELD_TEXT,   /* char *, a copy for free() */
	SMALTI_FIELD_CHOICE, /* an int-sized enum: the index into names */
	SMALTI_FIELD_FALSE,  /* not kept; only false is supported */
	SMALTI_FIELD_NULL,   /* not kept; only null is supported */
};

enum { SMALTI_FIELD_NOT_KEPT = -1 };

struct smalti_field {
	const char *key;
	enum smalti_field_kind kind;
	enum smalti_json_need need;
	int offset; /* into the struct, or SMALTI_FIELD_NOT_KEPT: checked only */
	double min, max;
	const char *const *names; /* NULL-terminated */
};

/* Make rows, each in braces. The file that uses them defines CONFIG as its struct; `need` is REQUIRED,
 * OPTIONAL or NULLABLE. */
#define FIELD_KEPT(key, kind, need, member, ...)                                                             \
	key, SMALTI_FIELD_##kind, SMALTI_JSON_##need, offsetof(CONFIG, member), __VA_ARGS__
#define FIELD_INT(key, need, member, min, max)    FIELD_KEPT(key, INT, need, member, min, max, NULL)
#define FIELD_DOUBLE(key, need, member, min, max) FIELD_KEPT(key, DOUBLE, need, member, min, max, NULL)
#define FIELD_BOOL(key, need, member)             FIELD_KEPT(key, BOOL, need, member, 0, 0, NULL)
#define FIELD_TEXT(key, need, member)             FIELD_KEPT(key, TEXT, need, member, 0, 0, NULL)
#define FIELD_CHOICE(key, need, member, names)    FIELD_KEPT(key, CHOICE, need, member, 0, 0, names)
/* Makes a row that is only checked. */
#define FIELD_CHECKED(key, kind, need, ...)                                                                  \
	key, SMALTI_FIELD_##kind, SMALTI_JSON_##need, SMALTI_FIELD_NOT_KEPT, __VA_ARGS__
#define FIELD_ONLY_INT(key, min, max) FIELD_CHECKED(key, INT, OPTIONAL, min, max, NULL)
#define FIELD_ONLY(key, need, names)  FIELD_CHECKED(key, CHOICE, need, 0, 0, names)
#define FIELD_FALSE(key)              FIELD_CHECKED(key, FALSE, NULLABLE, 0, 0, NULL)
#define FIELD_NULL(key)               FIELD_CHECKED(key, NULL, NULLABLE, 0, 0, NULL)

/* Fills `config`, which holds the defaults. */
int smalti_fields_read(const cJSON *file, const struct smalti_field *fields, size_t count, void *config,
		       struct smalti_error *error);

/* Reads the JSON object in the file at `path`. */
cJSON *smalti_config_open(const char *path, struct smalti_error *error);
/* Frees the object; puts the path before the message of a failed status; returns the status. */
int smalti_config_close(cJSON *file, const char *path, int status, struct smalti_error *error);
/* Defines NAME_read(), which reads CONFIG from a file as NAME_parse() does from an object. */
#define CONFIG_READER(name)                                                                                  \
	int name##_read(const char *path, CONFIG *config, struct smalti_error *error)                        \
	{                                                                                                    \
		cJSON *file = smalti_config_open(path, error);                                               \
		return smalti_config_close(file, path, file ? name##_parse(file, config, error) : -1,        \
					   error);                                                           \
	}
