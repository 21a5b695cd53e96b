/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/model.h"
#include "ranks/ranks.h"

enum { KEPT_UNUSED = 8 };

/* Texts that are encoded together share a task group. */
struct encoding {
	struct smalti_task_group *task_group;
	int entries;
};

struct entry {
	struct smalti_text text; /* first: a text is its entry */
	struct encoding *encoding;
	struct smalti_variant *variant; /* whose transformer reads it; NULL: the model's */
	int32_t *ids;
	int64_t users, last_use;
	bool forgotten; /* is no longer found */
	struct entry *next;
};

struct smalti_texts {
	struct smalti_model *model;
	struct smalti_task_group *task_group; /* of the batch */
	struct entry *entries;
	int64_t clock;
};

struct smalti_texts *smalti_texts_new(struct smalti_model *model, struct smalti_task_group *task_group,
				      struct smalti_error *error)
{
	struct smalti_texts *texts = smalti_calloc(1, sizeof(*texts), error);
	if (texts) {
		texts->model = model;
		texts->task_group = task_group;
	}
	return texts;
}

static void leave(struct encoding *encoding)
{
	if (encoding && --encoding->entries == 0) {
		smalti_task_group_free(encoding->task_group);
		free(encoding);
	}
}

static void free_entry(const struct smalti_texts *texts, struct entry *entry)
{
	texts->model->denoiser->functions->release_cross_cache(entry->text.cache);
	leave(entry->encoding);
	smalti_variant_put(texts->model, entry->variant);
	free(entry->ids);
	free(entry);
}

void smalti_texts_free(struct smalti_texts *texts)
{
	if (!texts)
		return;
	for (struct entry *entry = texts->entries, *next; entry; entry = next) {
		next = entry->next;
		free_entry(texts, entry);
	}
	free(texts);
}

static bool failed(const struct entry *entry)
{
	return entry->encoding && smalti_task_group_failed(entry->encoding->task_group);
}

/* Tells whether an entry may be found: over several ranks by the order of requests alone, so that all find
 * the same. */
static bool is_known(const struct smalti_texts *texts, const struct entry *entry)
{
	if (smalti_ranks_count() == 1)
		return !failed(entry);
	return !entry->forgotten && entry->last_use + KEPT_UNUSED >= texts->clock;
}

static struct entry *find(const struct smalti_texts *texts, const struct smalti_variant *variant,
			  const int32_t *ids, int64_t count)
{
	for (struct entry *entry = texts->entries; entry; entry = entry->next)
		if (entry->text.tokens == count && entry->variant == variant && is_known(texts, entry) &&
		    memcmp(entry->ids, ids, (size_t)count * sizeof(*ids)) == 0)
			return entry;
	return NULL;
}

/* Drops the unused entries that were not used lately, and those that failed. */
static void trim(struct smalti_texts *texts, int64_t kept)
{
	for (struct entry **at = &texts->entries; *at;) {
		struct entry *entry = *at;
		bool stale = entry->last_use + kept < texts->clock || entry->forgotten || failed(entry);
		if (entry->users == 0 && stale) {
			*at = entry->next;
			free_entry(texts, entry);
		} else {
			at = &entry->next;
		}
	}
}

static struct encoding *begin_encoding(struct smalti_texts *texts, const struct smalti_text_request *request,
				       struct smalti_error *error)
{
	struct encoding *encoding = smalti_calloc(1, sizeof(*encoding), error);
	if (!encoding)
		return NULL;
	encoding->task_group = smalti_task_group_new(texts->model->session, "text", request->priority, error);
	if (!encoding->task_group) {
		free(encoding);
		return NULL;
	}
	smalti_task_group_depends_on(encoding->task_group, texts->model->task_group);
	smalti_task_group_depends_on(encoding->task_group, texts->task_group);
	if (request->variant)
		smalti_task_group_depends_on(encoding->task_group, request->variant->task_group);
	smalti_task_group_bottom_level(encoding->task_group,
				       SMALTI_MAX_BOTTOM_LEVEL); /* the whole image waits for it */
	return encoding;
}

/* Inserts the tasks of an encoding: T5, then the cross caches. */
static int encode(struct smalti_texts *texts, struct entry *const *entries, int count,
		  const struct smalti_text_request *request, struct smalti_error *error)
{
	struct smalti_model *model = texts->model;
	struct smalti_denoiser *denoiser = request->variant ? request->variant->denoiser : model->denoiser;
	struct encoding *encoding = begin_encoding(texts, request, error);
	if (!encoding)
		return -1;
	struct smalti_token_ids words[SMALTI_TEXTS_TOGETHER];
	struct smalti_tile *hidden[SMALTI_TEXTS_TOGETHER];
	for (int i = 0; i < count; i++) {
		words[i] =
		    (struct smalti_token_ids){.ids = entries[i]->ids, .count = entries[i]->text.tokens};
		entries[i]->encoding = encoding;
		entries[i]->text.task_group = encoding->task_group;
		encoding->entries++;
	}
	model->text.model->functions->encode(model->text.model, encoding->task_group, words, count,
					     request->strategy, hidden);
	for (int i = 0; i < count; i++) {
		entries[i]->text.cache = denoiser->functions->cross_cache(denoiser, encoding->task_group,
									  hidden[i], words[i].count);
		smalti_tile_release(hidden[i]);
	}
	if (!smalti_task_group_broken(encoding->task_group))
		return 0; /* a later failure fails the group's readers */
	return smalti_task_group_status(encoding->task_group, error);
}

/* Takes `ids` in any case. */
static struct entry *add(struct smalti_texts *texts, struct smalti_variant *variant, int32_t *ids,
			 int64_t count, struct smalti_error *error)
{
	struct entry *entry = smalti_calloc(1, sizeof(*entry), error);
	if (!entry) {
		free(ids);
		return NULL;
	}
	entry->variant = smalti_variant_share(texts->model, variant);
	entry->ids = ids;
	entry->text.tokens = count;
	entry->next = texts->entries;
	texts->entries = entry;
	return entry;
}

static struct entry *find_or_add(struct smalti_texts *texts, const char *prompt,
				 const struct smalti_text_request *request, struct smalti_error *error)
{
	int32_t *ids = NULL;
	int64_t count = 0;
	if (smalti_prompt_encoder_tokenize(&texts->model->text, prompt, strlen(prompt), request->cleaning,
					   &ids, &count, error) < 0)
		return NULL;
	struct entry *entry = find(texts, request->variant, ids, count);
	if (!entry)
		return add(texts, request->variant, ids, count, error);
	free(ids);
	return entry;
}

static int encode_missing(struct smalti_texts *texts, const struct smalti_text *const *found,
			  const struct smalti_text_request *request, struct smalti_error *error)
{
	struct entry *missing[SMALTI_TEXTS_TOGETHER];
	int count = 0;
	for (struct entry *entry = texts->entries; entry; entry = entry->next)
		for (int i = 0; i < request->count && !entry->encoding; i++)
			if (&entry->text == found[i]) {
				missing[count++] = entry;
				break;
			}
	return count ? encode(texts, missing, count, request, error) : 0;
}

int smalti_texts_get(struct smalti_texts *texts, const struct smalti_text_request *request,
		     const struct smalti_text **found, struct smalti_error *error)
{
	int got = 0;
	trim(texts, KEPT_UNUSED);
	for (struct entry *entry; got < request->count; got++) {
		entry = find_or_add(texts, request->prompts[got], request, error);
		if (!entry)
			break;
		entry->users++;
		entry->last_use = ++texts->clock;
		found[got] = &entry->text;
	}
	if (got == request->count && encode_missing(texts, found, request, error) == 0)
		return 0;
	while (got--) {
		smalti_text_put(texts, found[got]);
		found[got] = NULL;
	}
	return -1;
}

void smalti_text_put(struct smalti_texts *texts, const struct smalti_text *text)
{
	for (struct entry *entry = texts->entries; entry; entry = entry->next)
		if (&entry->text == text)
			entry->users--;
}

int64_t smalti_texts_unused_bytes(const struct smalti_texts *texts)
{
	const struct smalti_denoiser *denoiser = texts->model->denoiser;
	int64_t bytes = 0;
	for (const struct entry *entry = texts->entries; entry; entry = entry->next)
		if (entry->users == 0)
			bytes += denoiser->functions->cross_cache_bytes(denoiser, entry->text.tokens);
	return bytes;
}

bool smalti_texts_any_failed(const struct smalti_texts *texts)
{
	for (const struct entry *entry = texts->entries; entry; entry = entry->next)
		if (failed(entry) && !entry->forgotten)
			return true;
	return false;
}

void smalti_texts_forget(struct smalti_texts *texts)
{
	for (struct entry *entry = texts->entries; entry; entry = entry->next)
		entry->forgotten = true;
	trim(texts, KEPT_UNUSED);
}

void smalti_texts_drop_unused(struct smalti_texts *texts)
{
	trim(texts, -1);
}
