/* SPDX-License-Identifier: Apache-2.0 */
#include "share/identity.h"
#include "base/sealed.h"

#include <time.h>

/* The place of a difference: keys from the outermost on. */
struct place {
	const struct smalti_identity_rules *rules;
	char key[256];
	const cJSON *old, *new; /* NULL: it is not there */
};

static bool differs(const cJSON *old, const cJSON *new, struct place *place);

static bool member_differs(const cJSON *old, const cJSON *new, const char *name, struct place *place)
{
	const size_t length = strlen(place->key);
	snprintf(place->key + length, sizeof(place->key) - length, "%s%s", length ? "." : "", name);
	if (differs(old, new, place))
		return true;
	place->key[length] = '\0';
	return false;
}

static bool objects_differ(const cJSON *old, const cJSON *new, struct place *place)
{
	const cJSON *item;
	cJSON_ArrayForEach (item, old)
		if (member_differs(item, cJSON_GetObjectItemCaseSensitive(new, item->string), item->string,
				   place))
			return true;
	cJSON_ArrayForEach (item, new)
		if (!cJSON_GetObjectItemCaseSensitive(old, item->string) &&
		    member_differs(NULL, item, item->string, place))
			return true;
	return false;
}

static bool differs(const cJSON *old, const cJSON *new, struct place *place)
{
	if (cJSON_IsObject(old) && cJSON_IsObject(new))
		return objects_differ(old, new, place);
	if (old && new &&cJSON_Compare(old, new, true))
		return false;
	if (place->rules->accepts && place->rules->accepts(place->rules->user, place->key))
		return false;
	place->old = old;
	place->new = new;
	return true;
}

static void print_value(const cJSON *item, char text[128])
{
	SCOPED(free) char *whole = item ? cJSON_PrintUnformatted(item) : NULL;
	snprintf(text, 128, "%.120s", whole ? whole : "nothing");
}

static const char *remedy_of(const char *key, const struct smalti_identity_remedy *remedies)
{
	for (; remedies && remedies->key; remedies++) {
		const size_t length = strlen(remedies->key);
		if (strncmp(key, remedies->key, length) == 0 && (key[length] == '\0' || key[length] == '.'))
			return remedies->remedy;
	}
	return NULL;
}

int smalti_identity_compare(const char *directory, const cJSON *old, const cJSON *new,
			    const struct smalti_identity_rules *rules, struct smalti_error *error)
{
	struct place place = {.rules = rules, .key = ""};
	if (!differs(old, new, &place))
		return 0;
	char was[128], is[128];
	print_value(place.old, was);
	print_value(place.new, is);
	const char *what = remedy_of(place.key, rules->remedies);
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "%s: was made with %s = %s, now it is %s: give %s as it was, or name another directory",
	    directory, place.key, was, is, what ? what : "that");
}

int smalti_identity_write(const char *path, const struct smalti_identity_format *format,
			  const cJSON *identity, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *object = cJSON_CreateObject();
	if (cJSON_AddStringToObject(object, "format", format->format) &&
	    cJSON_AddNumberToObject(object, "version", format->version) &&
	    cJSON_AddNumberToObject(object, "created", (double)time(NULL)) &&
	    cJSON_AddItemToObject(object, "identity", cJSON_Duplicate(identity, true)))
		return smalti_sealed_write(path, object, error);
	return smalti_fail(error, SMALTI_ENOMEM, "%s: out of memory for the text", path);
}

static int check(cJSON *object, const struct smalti_identity_format *wanted, struct smalti_error *error)
{
	const char *format;
	int64_t version;
	if (smalti_json_string(object, "format", SMALTI_JSON_REQUIRED, &format, error) ||
	    smalti_json_int(object, "version", SMALTI_JSON_REQUIRED, 0, INT64_MAX, &version, error))
		return -1;
	if (strcmp(format, wanted->format) != 0)
		return smalti_fail(error, SMALTI_EFORMAT, "\"format\" is \"%.60s\", \"%s\" was expected",
				   format, wanted->format);
	if (version != wanted->version)
		return smalti_fail(
		    error, SMALTI_EUNSUPPORTED, "\"version\" is %lld, this program knows %d alone: %s",
		    (long long)version, wanted->version,
		    version < wanted->version ? wanted->older : "use the newer smalti that made it");
	if (!cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(object, "identity")))
		return smalti_fail(error, SMALTI_EFORMAT, "the key \"identity\" (an object) is missing");
	return 0;
}

cJSON *smalti_identity_read(const char *path, const struct smalti_identity_format *format,
			    struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *object = smalti_sealed_read(path, error);
	if (!object)
		return NULL;
	if (check(object, format, error)) {
		smalti_error_prefix(error, "%s", path);
		return NULL;
	}
	return cJSON_DetachItemFromObjectCaseSensitive(object, "identity");
}
