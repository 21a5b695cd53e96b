/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/file.h"
#include "extract/window.h"

/* A disk serves several readers faster than one; more than a few help only on a network. */
enum { THREADS = 4 };
enum { IMAGE_BYTES_MAX = 1 << 30, PIECE_BYTES = 1 << 20, WAIT_NANOSECONDS = 100000000 };

struct smalti_fetcher {
	struct smalti_input_options options;
	struct smalti_rate *rate;
	pthread_t threads[THREADS];
	int thread_count;
	pthread_mutex_t mutex; /* guards what follows, and the items' is_fetched */
	pthread_cond_t ordered, fetched;
	struct smalti_extract_item *first, **last; /* ordered */
	int64_t depth;
	bool ends;
};

/* Reads in pieces, so that other readers get their turn if the rate is limited. */
static int64_t read_pieces(int file, struct smalti_rate *rate, char *bytes, int64_t count, int64_t offset)
{
	int64_t done = 0, got = 1;
	while (done < count && got > 0) {
		const int64_t piece = smalti_min(count - done, PIECE_BYTES);
		smalti_rate_add(rate, piece);
		smalti_rate_await(rate);
		got = smalti_read_at(file, bytes + done, piece, offset + done);
		done += got > 0 ? got : 0;
	}
	return got < 0 ? got : done;
}

static int read_bytes(int file, struct smalti_rate *rate, const char *path, void *bytes, int64_t count,
		      int64_t offset, struct smalti_error *error)
{
	const int64_t got = read_pieces(file, rate, bytes, count, offset);
	if (got < 0)
		return smalti_fail_errno(error, "%s: cannot be read", path);
	return got == count
		   ? 0
		   : smalti_fail(error, SMALTI_ECORRUPT, "%s: was truncated while it was read", path);
}

/* Returns the image's name in messages: in a tar that is its key. */
static const char *name_of(const struct smalti_extract_item *item)
{
	return item->bytes < 0 ? item->path : item->row.key;
}

static int check_extent(const struct smalti_extract_item *item, int64_t offset, int64_t count, int64_t size,
			struct smalti_error *error)
{
	if (offset < 0 || offset > size || count > size - offset)
		return smalti_fail(error, SMALTI_ECORRUPT,
				   "%s: expected %" PRId64 " bytes at %" PRId64 ", but it has only %" PRId64,
				   name_of(item), count, offset, size);
	if (count == 0)
		return smalti_fail(error, SMALTI_EFORMAT, "%s: the image is empty", name_of(item));
	if (count > IMAGE_BYTES_MAX)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%s: %" PRId64 " bytes; images' files may have up to %d", name_of(item),
				   count, IMAGE_BYTES_MAX);
	return 0;
}

static int fetch(const struct smalti_fetcher *fetcher, struct smalti_extract_item *item,
		 struct smalti_error *error)
{
	int64_t size = 0;
	SCOPED(close) const int file = smalti_open_regular(item->path, &size, error);
	if (file < 0)
		return -1;
	const int64_t count = item->bytes < 0 ? size : item->bytes;
	int status = check_extent(item, item->offset, count, size, error);
	if (status == 0) {
		item->file = smalti_aligned_alloc(count, 1, error);
		status = item->file ? read_bytes(file, fetcher->rate, item->path, item->file, count,
						 item->offset, error)
				    : -1;
	}
	if (status < 0)
		return -1;
	item->input = smalti_input_image_open(name_of(item), item->file, count, &fetcher->options, error);
	if (!item->input)
		return -1;
	item->picture = *smalti_input_image_info(item->input);
	return 0;
}

/* Waits for the first ordered item and returns it; NULL at the end. */
static struct smalti_extract_item *take(struct smalti_fetcher *fetcher)
{
	HOLD_MUTEX(&fetcher->mutex);
	while (!fetcher->first && !fetcher->ends)
		pthread_cond_wait(&fetcher->ordered, &fetcher->mutex);
	struct smalti_extract_item *item = fetcher->ends ? NULL : fetcher->first;
	if (item) {
		fetcher->first = item->next_ordered;
		if (!fetcher->first)
			fetcher->last = &fetcher->first;
	}
	return item;
}

static void *work(void *user)
{
	struct smalti_fetcher *fetcher = user;
	for (struct smalti_extract_item *item; (item = take(fetcher));) {
		fetch(fetcher, item, &item->fetched);
		HOLD_MUTEX(&fetcher->mutex);
		item->is_fetched = true;
		fetcher->depth--;
		pthread_cond_broadcast(&fetcher->fetched);
	}
	return NULL;
}

struct smalti_fetcher *smalti_fetcher_open(const struct smalti_input_options *options,
					   struct smalti_rate *rate, struct smalti_error *error)
{
	struct smalti_fetcher *fetcher = smalti_calloc(1, sizeof(*fetcher), error);
	if (!fetcher)
		return NULL;
	fetcher->options = *options;
	fetcher->rate = rate;
	fetcher->last = &fetcher->first;
	pthread_mutex_init(&fetcher->mutex, NULL);
	pthread_cond_init(&fetcher->ordered, NULL);
	pthread_cond_init(&fetcher->fetched, NULL);
	while (fetcher->thread_count < THREADS &&
	       !pthread_create(&fetcher->threads[fetcher->thread_count], NULL, work, fetcher))
		fetcher->thread_count++;
	if (fetcher->thread_count)
		return fetcher;
	smalti_fail(error, SMALTI_ENOMEM, "no thread can be started to read images");
	smalti_fetcher_close(fetcher);
	return NULL;
}

void smalti_fetcher_add(struct smalti_fetcher *fetcher, struct smalti_extract_item *item)
{
	HOLD_MUTEX(&fetcher->mutex);
	item->is_ordered = true;
	*fetcher->last = item;
	fetcher->last = &item->next_ordered;
	fetcher->depth++;
	pthread_cond_signal(&fetcher->ordered);
}

bool smalti_fetcher_wait(struct smalti_fetcher *fetcher, const struct smalti_extract_item *item)
{
	const struct timespec until = smalti_deadline(WAIT_NANOSECONDS);
	HOLD_MUTEX(&fetcher->mutex);
	int status = 0;
	while (!item->is_fetched && status == 0)
		status = pthread_cond_clockwait(&fetcher->fetched, &fetcher->mutex, CLOCK_MONOTONIC, &until);
	return item->is_fetched;
}

int64_t smalti_fetcher_depth(struct smalti_fetcher *fetcher)
{
	HOLD_MUTEX(&fetcher->mutex);
	return fetcher->depth;
}

void smalti_fetcher_close(struct smalti_fetcher *fetcher)
{
	if (!fetcher)
		return;
	pthread_mutex_lock(&fetcher->mutex);
	fetcher->ends = true;
	pthread_cond_broadcast(&fetcher->ordered);
	pthread_mutex_unlock(&fetcher->mutex);
	for (int i = 0; i < fetcher->thread_count; i++)
		pthread_join(fetcher->threads[i], NULL);
	pthread_cond_destroy(&fetcher->fetched);
	pthread_cond_destroy(&fetcher->ordered);
	pthread_mutex_destroy(&fetcher->mutex);
	free(fetcher);
}
