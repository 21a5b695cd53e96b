/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <math.h>

static const double EXACT = 0x1p53; /* doubles represent integers below it exactly */

const char *smalti_json_describe(const cJSON *item, char text[64])
{
	if (!item)
		return "nothing";
	if (cJSON_IsNull(item))
		return smalti_json_is_nan(item) ? "NaN" : "null";
	if (cJSON_IsBool(item))
		return cJSON_IsTrue(item) ? "true" : "false";
	if (cJSON_IsArray(item))
		return "an array";
	if (cJSON_IsObject(item))
		return "an object";
	const char *number = smalti_json_long_number(item);
	if (smalti_json_holds_nul(item))
		return "a string with a NUL";
	if (cJSON_IsString(item))
		snprintf(text, 64, "\"%.40s\"", item->valuestring);
	else if (number && isfinite(item->valuedouble))
		snprintf(text, 64, "%.40s%s", number, strlen(number) > 40 ? "..." : "");
	else
		snprintf(text, 64, "%.17g", item->valuedouble);
	return text;
}

static int unexpected(const char *key, const cJSON *item, const char *wanted, struct smalti_error *error)
{
	char text[64];
	return smalti_fail(error, SMALTI_EFORMAT, "\"%s\" should be %s, found %s", key, wanted,
			   smalti_json_describe(item, text));
}

/* Finds object[key]. 1: *item has the wanted type; 0: keep the default; -1: it is missing or has another
 * type. */
static int look_up(const cJSON *object, const char *key, enum smalti_json_need need,
		   cJSON_bool (*is)(const cJSON *item), const char *wanted, const cJSON **item,
		   struct smalti_error *error)
{
	*item = cJSON_GetObjectItemCaseSensitive(object, key);
	if (!*item && need == SMALTI_JSON_REQUIRED)
		return smalti_fail(error, SMALTI_EFORMAT, "the key \"%s\" (%s) is missing", key, wanted);
	if (!*item || (cJSON_IsNull(*item) && !smalti_json_is_nan(*item) && need == SMALTI_JSON_NULLABLE))
		return 0;
	return is(*item) && !smalti_json_holds_nul(*item) ? 1 : unexpected(key, *item, wanted, error);
}

static bool read_int(const cJSON *item, int64_t min, int64_t max, int64_t *value)
{
	if (!cJSON_IsNumber(item) || !(fabs(item->valuedouble) < EXACT) ||
	    trunc(item->valuedouble) != item->valuedouble)
		return false;
	int64_t found = (int64_t)item->valuedouble;
	if (found < min || found > max)
		return false;
	*value = found;
	return true;
}

int smalti_json_int(const cJSON *object, const char *key, enum smalti_json_need need, int64_t min,
		    int64_t max, int64_t *value, struct smalti_error *error)
{
	char wanted[96];
	snprintf(wanted, sizeof(wanted), "an integer from %" PRId64 " to %" PRId64, min, max);
	const cJSON *item;
	int found = look_up(object, key, need, cJSON_IsNumber, wanted, &item, error);
	if (found <= 0)
		return found;
	return read_int(item, min, max, value) ? 0 : unexpected(key, item, wanted, error);
}

int smalti_json_double(const cJSON *object, const char *key, enum smalti_json_need need, double min,
		       double max, double *value, struct smalti_error *error)
{
	char wanted[96];
	snprintf(wanted, sizeof(wanted), "a number from %g to %g", min, max);
	const cJSON *item;
	int found = look_up(object, key, need, cJSON_IsNumber, wanted, &item, error);
	if (found <= 0)
		return found;
	if (!(item->valuedouble >= min && item->valuedouble <= max))
		return unexpected(key, item, wanted, error);
	*value = item->valuedouble;
	return 0;
}

int smalti_json_bool(const cJSON *object, const char *key, enum smalti_json_need need, bool *value,
		     struct smalti_error *error)
{
	const cJSON *item;
	int found = look_up(object, key, need, cJSON_IsBool, "true or false", &item, error);
	if (found > 0)
		*value = cJSON_IsTrue(item);
	return found < 0 ? -1 : 0;
}

int smalti_json_string(const cJSON *object, const char *key, enum smalti_json_need need, const char **value,
		       struct smalti_error *error)
{
	const cJSON *item;
	int found = look_up(object, key, need, cJSON_IsString, "a string", &item, error);
	if (found > 0)
		*value = item->valuestring;
	return found < 0 ? -1 : 0;
}

/* Finds the array at key, its length in *count; returns as look_up(). */
static int look_up_array(const cJSON *object, const char *key, enum smalti_json_need need, const char *items,
			 int capacity, const cJSON **array, int *count, struct smalti_error *error)
{
	char wanted[96];
	snprintf(wanted, sizeof(wanted), "an array of 1 to %d %s", capacity, items);
	int found = look_up(object, key, need, cJSON_IsArray, wanted, array, error);
	if (found <= 0)
		return found;
	int length = cJSON_GetArraySize(*array);
	if (length < 1 || length > capacity)
		return smalti_fail(error, SMALTI_EFORMAT, "\"%s\" should be %s, found %d", key, wanted,
				   length);
	*count = length;
	return 1;
}

int smalti_json_ints(const cJSON *object, const char *key, enum smalti_json_need need, int64_t min,
		     int64_t max, int capacity, int64_t *values, int *count, struct smalti_error *error)
{
	char wanted[96];
	snprintf(wanted, sizeof(wanted), "integers from %" PRId64 " to %" PRId64, min, max);
	const cJSON *array, *item;
	int found = look_up_array(object, key, need, wanted, capacity, &array, count, error);
	if (found <= 0)
		return found;
	cJSON_ArrayForEach (item, array) {
		if (!read_int(item, min, max, values++))
			return unexpected(key, item, wanted, error);
	}
	return 0;
}

int smalti_json_strings(const cJSON *object, const char *key, enum smalti_json_need need, int capacity,
			const char **values, int *count, struct smalti_error *error)
{
	const cJSON *array, *item;
	int found = look_up_array(object, key, need, "strings", capacity, &array, count, error);
	if (found <= 0)
		return found;
	cJSON_ArrayForEach (item, array) {
		if (!cJSON_IsString(item))
			return unexpected(key, item, "strings", error);
		*values++ = item->valuestring;
	}
	return 0;
}

int smalti_json_choice(const cJSON *object, const char *key, enum smalti_json_need need,
		       const char *const *names, int *value, struct smalti_error *error)
{
	const char *text = NULL;
	if (smalti_json_string(object, key, need, &text, error))
		return -1;
	if (!text)
		return 0;
	char list[512] = "";
	for (int i = 0; names[i]; i++) {
		if (!strcmp(text, names[i])) {
			*value = i;
			return 0;
		}
		smalti_append(list, sizeof(list), ", ", "\"%s\"", names[i]);
	}
	return smalti_fail(error, SMALTI_EUNSUPPORTED, "\"%s\" is \"%.100s\", only %s can be used", key, text,
			   list);
}

int smalti_json_check_format(const cJSON *object, const char *format, int64_t version, const char *remedy,
			     struct smalti_error *error)
{
	const char *found = "";
	int64_t found_version = 0;
	if (smalti_json_string(object, "format", SMALTI_JSON_REQUIRED, &found, error) < 0 ||
	    smalti_json_int(object, "version", SMALTI_JSON_REQUIRED, 0, INT32_MAX, &found_version, error) < 0)
		return -1;
	if (strcmp(found, format) == 0 && found_version == version)
		return 0;
	return smalti_fail(error, SMALTI_EUNSUPPORTED,
			   "\"%.40s\" of version %" PRId64 ", \"%s\" of version %" PRId64 " was expected%s",
			   found, found_version, format, version, remedy);
}

bool smalti_json_take(cJSON **value, const char *key, cJSON *object)
{
	cJSON *found = cJSON_DetachItemFromObjectCaseSensitive(object, key);
	if (!found)
		return false;
	cJSON_Delete(*value);
	*value = found;
	return true;
}

double smalti_json_number(const cJSON *object, const char *key)
{
	return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, key));
}
