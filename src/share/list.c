/* SPDX-License-Identifier: Apache-2.0 */
#include "share/list.h"
#include "base/file.h"
#include "base/sealed.h"
#include "share/member.h"
#include "share/spans.h"

static const struct smalti_identity_format format = {
    .format = "smalti share", .version = 1, .older = "name another directory"};

struct smalti_shared_list {
	struct smalti_member member;
	int64_t items, step;
	char *identity, *record; /* share.json, done.json */
	struct smalti_spans done, failed;
	bool is_first;
};

/* Reads what others have recorded. A record that is torn or wrong counts as none: items that are there are
 * found when they are looked for. The lock is held. */
static int read_record(struct smalti_shared_list *list, struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	smalti_spans_free(&list->done);
	smalti_spans_free(&list->failed);
	if (smalti_member_refresh(list->member.directory, error))
		return -1;
	SCOPED(cJSON_Delete) cJSON *object = smalti_sealed_read(list->record, &cause);
	if (object && smalti_spans_read(&list->done, object, "done", list->items, &cause) == 0 &&
	    smalti_spans_read(&list->failed, object, "failed", list->items, &cause) == 0)
		return 0;
	smalti_spans_free(&list->done);
	return smalti_is_of_input(cause.code) ? 0 : smalti_pass(error, &cause);
}

static int write_record(const struct smalti_shared_list *list, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *object = cJSON_CreateObject();
	return smalti_spans_print(&list->done, object, "done", error) ||
		       smalti_spans_print(&list->failed, object, "failed", error)
		   ? -1
		   : smalti_sealed_place(list->record, object, error);
}

/* Makes the description, or compares it. A record without one is of another list. */
static int identify(const struct smalti_shared_list *list, const struct smalti_shared_list_options *options,
		    struct smalti_error *error)
{
	const int there = smalti_find_file(list->identity, error);
	if (there == 0) {
		unlink(list->record);
		return smalti_identity_write(list->identity, &format, options->identity, error);
	}
	SCOPED(cJSON_Delete)
	cJSON *old = there > 0 ? smalti_identity_read(list->identity, &format, error) : NULL;
	return old ? smalti_identity_compare(list->member.directory, old, options->identity, &options->rules,
					     error)
		   : -1;
}

/* Begins anew with what failed, if nobody works on the list. */
static int begin(struct smalti_shared_list *list, int64_t now, struct smalti_error *error)
{
	SCOPED(free) struct smalti_claim *claims = NULL;
	int64_t count;
	if (smalti_claims_list(list->member.claims, &now, &claims, &count, error))
		return -1;
	list->is_first = count == 0;
	if (!list->is_first || list->failed.count == 0)
		return 0;
	smalti_spans_free(&list->failed);
	return write_record(list, error);
}

static int open_locked(struct smalti_shared_list *list, const struct smalti_shared_list_options *options,
		       int64_t now, struct smalti_error *error)
{
	SCOPED(free) char *claims = smalti_format(error, "%s/claims", list->member.directory);
	if (!claims || identify(list, options, error) || smalti_make_directory(claims, error))
		return -1;
	smalti_writer_clean(list->member.directory, true);
	return read_record(list, error) || begin(list, now, error) ? -1 : 0;
}

static int open_list(struct smalti_shared_list *list, const char *directory,
		     const struct smalti_shared_list_options *options, struct smalti_error *error)
{
	int64_t now;
	list->items = options->items;
	list->step = options->step;
	list->identity = smalti_format(error, "%s/share.json", directory);
	list->record = smalti_format(error, "%s/done.json", directory);
	if (!list->identity || !list->record ||
	    smalti_member_open(&list->member, directory, &options->wait, NULL, error) ||
	    smalti_lock_acquire(list->member.lock, &now, error))
		return -1;
	const int status = open_locked(list, options, now, error);
	smalti_lock_release(list->member.lock);
	return status;
}

struct smalti_shared_list *smalti_shared_list_open(const char *directory,
						   const struct smalti_shared_list_options *options,
						   struct smalti_error *error)
{
	struct smalti_shared_list *list = smalti_calloc(1, sizeof(*list), error);
	if (!list || open_list(list, directory, options, error) == 0)
		return list;
	smalti_shared_list_close(list);
	return NULL;
}

void smalti_shared_list_close(struct smalti_shared_list *list)
{
	if (!list)
		return;
	smalti_member_close(&list->member);
	smalti_spans_free(&list->done);
	smalti_spans_free(&list->failed);
	free(list->identity);
	free(list->record);
	free(list);
}

bool smalti_shared_list_is_first(const struct smalti_shared_list *list)
{
	return list->is_first;
}

static struct smalti_range next_done(const void *user, int64_t at)
{
	const struct smalti_shared_list *list = user;
	const struct smalti_range done = smalti_spans_next(&list->done, at),
				  failed = smalti_spans_next(&list->failed, at);
	return done.first < failed.first ? done : failed;
}

enum smalti_claim_status smalti_shared_list_claim(struct smalti_shared_list *list, struct smalti_range *range,
						  char holder[SMALTI_HOLDER], struct smalti_error *error)
{
	struct smalti_search search = {.find = smalti_search_free,
				       .within = {0, list->items},
				       .items = list->step,
				       .done = next_done,
				       .user = list};
	enum smalti_claim_status status = SMALTI_CLAIM_FAILED;
	struct smalti_claim claim = {0};
	int64_t now;
	if (smalti_lock_acquire(list->member.lock, &now, error))
		return status;
	if (read_record(list, error) == 0)
		status = smalti_claims_take(list->member.claims, now, &search, &claim, holder, error);
	smalti_lock_release(list->member.lock);
	*range = (struct smalti_range){claim.first, claim.end};
	return status;
}

int smalti_shared_list_act(struct smalti_shared_list *list, const struct smalti_range *range,
			   int (*act)(void *user, struct smalti_error *error), void *user, bool *lost,
			   struct smalti_error *error)
{
	*lost = false;
	if (smalti_lock_acquire(list->member.lock, NULL, error))
		return -1;
	const int holds = smalti_claims_holds(list->member.claims, range->first, range->end, error);
	const int status = holds > 0 ? act(user, error) : holds;
	smalti_lock_release(list->member.lock);
	*lost = holds == 0;
	return status;
}

static int record(struct smalti_shared_list *list, const struct smalti_range *range, bool failed,
		  struct smalti_error *error)
{
	if (read_record(list, error) || smalti_spans_add(failed ? &list->failed : &list->done, range, error))
		return -1;
	return write_record(list, error);
}

int smalti_shared_list_finish(struct smalti_shared_list *list, const struct smalti_range *range, bool failed,
			      struct smalti_error *error)
{
	if (smalti_lock_acquire(list->member.lock, NULL, error))
		return -1;
	const int holds = smalti_claims_holds(list->member.claims, range->first, range->end, error);
	const int status = holds > 0 ? record(list, range, failed, error) : holds;
	smalti_claims_remove(list->member.claims, range->first, range->end);
	smalti_lock_release(list->member.lock);
	return status;
}

void smalti_shared_list_abandon(struct smalti_shared_list *list, const struct smalti_range *range)
{
	if (smalti_lock_acquire(list->member.lock, NULL, NULL))
		return;
	smalti_claims_remove(list->member.claims, range->first, range->end);
	smalti_lock_release(list->member.lock);
}

int64_t smalti_shared_list_done(const struct smalti_shared_list *list)
{
	return smalti_spans_items(&list->done) + smalti_spans_items(&list->failed);
}
