/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "dataset/dataset_format.h"

/* Several tars, one after the other; one is open at a time. */
struct tars {
	const struct smalti_dataset_source *source;
	int64_t at;                       /* which one */
	int64_t place;                    /* where to go on in it, while it is not open */
	struct smalti_dataset_source one; /* that is open; its strings are the tar's */
	void *tar;                        /* NULL: none is */
	char *name;                       /* of the last item */
};

static void close_file(const struct tars *s)
{
	if (s->one.file != s->source->spool.file)
		close(s->one.file);
}

static void close_one(struct tars *s)
{
	if (!s->tar)
		return;
	smalti_dataset_tar.close(s->tar);
	close_file(s);
	s->tar = NULL;
}

static int open_one(struct tars *s, struct smalti_error *error)
{
	const struct smalti_dataset_tar_file *tar = &s->source->tars[s->at];
	struct smalti_dataset_source *one = &s->one;
	*one = (struct smalti_dataset_source){.options = s->source->options,
					      .name = tar->path,
					      .path = tar->path,
					      .file = s->source->spool.file,
					      .first = tar->first,
					      .size = tar->first + tar->bytes};
	if (!tar->spooled && (one->file = smalti_open_regular(tar->path, &one->size, error)) < 0)
		return -1;
	const struct smalti_dataset_format *format = smalti_dataset_recognise(one, error);
	if (format == &smalti_dataset_tar)
		s->tar = format->open(one, error);
	else if (format)
		smalti_dataset_refuse_mixture(tar->path, SMALTI_EFORMAT, error);
	if (!s->tar) {
		close_file(s);
		return -1;
	}
	const struct smalti_dataset_place place = {.offset = s->place};
	smalti_dataset_tar.seek(s->tar, &place);
	return 0;
}

/* Puts the item's name behind its tar's. */
static enum smalti_dataset_status name_item(struct tars *s, enum smalti_dataset_status status,
					    struct smalti_dataset_entry *entry, struct smalti_error *error)
{
	const struct smalti_dataset_tar_file *tar = &s->source->tars[s->at];
	struct smalti_caption_text *name = entry->path.length > 0 ? &entry->path : &entry->id;
	free(s->name);
	s->name = NULL;
	if (entry->file && tar->spooled)
		entry->file = s->source->spool.path;
	if (status == SMALTI_DATASET_BAD)
		smalti_error_prefix(error, "%s", tar->path);
	if (name->length == 0)
		return status;
	s->name = smalti_format(error, "%s/%s", tar->prefix, name->text);
	if (!s->name)
		return SMALTI_DATASET_FAILED;
	*name = (struct smalti_caption_text){.text = s->name, .length = strlen(s->name)};
	return status;
}

static enum smalti_dataset_status next_of_tars(void *state, bool texts, struct smalti_dataset_entry *entry,
					       struct smalti_error *error)
{
	struct tars *s = state;
	for (; s->at < s->source->tar_count; s->at++, s->place = 0) {
		if (!s->tar && open_one(s, error) < 0)
			return SMALTI_DATASET_FAILED;
		const enum smalti_dataset_status status =
		    smalti_dataset_tar.next(s->tar, texts, entry, error);
		if (status != SMALTI_DATASET_END)
			return name_item(s, status, entry, error);
		close_one(s);
	}
	return SMALTI_DATASET_END;
}

static void *open_tars(const struct smalti_dataset_source *source, struct smalti_error *error)
{
	struct tars *s = smalti_calloc(1, sizeof(*s), error);
	if (s)
		s->source = source;
	return s;
}

static void close_tars(void *state)
{
	struct tars *s = state;
	close_one(s);
	free(s->name);
	free(s);
}

/* Returns the place among the bytes of all. */
static struct smalti_dataset_place tell_tars(const void *state)
{
	const struct tars *s = state;
	if (s->at == s->source->tar_count)
		return (struct smalti_dataset_place){.offset = s->source->size};
	struct smalti_dataset_place place = {.offset = s->place};
	if (s->tar)
		place = smalti_dataset_tar.tell(s->tar);
	place.offset += s->source->tars[s->at].start;
	return place;
}

/* Goes to the last tar that begins there or before: those before it are empty, or end there. */
static void seek_tars(void *state, const struct smalti_dataset_place *place)
{
	struct tars *s = state;
	const struct smalti_dataset_tar_file *tars = s->source->tars;
	int64_t low = 0, high = s->source->tar_count;
	while (high - low > 1) {
		const int64_t middle = low + (high - low) / 2;
		if (tars[middle].start <= place->offset)
			low = middle;
		else
			high = middle;
	}
	close_one(s);
	s->at = low;
	s->place = place->offset - tars[low].start;
}

const struct smalti_dataset_format smalti_dataset_tars = {open_tars, close_tars, tell_tars, seek_tars,
							  next_of_tars};
