/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast workers and ranks are, by the tasks that they have in common.
 */
#include "harness.h"
#include "rt/rates.h"

#include <math.h>

enum { MOST = 3, TASKS = 3 };

/* What is known of each: key, operations, samples, seconds; key 0 ends it. */
struct known {
	struct smalti_task_time task[TASKS];
};

static const struct {
	const char *what;
	int count;
	struct known known[MOST];
	double on_paper[MOST], expected[MOST];
	bool measured;
} cases[] = {
    {"nothing is known", 2, {{{{0, 0, 0, 0}}}}, {5, 10}, {5, 10}, false},
    {"the same tasks", 2, {{{{1, 8, 3, 2}}}, {{{1, 8, 9, 4}}}}, {9, 9}, {4, 2}, true},
    {"only those that all have count",
     2,
     {{{{1, 8, 3, 2}, {2, 100, 5, 1}}}, {{{3, 1, 7, 1}, {1, 8, 2, 1}}}},
     {9, 9},
     {4, 8},
     true},
    {"as many as the first one had",
     2,
     {{{{1, 10, 1, 1}, {2, 30, 2, 2}}}, {{{2, 30, 1, 4}, {1, 10, 9, 2}}}},
     {9, 9},
     {14, 7},
     true},
    {"nothing in common: each by its own", 2, {{{{1, 8, 3, 2}}}, {{{2, 6, 3, 2}}}}, {9, 9}, {4, 3}, true},
    {"one is new: paper, as wrong as for the others",
     3,
     {{{{1, 8, 3, 2}}}, {{{0, 0, 0, 0}}}, {{{1, 8, 3, 4}}}},
     {8, 20, 4},
     {4, 10, 2},
     true},
    {"the first one is new", 2, {{{{0, 0, 0, 0}}}, {{{1, 8, 3, 2}}}}, {16, 8}, {8, 4}, true},
};

/* The lists have the tasks of `known`. */
static void list(struct known *known, int count, struct smalti_task_list *lists)
{
	for (int i = 0; i < count; i++) {
		lists[i] = (struct smalti_task_list){0, known[i].task};
		while (lists[i].count < TASKS && known[i].task[lists[i].count].key)
			lists[i].count++;
	}
}

static void compared(void)
{
	for (int i = 0; i < COUNT(cases); i++) {
		double rates[MOST] = {0};
		struct known known[MOST];
		struct smalti_task_list lists[MOST];
		memcpy(known, cases[i].known, sizeof(known));
		list(known, cases[i].count, lists);
		smalti_rates_compare(lists, cases[i].count, rates);
		CHECK(smalti_rates_complete(cases[i].on_paper, cases[i].count, rates) == cases[i].measured,
		      cases[i].what);
		for (int j = 0; j < cases[i].count; j++) {
			char what[160];
			snprintf(what, sizeof(what), "%s: %g of %d, expected %g", cases[i].what, rates[j], j,
				 cases[i].expected[j]);
			CHECK(fabs(rates[j] - cases[i].expected[j]) < 1e-9, what);
		}
	}
}

/* Three workers, of which one is as fast as the other two: half the time of the fast one. */
static void side_by_side(void)
{
	struct known known[MOST] = {{{{1, 8, 3, 2}, {2, 8, 1, 1}, {4, 6, 5, 6}}},
				    {{{4, 6, 2, 12}, {1, 8, 1, 4}}},
				    {{{1, 8, 1, 4}, {4, 6, 1, 12}}}};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_list lists[MOST], together;
	list(known, MOST, lists);
	SUCCEEDS(smalti_rates_together(lists, MOST, &together, &error), &error, "together");
	CHECK(together.count == 2, "what one has not run is left out");
	CHECK(together.time[0].key == 1 && fabs(together.time[0].seconds - 1) < 1e-9, "the first");
	CHECK(together.time[1].key == 4 && fabs(together.time[1].seconds - 3) < 1e-9, "the second");
	CHECK(together.time[1].flops == 6 && together.time[1].samples == 5, "what else is known of it");
	smalti_task_list_free(&together);
	SUCCEEDS(smalti_rates_together(NULL, 0, &together, &error), &error, "no worker");
	CHECK(together.count == 0, "no worker");
	smalti_task_list_free(&together);
}

static const struct test tests[] = {
    {"compared", compared},
    {"side by side", side_by_side},
};

TEST_MAIN("rates", tests)
