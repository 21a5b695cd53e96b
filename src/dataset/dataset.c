/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/dataset.h"
#include "base/file.h"
#include "base/set.h"
#include "base/utf8.h"
#include "dataset/dataset_format.h"

#include <xxhash.h>

/* The most places of items that are kept: of every stride-th item, so that a seek reads over few. The stride
 * doubles whenever there are too many. */
enum { PLACES_MAX = 8192, WATCH_EVERY = 1024 };
/* Items in which a caption is looked for. */
enum { CAPTION_ITEMS = 1000 };

struct smalti_dataset {
	struct smalti_dataset_options options; /* strings are its own */
	struct smalti_dataset_source source;
	const struct smalti_dataset_format *format;
	void *state;
	char *image_root; /* the directory of images */
	struct smalti_dataset_info info;
	struct smalti_passed_over passed_members; /* of tars */
	int64_t next;
	struct smalti_dataset_place *places;
	int64_t stride;
	int64_t *repeated; /* indices of items whose key was there before, ascending */
	int64_t repeated_count;
	uint64_t *split; /* hashes of groups that are in more places than one, ascending */
	int64_t split_count;
	struct smalti_dataset_entry entry;
	char key[SMALTI_KEY_BYTES + 1];
	char *image; /* its path */
};

/* What one reading of the list gathers. */
struct survey {
	struct smalti_set keys, groups;
	XXH3_state_t *key_digest, *caption_digest;
	int64_t good;
	struct smalti_error first; /* why the first bad item is bad */
};

enum smalti_dataset_status smalti_dataset_failure(const struct smalti_error *error)
{
	return error->code == SMALTI_EFORMAT || error->code == SMALTI_EUNSUPPORTED ? SMALTI_DATASET_BAD
										   : SMALTI_DATASET_FAILED;
}

/* Makes valid UTF-8 of any bytes: others become \xNN, and what is past the longest key is left out. */
static void escape_key(const struct smalti_caption_text *text, char key[SMALTI_KEY_BYTES + 1])
{
	size_t to = 0;
	for (size_t at = 0; at < text->length;) {
		const size_t length =
		    text->text[at] ? smalti_utf8_length(text->text + at, text->length - at) : 0;
		if (to + (length ? length : 4) > SMALTI_KEY_BYTES)
			break;
		if (length)
			memcpy(key + to, text->text + at, length);
		else
			snprintf(key + to, 5, "\\x%02x", (unsigned char)text->text[at]);
		to += length ? length : 4;
		at += length ? length : 1;
	}
	key[to] = '\0';
}

static int check_key(const struct smalti_caption_text *text, struct smalti_error *error)
{
	if (text->problem)
		return smalti_fail(error, SMALTI_EFORMAT, "%s", text->problem);
	if (text->length > SMALTI_KEY_BYTES)
		return smalti_fail(error, SMALTI_EFORMAT, "its name has %zu bytes, at most %d were expected",
				   text->length, SMALTI_KEY_BYTES);
	if (memchr(text->text, '\0', text->length) || !smalti_utf8_valid(text->text, text->length))
		return smalti_fail(error, SMALTI_EFORMAT, "its name is not UTF-8; rename it");
	return 0;
}

/* Sets the key of item `index`, which was found with `status`; returns whether it is good. */
static enum smalti_dataset_status name_item(struct smalti_dataset *d, int64_t index,
					    enum smalti_dataset_status status, struct smalti_error *error)
{
	const struct smalti_dataset_entry *e = &d->entry;
	const struct smalti_caption_text *name = e->path.length > 0 || e->path.problem ? &e->path : &e->id;
	snprintf(d->key, sizeof(d->key), "%09lld", (long long)index);
	if (name->length > 0)
		escape_key(name, d->key);
	if (status != SMALTI_DATASET_RECORD || (name->length == 0 && !name->problem))
		return status;
	return check_key(name, error) < 0 ? SMALTI_DATASET_BAD : SMALTI_DATASET_RECORD;
}

static enum smalti_dataset_status next_item(struct smalti_dataset *d, int64_t index, bool texts,
					    struct smalti_error *error)
{
	smalti_dataset_forget(&d->entry);
	const enum smalti_dataset_status status = d->format->next(d->state, texts, &d->entry, error);
	return status > SMALTI_DATASET_END ? name_item(d, index, status, error) : status;
}

static void keep_place(struct smalti_dataset *d)
{
	if (d->info.count % d->stride != 0)
		return;
	if (d->info.count / d->stride == PLACES_MAX) {
		for (int64_t i = 0; i < PLACES_MAX / 2; i++)
			d->places[i] = d->places[2 * i];
		d->stride *= 2;
	}
	d->places[d->info.count / d->stride] = d->format->tell(d->state);
}

static int add_repeated(struct smalti_dataset *d, int64_t index, struct smalti_error *error)
{
	if (smalti_grow(&d->repeated, d->repeated_count, sizeof(*d->repeated), error) < 0)
		return -1;
	d->repeated[d->repeated_count++] = index;
	return 0;
}

static void digest_captions(const struct smalti_dataset *d, XXH3_state_t *digest)
{
	for (int i = 0; i < d->options.caption_count; i++) {
		const struct smalti_caption_text *caption = &d->entry.captions[i];
		const int64_t length = caption->text ? (int64_t)caption->length : -1;
		XXH3_64bits_update(digest, &length, sizeof(length));
		XXH3_64bits_update(digest, caption->text, length > 0 ? caption->length : 0);
	}
}

static struct smalti_dataset_digests take_digests(const struct smalti_dataset *d, const struct survey *survey)
{
	return (struct smalti_dataset_digests){d->info.count, XXH3_64bits_digest(survey->key_digest),
					       XXH3_64bits_digest(survey->caption_digest)};
}

/* Notes a group that has another part after its end. */
static int survey_group(struct smalti_dataset *d, struct survey *survey, struct smalti_error *error)
{
	const int added = d->entry.group ? smalti_set_add(&survey->groups, d->entry.group, error) : 1;
	if (added != 0)
		return added < 0 ? -1 : 0;
	if (smalti_grow(&d->split, d->split_count, sizeof(*d->split), error) < 0)
		return -1;
	d->split[d->split_count++] = d->entry.group;
	return 0;
}

static int survey_item(struct smalti_dataset *d, struct survey *survey, enum smalti_dataset_status status,
		       struct smalti_error *why, struct smalti_error *error)
{
	XXH3_64bits_update(survey->key_digest, d->key, strlen(d->key) + 1);
	digest_captions(d, survey->caption_digest);
	if (survey_group(d, survey, error) < 0)
		return -1;
	if (status == SMALTI_DATASET_BAD) {
		if (!survey->first.code)
			survey->first = *why;
		return 0;
	}
	survey->good++;
	const int added = smalti_set_add(&survey->keys, XXH3_64bits(d->key, strlen(d->key)), error);
	return added == 0 ? add_repeated(d, d->info.count, error) : added < 0 ? -1 : 0;
}

static int tell_share(const struct smalti_dataset *d, struct smalti_error *error)
{
	const struct smalti_dataset_options *o = &d->options;
	if (!o->on_progress || d->info.count % WATCH_EVERY != 0)
		return 0;
	const double share = (double)d->format->tell(d->state).offset / (double)(d->source.size + 1);
	return o->on_progress(o->user, share)
		   ? 0
		   : smalti_fail(error, SMALTI_ECANCELLED, "%s: stopped while it was read", d->source.name);
}

static int fail_empty(const struct smalti_dataset *d, struct smalti_error *error)
{
	const char *note = d->source.note;
	return smalti_fail(error, SMALTI_EFORMAT, "%s: no item in it: expected %s%s%s", d->source.name,
			   d->format != &smalti_dataset_directory ? "one at least"
			   : d->options.images ? "images (.jpg, .jpeg, .png, .webp) or tars"
					       : "images, captions (NAME.txt, NAME.json) or tars",
			   note[0] ? "; " : "", note);
}

/* Adds what tars pass over; a directory's part is in the source already. */
static void describe_passed(struct smalti_dataset *d)
{
	struct smalti_dataset_source *s = &d->source;
	const struct smalti_passed_over *members = &d->passed_members;
	if (members->count > 0)
		smalti_append(
		    s->note, sizeof(s->note), "; ",
		    "passed over %lld member%s, such as %s: an item's name ends at its first dot, and it has "
		    "one image, and one caption of a key",
		    (long long)members->count, members->count == 1 ? "" : "s", members->first);
	smalti_pass_over(&s->passed, members->count, members->first);
	d->info.note = s->note[0] ? s->note : NULL;
	d->info.passed_over = s->passed.count;
	d->info.first_passed_over = s->passed.first;
}

static int read_all(struct smalti_dataset *d, struct survey *survey, struct smalti_error *error)
{
	for (;; d->info.count++) {
		struct smalti_error why = SMALTI_NO_ERROR;
		keep_place(d);
		if (d->info.count > 0 && d->info.count == d->options.prefix)
			d->info.prefix = take_digests(d, survey);
		const enum smalti_dataset_status status = next_item(d, d->info.count, false, &why);
		if (status == SMALTI_DATASET_FAILED)
			return smalti_fail(error, why.code, "%s: %s", d->source.name, why.message);
		smalti_pass_over(&d->passed_members, d->entry.passed.count, d->entry.passed.first);
		if (status == SMALTI_DATASET_END)
			break;
		if (survey_item(d, survey, status, &why, error) < 0 || tell_share(d, error) < 0)
			return -1;
	}
	describe_passed(d);
	if (d->info.count > 0 && survey->good == 0)
		return smalti_fail(error, survey->first.code,
				   "%s: none of its %lld items can be read; the first: %s", d->source.name,
				   (long long)d->info.count, survey->first.message);
	if (d->info.count == 0)
		return fail_empty(d, error);
	d->info.digests = take_digests(d, survey);
	d->next = d->info.count;
	return 0;
}

static int by_hash(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static int survey(struct smalti_dataset *d, struct smalti_error *error)
{
	struct survey survey = {.key_digest = XXH3_createState(), .caption_digest = XXH3_createState()};
	d->stride = 1;
	d->places = smalti_calloc(PLACES_MAX, sizeof(*d->places), error);
	int status = d->places ? 0 : -1;
	if (!survey.key_digest || !survey.caption_digest)
		status = smalti_fail(error, SMALTI_ENOMEM, "no memory for a digest");
	if (status == 0) {
		XXH3_64bits_reset(survey.key_digest);
		XXH3_64bits_reset(survey.caption_digest);
		status = read_all(d, &survey, error);
	}
	XXH3_freeState(survey.key_digest);
	XXH3_freeState(survey.caption_digest);
	smalti_set_free(&survey.keys);
	smalti_set_free(&survey.groups);
	if (d->split_count > 0)
		qsort(d->split, (size_t)d->split_count, sizeof(*d->split), by_hash);
	return status;
}

static int copy_captions(struct smalti_dataset *d, const char *const *keys, int count,
			 struct smalti_error *error)
{
	struct smalti_dataset_options *o = &d->options;
	for (o->caption_count = 0; o->caption_count < count; o->caption_count++) {
		char *copy = smalti_format(error, "%s", keys[o->caption_count]);
		if (!copy)
			return -1;
		o->captions[o->caption_count] = copy;
	}
	return 0;
}

static int copy_options(struct smalti_dataset *d, const struct smalti_dataset_options *from,
			struct smalti_error *error)
{
	struct smalti_dataset_options *o = &d->options;
	if (from->caption_count < 0 || from->caption_count > SMALTI_DATASET_CAPTIONS_MAX)
		return smalti_fail(error, SMALTI_EINVAL, "expected 0 to %d captions an item, found %d",
				   SMALTI_DATASET_CAPTIONS_MAX, from->caption_count);
	o->images = from->images;
	o->prefix = from->prefix;
	o->on_progress = from->on_progress;
	o->user = from->user;
	o->find_caption = from->find_caption && from->caption_count == 0;
	if (o->find_caption)
		return copy_captions(d, smalti_dataset_caption_names, SMALTI_CAPTION_NAME_COUNT, error);
	return copy_captions(d, from->captions, from->caption_count, error);
}

/* Returns the first of the keys that an item has; -1 with an error. If no item can be read, returns any: the
 * survey says why. */
static int find_caption(struct smalti_dataset *d, struct smalti_error *error)
{
	int64_t good = 0;
	char found[sizeof(d->entry.found)] = ""; /* in the first good one */
	for (int64_t i = 0; i < CAPTION_ITEMS; i++) {
		struct smalti_error why = SMALTI_NO_ERROR;
		const enum smalti_dataset_status status = next_item(d, i, true, &why);
		if (status == SMALTI_DATASET_FAILED)
			return smalti_fail(error, why.code, "%s: %s", d->source.name, why.message);
		if (status == SMALTI_DATASET_END)
			break;
		for (int k = 0; k < d->options.caption_count; k++)
			if (status == SMALTI_DATASET_RECORD && d->entry.captions[k].text)
				return k;
		if (status == SMALTI_DATASET_RECORD && good++ == 0)
			memcpy(found, d->entry.found, sizeof(found));
	}
	if (good == 0)
		return 0;
	return smalti_fail(error, SMALTI_EFORMAT,
			   "%s: no caption under " SMALTI_CAPTION_NAMES
			   " in the first %lld of its items: name "
			   "the key that captions are under with --caption-key, or give --vae for images "
			   "alone%s%s",
			   d->source.name, (long long)good, found[0] ? "; the first has " : "", found);
}

static void keep_caption(struct smalti_dataset_options *o, int kept)
{
	const char *key = o->captions[kept];
	for (int k = 0; k < o->caption_count; k++)
		if (k != kept)
			free((char *)o->captions[k]);
	o->captions[0] = key;
	o->caption_count = 1;
	o->find_caption = false;
}

/* Reads with all keys that captions may be under, and settles on the one that is found. */
static int settle_caption(struct smalti_dataset *d, struct smalti_error *error)
{
	d->state = d->format->open(&d->source, error);
	const int found = d->state ? find_caption(d, error) : -1;
	if (d->state)
		d->format->close(d->state);
	d->state = NULL;
	if (found < 0)
		return -1;
	keep_caption(&d->options, found);
	const bool listed_by_captions = d->format == &smalti_dataset_directory && !d->options.images;
	return listed_by_captions ? smalti_dataset_source_list(&d->source, error) : 0;
}

static int open_dataset(struct smalti_dataset *d, const struct smalti_dataset_options *options,
			struct smalti_error *error)
{
	d->source = (struct smalti_dataset_source){.options = &d->options, .file = -1, .spool = {.file = -1}};
	if (copy_options(d, options, error) < 0 ||
	    smalti_dataset_source_open(&d->source, options->paths, options->path_count, error) < 0)
		return -1;
	d->format = smalti_dataset_recognise(&d->source, error);
	if (!d->format)
		return -1;
	const bool list = d->source.file >= 0 && d->format != &smalti_dataset_tar;
	d->image_root = smalti_dataset_source_images(&d->source, list, options->image_root, error);
	if (!d->image_root)
		return -1;
	if (d->options.find_caption && settle_caption(d, error) < 0)
		return -1;
	d->info.name = d->source.name;
	d->info.captions = d->options.captions;
	d->info.caption_count = d->options.caption_count;
	d->state = d->format->open(&d->source, error);
	return d->state ? survey(d, error) : -1;
}

struct smalti_dataset *smalti_dataset_open(const struct smalti_dataset_options *options,
					   struct smalti_error *error)
{
	struct smalti_dataset *d = smalti_calloc(1, sizeof(*d), error);
	if (d && open_dataset(d, options, error) == 0 && smalti_dataset_seek(d, 0, error) == 0)
		return d;
	smalti_dataset_close(d);
	return NULL;
}

void smalti_dataset_close(struct smalti_dataset *d)
{
	if (!d)
		return;
	if (d->state)
		d->format->close(d->state);
	smalti_dataset_forget(&d->entry);
	smalti_dataset_source_close(&d->source);
	for (int i = 0; i < d->options.caption_count; i++)
		free((char *)d->options.captions[i]);
	free(d->image_root);
	free(d->places);
	free(d->repeated);
	free(d->split);
	free(d->image);
	free(d);
}

const struct smalti_dataset_info *smalti_dataset_info(const struct smalti_dataset *d)
{
	return &d->info;
}

static int fail_changed(const struct smalti_dataset *d, struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_EIO,
			   "%s: it had %lld items when it was opened and has fewer now: it was changed",
			   d->source.name, (long long)d->info.count);
}

int smalti_dataset_seek(struct smalti_dataset *d, int64_t index, struct smalti_error *error)
{
	if (index < 0 || index > d->info.count)
		return smalti_fail(error, SMALTI_EINVAL, "%s: item %lld was asked for, expected 0 to %lld",
				   d->source.name, (long long)index, (long long)d->info.count);
	if (index == d->next)
		return 0;
	d->next = index / d->stride * d->stride;
	d->format->seek(d->state, &d->places[d->next / d->stride]);
	for (; d->next < index; d->next++) {
		struct smalti_error why = SMALTI_NO_ERROR;
		const enum smalti_dataset_status status = next_item(d, d->next, false, &why);
		if (status == SMALTI_DATASET_FAILED)
			return smalti_fail(error, why.code, "%s: %s", d->source.name, why.message);
		if (status == SMALTI_DATASET_END)
			return fail_changed(d, error);
	}
	return 0;
}

static int by_index(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int check_repeated(const struct smalti_dataset *d, int64_t index, struct smalti_error *error)
{
	if (d->repeated_count > 0 &&
	    bsearch(&index, d->repeated, (size_t)d->repeated_count, sizeof(*d->repeated), by_index))
		return smalti_fail(error, SMALTI_EFORMAT, "an item before it has the same key");
	return 0;
}

static int fill_image(struct smalti_dataset *d, struct smalti_dataset_record *record,
		      struct smalti_error *error)
{
	const struct smalti_dataset_entry *e = &d->entry;
	free(d->image);
	d->image = NULL;
	if (!d->options.images || e->path.length == 0)
		return 0;
	if (e->file)
		d->image = smalti_format(error, "%s", e->file);
	else if (d->key[0] == '/')
		d->image = smalti_format(error, "%s", d->key);
	else
		d->image = smalti_format(error, "%s/%s", d->image_root, d->key);
	record->image = (struct smalti_image_source){
	    .path = d->image, .offset = e->file ? e->offset : 0, .bytes = e->file ? e->bytes : -1};
	return d->image ? 0 : -1;
}

enum smalti_dataset_status smalti_dataset_next(struct smalti_dataset *d, struct smalti_dataset_record *record,
					       struct smalti_error *error)
{
	*record = (struct smalti_dataset_record){.index = d->next, .key = d->key};
	if (d->next == d->info.count)
		return SMALTI_DATASET_END;
	const enum smalti_dataset_status status = next_item(d, d->next, true, error);
	if (status == SMALTI_DATASET_FAILED)
		smalti_error_prefix(error, "%s", d->source.name);
	if (status == SMALTI_DATASET_END)
		fail_changed(d, error);
	if (status <= SMALTI_DATASET_END)
		return SMALTI_DATASET_FAILED;
	d->next++;
	if (status == SMALTI_DATASET_BAD || check_repeated(d, record->index, error) < 0)
		return SMALTI_DATASET_BAD;
	const uint64_t *group = &d->entry.group;
	memcpy(record->captions, d->entry.captions, sizeof(record->captions));
	smalti_dataset_show(d->entry.found);
	record->found = d->entry.found[0] ? d->entry.found : NULL;
	if (d->split_count > 0 && bsearch(group, d->split, (size_t)d->split_count, sizeof(*group), by_hash))
		record->split = d->entry.stem;
	return fill_image(d, record, error) < 0 ? SMALTI_DATASET_FAILED : SMALTI_DATASET_RECORD;
}
