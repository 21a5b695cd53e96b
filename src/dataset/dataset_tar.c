/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/tar.h"
#include "base/byte_reader.h"
#include "dataset/dataset_format.h"

#include <xxhash.h>

/* A webdataset: members that follow each other and have the same name up to the first dot are an item. */
struct tar {
	const struct smalti_dataset_options *options;
	const char *source; /* its name for messages */
	const char *path;
	int file;
	int64_t first, size, at; /* where the tar begins and ends; the next member's place */
	bool ended;
	char name[SMALTI_TAR_NAME_BYTES + 1]; /* of the image, or the item's stem */
	char stem[SMALTI_TAR_NAME_BYTES + 1];
	struct smalti_dataset_entry *entry; /* that is filled */
	struct smalti_tar_member member;    /* that was read last */
};

struct part {
	bool there;
	int64_t offset, bytes;
};

/* Ranks of an image; PLAIN: its name is the stem and one extension. */
enum { NO_IMAGE, UNREAD, NAMED, PLAIN };

/* The parts of an item that are there. */
struct group {
	char stem[SMALTI_TAR_NAME_BYTES + 1];
	bool any; /* member */
	int rank; /* of the image */
	char image_name[SMALTI_TAR_NAME_BYTES + 1];
	struct part image, json, captions[SMALTI_DATASET_CAPTIONS_MAX];
	char found[256]; /* the members' extensions */
};

static const char *base_of(const char *name)
{
	const char *slash = strrchr(name, '/');
	return slash ? slash + 1 : name;
}

/* Returns the bytes of a name in front of the first dot of its last part. */
static size_t stem_length(const char *name)
{
	const char *base = base_of(name);
	return (size_t)(base - name) + strcspn(base, ".");
}

static bool belongs(const struct group *group, const char *name)
{
	const size_t length = stem_length(name);
	return strlen(group->stem) == length && memcmp(group->stem, name, length) == 0;
}

/* Counts an image that is not read as there: its item fails with the reason. */
static int rank_of_image(const char *name)
{
	const char *extension = name + stem_length(name);
	if (smalti_dataset_is_image(name))
		return strchr(extension + 1, '.') ? NAMED : PLAIN;
	return smalti_dataset_unread_image(name) >= 0 ? UNREAD : NO_IMAGE;
}

/* Returns where the member goes in the group; NULL: nowhere. */
static struct part *part_of(const struct tar *s, struct group *group, int rank)
{
	const char *name = s->member.name, *extension = name + stem_length(name);
	if (rank > NO_IMAGE)
		return &group->image;
	if (!*extension)
		return NULL;
	const int caption = smalti_dataset_caption_of(s->options, extension + 1);
	if (caption >= 0)
		return &group->captions[caption];
	return strcmp(extension, ".json") == 0 ? &group->json : NULL;
}

/* Tells whether a member that is no part of an item looks as if it should be. */
static bool is_missed(const struct tar *s)
{
	char start[SMALTI_IMAGE_START];
	const struct smalti_dataset_options *o = s->options;
	const char *dot = strrchr(base_of(s->member.name), '.');
	const bool text = dot && (smalti_dataset_caption_of(o, dot + 1) >= 0 || strcmp(dot, ".json") == 0);
	if (text || !o->images || s->member.bytes < SMALTI_IMAGE_START)
		return text && o->caption_count > 0;
	return smalti_tar_read(s->file, s->member.offset, sizeof(start), start, NULL) == 0 &&
	       smalti_dataset_begins_image(start, sizeof(start));
}

static void pass_over(const struct tar *s, const char *name)
{
	char text[SMALTI_TAR_NAME_BYTES + 1];
	snprintf(text, sizeof(text), "%.200s of %s", name, s->source);
	smalti_pass_over(&s->entry->passed, 1, text);
}

/* Takes an image: of several of an item the one with the best name, else the first. */
static void take_image(const struct tar *s, struct group *group, int rank, struct part found)
{
	const bool better = !group->image.there || rank > group->rank;
	if (group->image.there && s->options->images)
		pass_over(s, better ? group->image_name : s->member.name);
	if (!better)
		return;
	group->image = found;
	group->rank = rank;
	memcpy(group->image_name, s->member.name, sizeof(group->image_name));
}

/* Returns false if the member is there already: another item begins, with a key that was there before. */
static bool take_member(const struct tar *s, struct group *group)
{
	const int rank = rank_of_image(s->member.name);
	struct part *part = part_of(s, group, rank);
	const struct part found = {true, s->member.offset, s->member.bytes};
	const bool image = part == &group->image;
	if (part && part->there && (!image || strcmp(group->image_name, s->member.name) == 0))
		return false;
	const char *extension = s->member.name + stem_length(s->member.name);
	smalti_append(group->found, sizeof(group->found), ", ", "%s", *extension ? extension + 1 : "");
	if (image)
		take_image(s, group, rank, found);
	else if (part)
		*part = found;
	else if (is_missed(s))
		pass_over(s, s->member.name);
	return true;
}

static bool begin_group(const struct tar *s, struct group *group)
{
	const size_t length = stem_length(s->member.name);
	memcpy(group->stem, s->member.name, length);
	group->stem[length] = '\0';
	group->any = true;
	return take_member(s, group);
}

/* Takes the member into the group if it belongs there. */
static bool accept_member(struct tar *s, struct group *group)
{
	if (!s->member.regular || base_of(s->member.name)[0] == '.')
		return true;
	if (!group->any)
		return begin_group(s, group);
	return belongs(group, s->member.name) && take_member(s, group);
}

/* Reads the next members that belong together: 1; 0 at the end; -1. A damaged member spoils its own group. */
static int read_group(struct tar *s, struct group *group, struct smalti_error *error)
{
	while (!s->ended) {
		struct smalti_error cause = SMALTI_NO_ERROR;
		const int status = smalti_tar_member(s->file, s->size, s->at, &s->member, &cause);
		if (status < 0 && group->any && !belongs(group, s->member.name))
			break;
		s->ended = status <= 0;
		if (status < 0) {
			if (!group->any)
				begin_group(s, group);
			return smalti_fail(error, cause.code, "%s; what is behind it in the tar is not read",
					   cause.message);
		}
		if (status > 0 && !accept_member(s, group))
			break;
		s->at = status > 0 ? s->member.next : s->at;
	}
	return group->any;
}

static char *read_part(const struct tar *s, const struct part *part, struct smalti_error *error)
{
	if (part->bytes > SMALTI_ITEM_LIMIT) {
		smalti_fail(error, SMALTI_EFORMAT, "%lld bytes, at most %d were expected",
			    (long long)part->bytes, SMALTI_ITEM_LIMIT);
		return NULL;
	}
	char *text = smalti_calloc(part->bytes + 1, 1, error);
	if (text && smalti_tar_read(s->file, part->offset, part->bytes, text, error) == 0)
		return text;
	free(text);
	return NULL;
}

static void read_captions(const struct tar *s, const struct group *group, struct smalti_dataset_entry *entry)
{
	for (int i = 0; i < s->options->caption_count; i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const struct part *part = &group->captions[i];
		char *text = part->there ? read_part(s, part, &error) : NULL;
		smalti_dataset_set_caption(entry, i, text, (size_t)part->bytes, &error);
	}
	if (!group->json.there)
		return;
	struct smalti_error error = SMALTI_NO_ERROR;
	SCOPED(free) char *json = read_part(s, &group->json, &error);
	smalti_dataset_parse_captions(json, (size_t)group->json.bytes, s->options, entry, &error);
}

static bool is_item(const struct group *group)
{
	bool item = group->image.there || group->json.there;
	for (int i = 0; i < SMALTI_DATASET_CAPTIONS_MAX; i++)
		item = item || group->captions[i].there;
	return item;
}

static void describe(struct tar *s, const struct group *group, struct smalti_dataset_entry *entry)
{
	const bool image = group->image.there;
	const char *name = image ? group->image_name : group->stem;
	memcpy(s->name, name, strlen(name) + 1);
	const struct smalti_caption_text key = {.text = s->name, .length = strlen(name)};
	if (image)
		entry->path = key;
	else
		entry->id = key;
	memcpy(s->stem, group->stem, strlen(group->stem) + 1);
	memcpy(entry->found, group->found, sizeof(entry->found));
	entry->stem = s->stem;
	entry->group =
	    XXH3_64bits_withSeed(s->stem, strlen(s->stem), XXH3_64bits(s->source, strlen(s->source)));
	smalti_dataset_show(s->stem);
	entry->file = image ? s->path : NULL;
	entry->offset = group->image.offset;
	entry->bytes = group->image.bytes;
}

static enum smalti_dataset_status next_group(void *state, bool texts, struct smalti_dataset_entry *entry,
					     struct smalti_error *error)
{
	struct tar *s = state;
	struct group group;
	int status;
	s->entry = entry;
	do {
		group.any = false;
		group.found[0] = '\0';
		group.rank = NO_IMAGE;
		group.stem[0] = '\0';
		group.image = group.json = (struct part){0};
		memset(group.captions, 0, sizeof(group.captions));
		status = read_group(s, &group, error);
	} while (status > 0 && !is_item(&group));
	if (status == 0)
		return SMALTI_DATASET_END;
	describe(s, &group, entry);
	if (status < 0)
		return smalti_dataset_failure(error);
	if (texts)
		read_captions(s, &group, entry);
	return SMALTI_DATASET_RECORD;
}

static void *open_tar(const struct smalti_dataset_source *source, struct smalti_error *error)
{
	struct tar *s = smalti_calloc(1, sizeof(*s), error);
	if (!s)
		return NULL;
	s->options = source->options;
	s->source = source->name;
	s->path = source->path;
	s->file = source->file;
	s->first = s->at = source->first;
	s->size = source->size;
	return s;
}

static struct smalti_dataset_place tell_tar(const void *state)
{
	const struct tar *s = state; /* nothing behind a damaged member is looked at again */
	return (struct smalti_dataset_place){.offset = (s->ended ? s->size : s->at) - s->first};
}

static void seek_tar(void *state, const struct smalti_dataset_place *place)
{
	struct tar *s = state;
	s->ended = false;
	s->at = s->first + place->offset;
}

const struct smalti_dataset_format smalti_dataset_tar = {open_tar, free, tell_tar, seek_tar, next_group};
