/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of items that processes share: each item is made once, what failed is tried again by a later run, and
 * what the directory says is not believed. */
#include "base/sealed.h"
#include "harness.h"
#include "root.h"
#include "share/list.h"
#include "share/spans.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { ITEMS = 23, STEP = 4 };

static struct smalti_shared_list *open_as(const char *identity, struct smalti_error *error)
{
	static const struct smalti_identity_remedy remedies[] = {{"steps", "--steps"}, {NULL, NULL}};
	SCOPED(cJSON_Delete) cJSON *object = cJSON_Parse(identity);
	const struct smalti_shared_list_options options = {
	    .identity = object, .rules = {.remedies = remedies}, .items = ITEMS, .step = STEP};
	return smalti_shared_list_open(root, &options, error);
}

static struct smalti_shared_list *open_list(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_shared_list *list = open_as("{\"steps\":20}", &error);
	CHECK(list, error.message);
	return list;
}

static enum smalti_claim_status claim(struct smalti_shared_list *list, struct smalti_range *range)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	char holder[SMALTI_HOLDER] = "";
	const enum smalti_claim_status status = smalti_shared_list_claim(list, range, holder, &error);
	CHECK(status != SMALTI_CLAIM_FAILED, error.message);
	CHECK((status == SMALTI_CLAIM_WAIT) == (holder[0] != '\0'), "somebody is waited for");
	return status;
}

static void finish(struct smalti_shared_list *list, const struct smalti_range *range, bool failed)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	CHECK(smalti_shared_list_finish(list, range, failed, &error) == 0, error.message);
}

/* Two processes in turns: every item once, in ranges of whole steps. */
static void every_item_once(void)
{
	root_fresh();
	struct smalti_shared_list *lists[2] = {open_list(), open_list()};
	int times[ITEMS] = {0};
	struct smalti_range range, held;
	CU_ASSERT_EQUAL(claim(lists[1], &held), SMALTI_CLAIM_TAKEN);
	for (int i = 0; claim(lists[i % 2], &range) == SMALTI_CLAIM_TAKEN; i++) {
		CHECK(range.first % STEP == 0 && (range.end % STEP == 0 || range.end == ITEMS),
		      "whole steps");
		for (int64_t item = range.first; item < range.end; item++)
			times[item]++;
		finish(lists[i % 2], &range, false);
	}
	for (int64_t item = 0; item < ITEMS; item++)
		CU_ASSERT_EQUAL(times[item], item >= held.first && item < held.end ? 0 : 1);
	CU_ASSERT_EQUAL(claim(lists[0], &range), SMALTI_CLAIM_WAIT);
	CU_ASSERT_EQUAL(claim(lists[1], &range), SMALTI_CLAIM_NONE);
	smalti_shared_list_abandon(lists[1], &held);
	CU_ASSERT_EQUAL(claim(lists[0], &range), SMALTI_CLAIM_TAKEN);
	CU_ASSERT(range.first == held.first && range.end == held.end);
	finish(lists[0], &range, false);
	CU_ASSERT_EQUAL(smalti_shared_list_done(lists[0]), ITEMS);
	CU_ASSERT_EQUAL(claim(lists[1], &range), SMALTI_CLAIM_NONE);
	CU_ASSERT_EQUAL(root_count("claims", "-"), 0);
	smalti_shared_list_close(lists[0]);
	smalti_shared_list_close(lists[1]);
}

/* Claims that were not finished are given back at the end. */
static void failures_are_of_one_run(void)
{
	root_fresh();
	struct smalti_range range, first;
	struct smalti_shared_list *list = open_list();
	CU_ASSERT(smalti_shared_list_is_first(list));
	CU_ASSERT_EQUAL(claim(list, &first), SMALTI_CLAIM_TAKEN);
	finish(list, &first, true);
	CU_ASSERT_EQUAL(claim(list, &range), SMALTI_CLAIM_TAKEN);
	CU_ASSERT_NOT_EQUAL(range.first, first.first);
	struct smalti_shared_list *late = open_list();
	CU_ASSERT(!smalti_shared_list_is_first(late));
	CU_ASSERT_EQUAL(claim(late, &range), SMALTI_CLAIM_TAKEN);
	CU_ASSERT_NOT_EQUAL(range.first, first.first);
	smalti_shared_list_close(late);
	smalti_shared_list_close(list);
	list = open_list();
	CU_ASSERT(smalti_shared_list_is_first(list));
	CU_ASSERT_EQUAL(claim(list, &range), SMALTI_CLAIM_TAKEN);
	CU_ASSERT(range.first == first.first && range.end == first.end);
	smalti_shared_list_close(list);
}

static int count_act(void *user, struct smalti_error *error)
{
	(void)error;
	++*(int *)user;
	return 0;
}

/* A claim that another has by now: the file has another token. */
static void nothing_is_done_with_a_lost_claim(void)
{
	root_fresh();
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_range range;
	struct smalti_shared_list *list = open_list();
	int acts = 0;
	bool lost;
	CU_ASSERT_EQUAL(claim(list, &range), SMALTI_CLAIM_TAKEN);
	CU_ASSERT_EQUAL(smalti_shared_list_act(list, &range, count_act, &acts, &lost, &error), 0);
	CU_ASSERT(acts == 1 && !lost);
	char name[SMALTI_RANGE_NAME + 8] = "claims/";
	smalti_range_name(range.first, range.end, name + strlen(name));
	CU_ASSERT_EQUAL(unlink(root_at(name)), 0);
	CU_ASSERT_EQUAL(smalti_shared_list_act(list, &range, count_act, &acts, &lost, &error), 0);
	CU_ASSERT(acts == 1 && lost);
	finish(list, &range, false);
	CU_ASSERT_EQUAL(smalti_shared_list_done(list), 0);
	CU_ASSERT(!root_has("done.json"));
	smalti_shared_list_close(list);
}

static void others_are_refused(void)
{
	static const struct {
		const char *identity, *says;
	} rows[] = {
	    {"{\"steps\":21}", "steps = 20, now it is 21: give --steps as it was"},
	    {"{\"steps\":20,\"seed\":\"1\"}", "seed = nothing, now it is \"1\""},
	    {"{}", "steps = 20, now it is nothing"},
	};
	root_fresh();
	smalti_shared_list_close(open_list());
	for (int i = 0; i < COUNT(rows); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		CU_ASSERT_PTR_NULL(open_as(rows[i].identity, &error));
		CHECK(error.code == SMALTI_EINVAL && strstr(error.message, rows[i].says), error.message);
	}
}

/* A record that is torn, or that this list cannot have, counts as none. */
static void records_are_checked(void)
{
	static const char *const records[] = {
	    "{\"done\":[0,4]}",
	    "{\"done\":{},\"failed\":[]}",
	    "{\"done\":[0,4,8],\"failed\":[]}",
	    "{\"done\":[4,0],\"failed\":[]}",
	    "{\"done\":[0,4,3,8],\"failed\":[]}",
	    "{\"done\":[-1,4],\"failed\":[]}",
	    "{\"done\":[0.5,4],\"failed\":[]}",
	    "{\"done\":[\"0\",4],\"failed\":[]}",
	    "{\"done\":[0,24],\"failed\":[]}",
	    "{\"done\":[0,4],\"failed\":[0,1e300]}",
	    NULL,
	};
	struct smalti_range range;
	for (int i = 0; i < COUNT(records); i++) {
		root_fresh();
		smalti_shared_list_close(open_list());
		struct smalti_error error = SMALTI_NO_ERROR;
		SCOPED(cJSON_Delete) cJSON *record = records[i] ? cJSON_Parse(records[i]) : NULL;
		root_put("done.json", BYTES("{\"done\":[0,4],\"failed\":[]"));
		CHECK(!record || smalti_sealed_write(root_at("done.json"), record, &error) == 0,
		      error.message);
		struct smalti_shared_list *list = open_list();
		CU_ASSERT_EQUAL(smalti_shared_list_done(list), 0);
		CU_ASSERT(claim(list, &range) == SMALTI_CLAIM_TAKEN && range.first == 0);
		finish(list, &range, false);
		CU_ASSERT_EQUAL(smalti_shared_list_done(list), STEP);
		smalti_shared_list_close(list);
	}
	CU_ASSERT_EQUAL(unlink(root_at("share.json")), 0); /* then the record is of another list */
	struct smalti_shared_list *list = open_list();
	CU_ASSERT(claim(list, &range) == SMALTI_CLAIM_TAKEN && range.first == 0);
	smalti_shared_list_close(list);
}

/* Ranges in any order are the same set, and what touches is one range. */
static void ranges_join(void)
{
	static const int orders[][5] = {{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {0, 2, 4, 1, 3}, {1, 3, 0, 4, 2}};
	for (int order = 0; order < COUNT(orders); order++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_spans spans = {0}, again;
		for (int i = 0; i < 5; i++) {
			const int64_t first = 3 * orders[order][i] + 1;
			CHECK(smalti_spans_add(&spans, &(struct smalti_range){first, first + 3}, &error) == 0,
			      error.message);
			CU_ASSERT_EQUAL(smalti_spans_items(&spans), 3 * (i + 1));
			CU_ASSERT_EQUAL(smalti_spans_next(&spans, first + 1).first <= first, true);
		}
		CU_ASSERT_EQUAL(spans.count, 1);
		CU_ASSERT(spans.ranges[0].first == 1 && spans.ranges[0].end == 16);
		CU_ASSERT_EQUAL(smalti_spans_next(&spans, 0).first, 1);
		CU_ASSERT_EQUAL(smalti_spans_next(&spans, 16).first, INT64_MAX);
		SCOPED(cJSON_Delete) cJSON *object = cJSON_CreateObject();
		CU_ASSERT_EQUAL(smalti_spans_add(&spans, &(struct smalti_range){20, 21}, &error), 0);
		CU_ASSERT_EQUAL(smalti_spans_print(&spans, object, "done", &error), 0);
		CU_ASSERT_EQUAL(smalti_spans_read(&again, object, "done", 21, &error), 0);
		CU_ASSERT(again.count == 2 && again.ranges[1].first == 20 && again.ranges[1].end == 21);
		smalti_spans_free(&again);
		CU_ASSERT_EQUAL(smalti_spans_read(&again, object, "done", 20, &error), -1);
		smalti_spans_free(&spans);
	}
}

static const struct test tests[] = {
    {"every item once", every_item_once},
    {"failures are of one run", failures_are_of_one_run},
    {"nothing is done with a lost claim", nothing_is_done_with_a_lost_claim},
    {"others are refused", others_are_refused},
    {"records are checked", records_are_checked},
    {"ranges join", ranges_join},
};

TEST_MAIN("shared lists", tests)
