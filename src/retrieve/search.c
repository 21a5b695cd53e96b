/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "retrieve/index.h"
#include "rt/session.h"

/* The rows of a task, and the lists of matches that tasks fill side by side. Results depend on neither, as
 * the order of rows does not matter to the best. */
enum {
	TASK_BYTES = 16 << 20, /* of vectors */
	QUERIES = 256,         /* of a task */
	LISTS = 16,
	ROUND_BYTES = 256 << 20, /* of lists at a time */
	TOP_MAX = 1 << 20
};

struct search {
	const struct smalti_index *index;
	struct smalti_task_group *task_group;
	const float *queries; /* of this round */
	int64_t count, top;
	struct smalti_found *found;
};

static int take(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)error;
	struct smalti_found *found = user;
	for (int64_t i = 0; i < count * (int64_t)sizeof(*values) / (int64_t)sizeof(struct smalti_match);
	     i++) {
		struct smalti_match match;
		memcpy(&match, (const char *)values + i * (int64_t)sizeof(match), sizeof(match));
		found[i] = (struct smalti_found){match.row, match.score};
	}
	return 0;
}

/* Searches some rows for some queries. */
static void insert_rows(const struct search *s, struct smalti_tile *queries, int64_t count, int64_t first,
			struct smalti_tile *vectors, int64_t rows, struct smalti_tile **list)
{
	const bool more = *list;
	if (!more)
		*list = smalti_tile_new(s->task_group, count, s->top * (int64_t)sizeof(struct smalti_match));
	smalti_insert(search_rows, s->task_group, (.queries = queries, .vectors = vectors, .matches = *list),
		      .queries = count, .rows = rows, .dim = s->index->info.dim, .top = s->top,
		      .first = first, .more = more);
}

/* Merges the lists of some queries by a tree, and delivers them from the graph. */
static void insert_merge(const struct search *s, int64_t first, int64_t count,
			 struct smalti_tile *lists[LISTS])
{
	for (int step = 1; step < LISTS; step *= 2)
		for (int i = 0; i + step < LISTS && lists[i + step]; i += 2 * step)
			smalti_insert(merge_matches, s->task_group,
				      (.others = lists[i + step], .matches = lists[i]), .queries = count,
				      .top = s->top);
	smalti_insert(deliver, s->task_group, (.x = lists[0]),
		      .count = count * s->top * (int64_t)sizeof(struct smalti_match) / (int64_t)sizeof(float),
		      .sink = take, .user = s->found + first * s->top);
	for (int i = 0; i < LISTS; i++)
		smalti_tile_release(lists[i]);
}

/* Reads rows in the outer loop, so that they serve all queries. */
static int search_round(const struct search *s, struct smalti_error *error)
{
	const int64_t blocks = (s->count + QUERIES - 1) / QUERIES, dim = s->index->info.dim;
	const int64_t row_bytes = dim * (int64_t)sizeof(float);
	const int64_t max = smalti_max(TASK_BYTES / row_bytes, 1);
	SCOPED(free)
	struct smalti_tile **queries = smalti_calloc(blocks, sizeof(struct smalti_tile *), error);
	SCOPED(free)
	struct smalti_tile *(*lists)[LISTS] = smalti_calloc(blocks, sizeof(*lists), error);
	if (!queries || !lists)
		return -1;
	for (int64_t block = 0; block < blocks; block++)
		queries[block] =
		    smalti_tile_over(s->task_group, smalti_min(QUERIES, s->count - block * QUERIES),
				     row_bytes, s->queries + block * QUERIES * dim);
	for (int64_t first = 0, task = 0;
	     first < s->index->info.items && !smalti_task_group_failed(s->task_group); first += max, task++) {
		const int64_t rows = smalti_min(max, s->index->info.items - first);
		struct smalti_tile *vectors =
		    smalti_tile_over(s->task_group, rows, row_bytes, s->index->vectors + first * dim);
		for (int64_t block = 0; block < blocks; block++)
			insert_rows(s, queries[block], smalti_min(QUERIES, s->count - block * QUERIES), first,
				    vectors, rows, &lists[block][task % LISTS]);
		smalti_tile_release(vectors);
	}
	for (int64_t block = 0; block < blocks; block++) {
		insert_merge(s, block * QUERIES, smalti_min(QUERIES, s->count - block * QUERIES),
			     lists[block]);
		smalti_tile_release(queries[block]);
	}
	smalti_task_group_wait(s->task_group);
	return smalti_task_group_status(s->task_group, error);
}

static int check(const struct smalti_index *index, struct smalti_session *session, const float *queries,
		 int64_t count, int64_t top, const struct smalti_found *found, struct smalti_error *error)
{
	return smalti_check_given(index, "index", error) < 0 ||
		       smalti_check_given(session, "session", error) < 0 ||
		       smalti_check_given(queries, "queries", error) < 0 ||
		       smalti_check_given(found, "items to fill", error) < 0 ||
		       smalti_check_range(count, 1, INT32_MAX, "number of queries", error) < 0 ||
		       smalti_check_range(top, 1, TOP_MAX, "number of items to find", error) < 0
		   ? -1
		   : 0;
}

/* Turns lists of `own` matches into lists of `top`, in the same memory. */
static void spread(struct smalti_found *found, int64_t count, int64_t own, int64_t top)
{
	for (int64_t i = count - 1; i >= 0 && own < top; i--) {
		memmove(found + i * top, found + i * own, (size_t)own * sizeof(*found));
		for (int64_t place = own; place < top; place++)
			found[i * top + place] = (struct smalti_found){.number = -1};
	}
}

int smalti_index_search(const struct smalti_index *index, struct smalti_session *session,
			const float *queries, int64_t count, int64_t top, struct smalti_found *found,
			struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (check(index, session, queries, count, top, found, error) < 0)
		return -1;
	const int64_t own = smalti_min(top, index->info.items);
	const int64_t of_query = LISTS * own * (int64_t)sizeof(struct smalti_match);
	const int64_t round = smalti_max(ROUND_BYTES / of_query, 1);
	int status = 0;
	for (int64_t first = 0; first < count && status == 0; first += round) {
		struct search search = {index,
					smalti_index_task_group(index, session, "search", error),
					queries + first * index->info.dim,
					smalti_min(round, count - first),
					own,
					found + first * own};
		status = search.task_group ? search_round(&search, error) : -1;
		smalti_task_group_free(search.task_group);
	}
	if (status == 0)
		spread(found, count, own, top);
	return smalti_index_check(index, error) < 0 ? -1 : status;
}
