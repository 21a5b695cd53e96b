/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/text.h"

#include "base/alloc.h"
#include "io/caption.h"

#include <stdlib.h>
#include <string.h>

enum { KEPT_UNUSED = 8 };

struct entry {
	struct smalti_text text; /* first: a text is its entry */
	int32_t *ids;
	int64_t users, last_use;
	struct entry *next;
};

struct smalti_texts {
	struct smalti_model *model;
	struct smalti_scope *scope; /* of the batch */
	struct entry *entries;
	int64_t clock;
};

struct smalti_texts *smalti_texts_new(struct smalti_model *model, struct smalti_scope *scope,
				      struct smalti_error *error)
{
	struct smalti_texts *texts = smalti_calloc(1, sizeof(*texts), error);
	if (texts) {
		texts->model = model;
		texts->scope = scope;
	}
	return texts;
}

static void free_entry(struct entry *entry)
{
	smalti_caption_release(entry->text.caption);
	smalti_scope_free(entry->text.scope);
	free(entry->ids);
	free(entry);
}

void smalti_texts_free(struct smalti_texts *texts)
{
	if (!texts)
		return;
	for (struct entry *entry = texts->entries, *next; entry; entry = next) {
		next = entry->next;
		free_entry(entry);
	}
	free(texts);
}

static struct entry *find(const struct smalti_texts *texts, const int32_t *ids, int64_t count)
{
	for (struct entry *entry = texts->entries; entry; entry = entry->next)
		if (entry->text.tokens == count && !smalti_scope_failed(entry->text.scope) &&
		    memcmp(entry->ids, ids, (size_t)count * sizeof(*ids)) == 0)
			return entry;
	return NULL;
}

/* Drops the unused entries that were not used lately, and those that failed. */
static void trim(struct smalti_texts *texts)
{
	for (struct entry **at = &texts->entries; *at;) {
		struct entry *entry = *at;
		bool stale =
		    entry->last_use + KEPT_UNUSED < texts->clock || smalti_scope_failed(entry->text.scope);
		if (entry->users == 0 && stale) {
			*at = entry->next;
			free_entry(entry);
		} else {
			at = &entry->next;
		}
	}
}

/* The tasks of an encoding: T5, then what the transformer keeps of it. */
static int encode(struct smalti_texts *texts, struct entry *entry, int64_t priority,
		  struct smalti_error *error)
{
	struct smalti_model *model = texts->model;
	struct smalti_text *text = &entry->text;
	text->scope = smalti_scope_new(model->session, "text", priority, error);
	if (!text->scope)
		return -1;
	smalti_scope_needs(text->scope, model->scope);
	smalti_scope_needs(text->scope, texts->scope);
	struct smalti_tile *hidden = smalti_t5_encode(model->t5, text->scope, entry->ids, text->tokens);
	text->caption = smalti_dit_caption(model->dit, text->scope, hidden, text->tokens);
	smalti_tile_release(hidden);
	return smalti_scope_status(text->scope, error);
}

static int check_ids(const struct smalti_model *model, const int32_t *ids, int64_t count,
		     struct smalti_error *error)
{
	const int64_t vocabulary = smalti_t5_config(model->t5)->vocabulary;
	for (int64_t i = 0; i < count; i++)
		if (ids[i] < 0 || ids[i] >= vocabulary)
			return smalti_fail(
			    error, SMALTI_EFORMAT,
			    "token id %d does not exist: the text encoder knows %lld; tokenizer and "
			    "text_encoder do not belong together",
			    (int)ids[i], (long long)vocabulary);
	return 0;
}

static int tokenize(const struct smalti_model *model, const char *prompt, enum smalti_cleaning cleaning,
		    int32_t **ids, int64_t *count, struct smalti_error *error)
{
	size_t length;
	char *prepared =
	    smalti_caption_prepare(model->cleaner, cleaning, prompt, strlen(prompt), &length, error);
	if (!prepared)
		return -1;
	int status =
	    smalti_tokenizer_encode(model->tokenizer, prepared, length, model->max_tokens, ids, count, error);
	free(prepared);
	if (status == 0 && check_ids(model, *ids, *count, error) < 0) {
		free(*ids);
		return -1;
	}
	return status;
}

static struct entry *add(struct smalti_texts *texts, int32_t *ids, int64_t count, int64_t priority,
			 struct smalti_error *error)
{
	struct entry *entry = smalti_calloc(1, sizeof(*entry), error);
	if (!entry) {
		free(ids);
		return NULL;
	}
	entry->ids = ids;
	entry->text.tokens = count;
	if (encode(texts, entry, priority, error) < 0) {
		free_entry(entry);
		return NULL;
	}
	entry->next = texts->entries;
	texts->entries = entry;
	return entry;
}

const struct smalti_text *smalti_text_get(struct smalti_texts *texts, const char *prompt,
					  enum smalti_cleaning cleaning, int64_t priority,
					  struct smalti_error *error)
{
	int32_t *ids = NULL;
	int64_t count = 0;
	if (tokenize(texts->model, prompt, cleaning, &ids, &count, error) < 0)
		return NULL;
	trim(texts);
	struct entry *entry = find(texts, ids, count);
	if (entry)
		free(ids);
	else
		entry = add(texts, ids, count, priority, error);
	if (!entry)
		return NULL;
	entry->users++;
	entry->last_use = ++texts->clock;
	return &entry->text;
}

void smalti_text_put(struct smalti_texts *texts, const struct smalti_text *text)
{
	for (struct entry *entry = texts->entries; entry; entry = entry->next)
		if (&entry->text == text)
			entry->users--;
}
