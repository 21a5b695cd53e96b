/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/online.h"

#include "extract/jobs.h"
#include "rt/session.h"

struct smalti_online {
	struct smalti_extract_parts parts;
	struct smalti_rate reads;
	struct smalti_fetcher *fetcher; /* NULL: no images */
	struct smalti_extract_jobs jobs;
	int64_t next;               /* the next item */
	int64_t under_way;          /* windows in progress */
	struct smalti_error failed; /* the error of the first failed item; code 0: none */
};

static void on_done(void *user, struct smalti_window *window)
{
	struct smalti_online *online = user;
	for (int64_t i = 0; i < window->count && !online->failed.code; i++)
		if (window->items[i].failure_count)
			smalti_fail(&online->failed, SMALTI_EUNSUPPORTED, "%s: %s", window->items[i].row.key,
				    window->items[i].failures[0].reason);
	smalti_window_free(window);
	online->under_way--;
}

static int open_parts(struct smalti_online *online, struct smalti_session *session,
		      const struct smalti_extract_options *options, struct smalti_error *error)
{
	const struct smalti_input_options pictures = {.image_size = options->image_size};
	if (smalti_extract_parts_open(&online->parts, session, options, NULL, NULL, error) < 0)
		return -1;
	if (options->images) {
		online->fetcher = smalti_fetcher_open(&pictures, &online->reads, error);
		if (!online->fetcher)
			return -1;
	}
	return smalti_extract_jobs_open(&online->jobs, &online->parts, on_done, NULL, online, error);
}

struct smalti_online *smalti_online_open(struct smalti_session *session,
					 const struct smalti_extract_options *options,
					 struct smalti_error *error)
{
	struct smalti_online *online = smalti_calloc(1, sizeof(*online), error);
	if (!online)
		return NULL;
	smalti_rate_open(&online->reads, 0);
	if (smalti_extract_check(options, error) == 0 && open_parts(online, session, options, error) == 0)
		return online;
	smalti_online_close(online);
	return NULL;
}

static int begin_window(struct smalti_online *online, const struct smalti_range *range, int64_t *at,
			struct smalti_error *error)
{
	struct smalti_window *window =
	    smalti_window_read(&online->parts, online->fetcher, range, false, *at, NULL, error);
	if (!window)
		return -1;
	*at += window->count;
	online->under_way++;
	for (int64_t i = 0; i < window->count; i++)
		while (window->items[i].is_ordered &&
		       !smalti_fetcher_wait(online->fetcher, &window->items[i]))
			;
	return smalti_extract_jobs_begin(&online->jobs, window, error);
}

/* Computes consecutive items of the list. */
static int compute_range(struct smalti_online *online, const struct smalti_range *range,
			 struct smalti_error *error)
{
	int64_t at = range->first;
	if (smalti_dataset_seek(online->parts.dataset, at, error) < 0)
		return -1;
	while (at < range->end)
		if (begin_window(online, range, &at, error) < 0)
			return -1;
	while (online->under_way)
		if (smalti_extract_jobs_wait(&online->jobs, error) < 0)
			return -1;
	return smalti_pass(error, &online->failed);
}

int smalti_online_compute(struct smalti_online *online, int64_t count, struct smalti_error *error)
{
	const int64_t items = smalti_dataset_info(online->parts.dataset)->count;
	for (int64_t taken; count > 0; count -= taken) {
		taken = smalti_min(count, items - online->next);
		const struct smalti_range range = {online->next, online->next + taken};
		if (compute_range(online, &range, error) < 0)
			return -1;
		online->next = range.end % items;
	}
	return 0;
}

void smalti_online_close(struct smalti_online *online)
{
	if (!online)
		return;
	smalti_extract_jobs_close(&online->jobs);
	smalti_fetcher_close(online->fetcher);
	smalti_extract_parts_close(&online->parts);
	smalti_rate_close(&online->reads);
	free(online);
}
