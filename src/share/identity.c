/* SPDX-License-Identifier: Apache-2.0 */
#include "share/identity.h"

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
