/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_BASE_JSON_FIELDS_H
#define SMALTI_BASE_JSON_FIELDS_H

#include "base/json.h"

/* A JSON object as a table: one row per key says what it may hold and where it goes. */
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

/* Rows. The file that uses them defines CONFIG as its struct; `need` is REQUIRED, OPTIONAL or NULLABLE. */
#define FIELD_INT(key, need, member, min, max)                                                               \
	{                                                                                                    \
		key, SMALTI_FIELD_INT, SMALTI_JSON_##need, offsetof(CONFIG, member), min, max, NULL          \
	}
#define FIELD_DOUBLE(key, need, member, min, max)                                                            \
	{                                                                                                    \
		key, SMALTI_FIELD_DOUBLE, SMALTI_JSON_##need, offsetof(CONFIG, member), min, max, NULL       \
	}
#define FIELD_BOOL(key, need, member)                                                                        \
	{                                                                                                    \
		key, SMALTI_FIELD_BOOL, SMALTI_JSON_##need, offsetof(CONFIG, member), 0, 0, NULL             \
	}
#define FIELD_TEXT(key, need, member)                                                                        \
	{                                                                                                    \
		key, SMALTI_FIELD_TEXT, SMALTI_JSON_##need, offsetof(CONFIG, member), 0, 0, NULL             \
	}
#define FIELD_CHOICE(key, need, member, names)                                                               \
	{                                                                                                    \
		key, SMALTI_FIELD_CHOICE, SMALTI_JSON_##need, offsetof(CONFIG, member), 0, 0, names          \
	}
/* What is checked, not kept. */
#define FIELD_ONLY_INT(key, min, max)                                                                        \
	{                                                                                                    \
		key, SMALTI_FIELD_INT, SMALTI_JSON_OPTIONAL, SMALTI_FIELD_NOT_KEPT, min, max, NULL           \
	}
#define FIELD_ONLY(key, need, names)                                                                         \
	{                                                                                                    \
		key, SMALTI_FIELD_CHOICE, SMALTI_JSON_##need, SMALTI_FIELD_NOT_KEPT, 0, 0, names             \
	}
#define FIELD_FALSE(key)                                                                                     \
	{                                                                                                    \
		key, SMALTI_FIELD_FALSE, SMALTI_JSON_NULLABLE, SMALTI_FIELD_NOT_KEPT, 0, 0, NULL             \
	}
#define FIELD_NULL(key)                                                                                      \
	{                                                                                                    \
		key, SMALTI_FIELD_NULL, SMALTI_JSON_NULLABLE, SMALTI_FIELD_NOT_KEPT, 0, 0, NULL              \
	}

/* Fills `config`, where the defaults stand already. */
int smalti_fields_read(const cJSON *file, const struct smalti_field *fields, size_t count, void *config,
		       struct smalti_error *error);

/* The JSON object in the file at `path`. */
cJSON *smalti_config_open(const char *path, struct smalti_error *error);
/* Frees it, puts the path before the message of a failed status; returns the status. */
int smalti_config_close(cJSON *file, const char *path, int status, struct smalti_error *error);

#endif
