/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"
#include "dataset/dataset_format.h"
#include "text/utf8.h"

#include <strings.h>

const char *const smalti_dataset_path_names[] = {"path", "image", "file_name", "filename", NULL};
const char *const smalti_dataset_id_names[] = {"id", NULL};
const char *const smalti_dataset_caption_names[SMALTI_CAPTION_NAME_COUNT] = {"txt", "prompt", "caption",
									     "text"};
const char *const smalti_dataset_unread_extensions[] = {".tif",  ".tiff", ".gif", ".bmp", ".avif", ".heic",
							".heif", ".jxl",  ".jp2", ".psd", ".svg",  NULL};

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD, which stands for what was not UTF-8 */

/* An object and whether something in it had to be replaced. */
struct object {
	const cJSON *json;
	bool mended;
};

static const cJSON *find(const cJSON *object, const char *const *names, const char **name)
{
	const cJSON *item = NULL;
	for (*name = *names; *names && (!item || cJSON_IsNull(item)); names++) {
		*name = *names;
		item = cJSON_GetObjectItemCaseSensitive(object, *names);
	}
	return item && !cJSON_IsNull(item) ? item : NULL;
}

/* Reads the first of the names that is there and not null. */
static void read_text(const struct object *object, const char *const *names, struct smalti_caption_text *text,
		      char problem[256])
{
	const char *name;
	char found[64];
	const cJSON *item = find(object->json, names, &name);
	if (!item)
		return;
	const bool string = cJSON_IsString(item) && !smalti_json_holds_nul(item);
	if (string && !(object->mended && strstr(item->valuestring, replacement))) {
		text->text = item->valuestring;
		text->length = strlen(item->valuestring);
		return;
	}
	snprintf(problem, 256, "%.100s: expected %s, found %s", name, string ? "UTF-8" : "a string",
		 string ? "other bytes" : smalti_json_describe(item, found));
	text->problem = problem;
}

/* Reads a string or a number. */
static void read_id(const struct object *object, struct smalti_caption_text *text, char problem[256])
{
	const char *name;
	const cJSON *item = find(object->json, smalti_dataset_id_names, &name);
	const char *digits = smalti_json_long_number(item);
	int64_t number;
	char found[64];
	if (!cJSON_IsNumber(item)) {
		read_text(object, smalti_dataset_id_names, text, problem);
	} else if (digits && strspn(digits, "-0123456789") == strlen(digits)) {
		text->length = strlen(digits);
		text->text = digits;
	} else if (smalti_json_int(object->json, name, SMALTI_JSON_REQUIRED, INT64_MIN, INT64_MAX, &number,
				   NULL) == 0) {
		text->length = (size_t)snprintf(problem, 256, "%lld", (long long)number);
		text->text = problem;
	} else {
		snprintf(problem, 256, "id: expected a string or an integer, found %s",
			 smalti_json_describe(item, found));
		text->problem = problem;
	}
}

/* Reads captions; if something is missing, the object's keys are what was found. */
static void read_captions(const struct object *object, const struct smalti_dataset_options *options,
			  struct smalti_dataset_entry *entry)
{
	bool missing = options->images && entry->path.length == 0;
	for (int i = 0; i < options->caption_count; i++) {
		const char *const names[] = {options->captions[i], NULL};
		if (!entry->captions[i].text && !entry->captions[i].problem)
			read_text(object, names, &entry->captions[i], entry->problems[2 + i]);
		missing = missing || !entry->captions[i].text;
	}
	const cJSON *item, *listed = missing ? object->json : NULL;
	cJSON_ArrayForEach (item, listed)
		smalti_append(entry->found, sizeof(entry->found), ", ", "%s", item->string);
}

/* Parses a copy in which U+FFFD stands for what is not UTF-8. */
static cJSON *parse_mended(const char *text, size_t length, struct smalti_error *error)
{
	struct smalti_string string = {0};
	if (smalti_string_copy(&string, text, length, error) < 0)
		return NULL;
	cJSON *json = smalti_json_parse_data(string.bytes, string.length, error);
	free(string.bytes);
	return json;
}

static int parse(const char *text, size_t length, struct smalti_dataset_entry *entry, struct object *object,
		 struct smalti_error *error)
{
	char found[64];
	object->mended = !smalti_utf8_valid(text, length);
	object->json = entry->object =
	    object->mended ? parse_mended(text, length, error) : smalti_json_parse_data(text, length, error);
	if (object->json && !cJSON_IsObject(object->json))
		return smalti_fail(error, SMALTI_EFORMAT, "expected an object, found %s",
				   smalti_json_describe(object->json, found));
	return object->json ? 0 : -1;
}

int smalti_dataset_parse(const char *text, size_t length, const struct smalti_dataset_options *options,
			 struct smalti_dataset_entry *entry, struct smalti_error *error)
{
	struct object object;
	if (parse(text, length, entry, &object, error) < 0)
		return -1;
	read_text(&object, smalti_dataset_path_names, &entry->path, entry->problems[0]);
	read_id(&object, &entry->id, entry->problems[1]);
	read_captions(&object, options, entry);
	return 0;
}

void smalti_dataset_set_caption(struct smalti_dataset_entry *entry, int i, char *text, size_t length,
				const struct smalti_error *error)
{
	entry->texts[i] = text;
	entry->captions[i] = (struct smalti_caption_text){.text = text, .length = length};
	if (text || !error->code)
		return;
	snprintf(entry->problems[2 + i], sizeof(entry->problems[0]), "%.255s", error->message);
	entry->captions[i].problem = entry->problems[2 + i];
}

void smalti_dataset_parse_captions(const char *text, size_t length,
				   const struct smalti_dataset_options *options,
				   struct smalti_dataset_entry *entry, struct smalti_error *error)
{
	struct object object;
	if (text && parse(text, length, entry, &object, error) == 0) {
		read_captions(&object, options, entry);
		return;
	}
	for (int i = 0; i < options->caption_count; i++) {
		struct smalti_error why = {.code = error->code};
		snprintf(why.message, sizeof(why.message), "%.60s: JSON: %.180s", options->captions[i],
			 error->message);
		if (!entry->captions[i].text && !entry->captions[i].problem)
			smalti_dataset_set_caption(entry, i, NULL, 0, &why);
	}
}

void smalti_dataset_forget(struct smalti_dataset_entry *entry)
{
	for (int i = 0; i < SMALTI_DATASET_CAPTIONS_MAX; i++)
		free(entry->texts[i]);
	cJSON_Delete(entry->object);
	memset(entry, 0, offsetof(struct smalti_dataset_entry, problems));
}

/* Returns which of them the name ends with, in any case, or -1. */
static int find_extension(const char *name, const char *const *extensions)
{
	const char *dot = strrchr(name, '.');
	for (int i = 0; dot && extensions[i]; i++)
		if (strcasecmp(dot, extensions[i]) == 0)
			return i;
	return -1;
}

/* The other names of JPEG are those that browsers on Windows give. */
bool smalti_dataset_is_image(const char *name)
{
	static const char *const extensions[] = {".jpg",  ".jpeg", ".png", ".webp",  ".jpe",
						 ".jfif", ".jif",  ".pjp", ".pjpeg", NULL};
	return find_extension(name, extensions) >= 0;
}

bool smalti_dataset_begins_image(const char *start, size_t length)
{
	static const struct {
		size_t offset, length;
		const char *bytes;
	} beginnings[] = {{0, 3, "\xff\xd8\xff"}, {0, 8, "\x89PNG\r\n\x1a\n"}, {8, 4, "WEBP"}};
	for (size_t i = 0; i < COUNT_OF(beginnings); i++)
		if (beginnings[i].offset + beginnings[i].length <= length &&
		    memcmp(start + beginnings[i].offset, beginnings[i].bytes, beginnings[i].length) == 0)
			return true;
	return false;
}

void smalti_dataset_show(char *text)
{
	smalti_utf8_repair(text);
	for (unsigned char *c = (unsigned char *)text; *c; c++)
		if (*c < 0x20 || *c == 0x7f)
			*c = '?';
}

void smalti_pass_over(struct smalti_passed_over *passed, int64_t count, const char *name)
{
	if (passed->count == 0 && count > 0)
		smalti_dataset_show(strncpy(passed->first, name, sizeof(passed->first) - 1));
	passed->count += count;
}

static size_t without(const char *name, size_t length, const char *ending)
{
	const size_t shorter = length > strlen(ending) ? length - strlen(ending) : length;
	return strncasecmp(name + shorter, ending, length - shorter) == 0 ? shorter : length;
}

size_t smalti_dataset_stem(const char *name, const char *const *endings)
{
	const size_t length = strlen(name), packed = without(name, length, ".gz");
	for (; *endings; endings++) {
		const size_t stem = without(name, packed, *endings);
		if (stem < packed)
			return stem;
	}
	return length;
}

const char *const smalti_dataset_tar_endings[] = {".tar", ".tgz", NULL};

bool smalti_dataset_is_tar(const char *name)
{
	return name[smalti_dataset_stem(name, smalti_dataset_tar_endings)] != '\0';
}

int smalti_dataset_unread_image(const char *name)
{
	return find_extension(name, smalti_dataset_unread_extensions);
}

int smalti_dataset_caption_of(const struct smalti_dataset_options *options, const char *extension)
{
	for (int i = 0; i < options->caption_count; i++)
		if (strcmp(options->captions[i], extension) == 0)
			return i;
	return -1;
}
