/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <cjson/cJSON.h>

SCOPED_RELEASE(cJSON *, cJSON_Delete)

enum { SMALTI_JSON_DEPTH = 64 };

/* Parses exactly one JSON value of `length` bytes (no terminator needed). Stricter than cJSON: UTF-8, nesting
 * of at most SMALTI_JSON_DEPTH, no key twice in an object, no NUL inside a string, nothing after the value.
 * Less strict in one point, since Python wrote the files: Infinity and -Infinity are numbers, NaN is a null.
 * Free with cJSON_Delete(). NULL with SMALTI_EFORMAT. */
cJSON *smalti_json_parse(const char *text, size_t length, struct smalti_error *error);

/* Parses data in which a string may hold NULs; each becomes U+FFFD. */
cJSON *smalti_json_parse_data(const char *text, size_t length, struct smalti_error *error);

/* Return what cJSON would lose of a value: the text of a number of 2^53 or more, or −2^53 or less (else
 * NULL); whether a null is a NaN; whether a string of data holds a NUL. @{ */
const char *smalti_json_long_number(const cJSON *item);
bool smalti_json_is_nan(const cJSON *item);
bool smalti_json_holds_nul(const cJSON *item);
/* @} */

/* Parses a file of at most `limit` bytes; messages begin with its path. */
cJSON *smalti_json_read(const char *path, size_t limit, struct smalti_error *error);

/* Writes the value to a file that appears complete or not at all (base/file.h). */
int smalti_json_write(const char *path, const cJSON *value, struct smalti_error *error);
/* Does as smalti_json_write() without waiting for the disk: after a loss of power the file may be torn. */
int smalti_json_place(const char *path, const cJSON *value, struct smalti_error *error);

/* Adds text of any bytes; those that are not UTF-8 become '?'. False without memory. */
bool smalti_json_add_text(cJSON *object, const char *key, const char *text);

/* Moves the object's value of the key, if it has one, to *value, in the place of what was there. */
bool smalti_json_take(cJSON **value, const char *key, cJSON *object);

/* Returns the number object[key], or NAN for anything else. NULL is allowed. */
double smalti_json_number(const cJSON *object, const char *key);

/* Whether a key must be there. If it may be absent (or null), the caller's variable keeps its value then:
 * store the default there first. */
enum smalti_json_need {
	SMALTI_JSON_REQUIRED, /* present, not null */
	SMALTI_JSON_OPTIONAL, /* may be absent, but not null */
	SMALTI_JSON_NULLABLE, /* may be absent or null, but not NaN */
};

/* Read object[key]: 0, or -1 with a message that names the key, what was expected and what was found
 * (SMALTI_EFORMAT). Strings belong to the document. Integers are within ±(2^53 - 1). */
int smalti_json_int(const cJSON *object, const char *key, enum smalti_json_need need, int64_t min,
		    int64_t max, int64_t *value, struct smalti_error *error);
int smalti_json_double(const cJSON *object, const char *key, enum smalti_json_need need, double min,
		       double max, double *value, struct smalti_error *error);
int smalti_json_bool(const cJSON *object, const char *key, enum smalti_json_need need, bool *value,
		     struct smalti_error *error);
int smalti_json_string(const cJSON *object, const char *key, enum smalti_json_need need, const char **value,
		       struct smalti_error *error);
/* Read arrays of 1 to `capacity` items. */
int smalti_json_ints(const cJSON *object, const char *key, enum smalti_json_need need, int64_t min,
		     int64_t max, int capacity, int64_t *values, int *count, struct smalti_error *error);
int smalti_json_strings(const cJSON *object, const char *key, enum smalti_json_need need, int capacity,
			const char **values, int *count, struct smalti_error *error);
/* Reads a string as an index into the NULL-terminated `names`; any other string is SMALTI_EUNSUPPORTED. */
int smalti_json_choice(const cJSON *object, const char *key, enum smalti_json_need need,
		       const char *const *names, int *value, struct smalti_error *error);

/* Checks that "format" and "version" are these (SMALTI_EUNSUPPORTED: others; `remedy` ends the message). */
int smalti_json_check_format(const cJSON *object, const char *format, int64_t version, const char *remedy,
			     struct smalti_error *error);

/* Describes a value for a message: `3`, `"relu"`, `an array`. */
const char *smalti_json_describe(const cJSON *item, char text[64]);

/* Calls `each` with the values of a file of JSON Lines; it may take one, and returns 1 to end the reading.
 * Skips and counts lines that are too long or not JSON, and those for which `each` returns -1 with no error
 * or one of input (smalti_is_of_input). */
int smalti_json_lines(int file, int (*each)(void *user, cJSON **line, struct smalti_error *error), void *user,
		      int64_t *unreadable, struct smalti_error *error);
