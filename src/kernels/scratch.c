/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/scratch.h"

#include <stdatomic.h>

struct scratch {
	struct {
		void *memory;
		int64_t bytes;
	} block[SMALTI_SCRATCH_USES];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int key_status;
static _Atomic int64_t held;

static void release_block(struct scratch *scratch, enum smalti_scratch_use use)
{
	free(scratch->block[use].memory);
	atomic_fetch_sub(&held, scratch->block[use].bytes);
	scratch->block[use].memory = NULL;
	scratch->block[use].bytes = 0;
}

static void release_thread(void *value)
{
	struct scratch *scratch = value;
	for (int use = 0; use < SMALTI_SCRATCH_USES; use++)
		release_block(scratch, (enum smalti_scratch_use)use);
	free(scratch);
}

static void create_key(void)
{
	key_status = pthread_key_create(&key, release_thread);
}

static struct scratch *of_this_thread(struct smalti_error *error)
{
	pthread_once(&once, create_key);
	if (key_status) {
		smalti_fail(error, SMALTI_ENOMEM, "no thread-specific key is left for working memory");
		return NULL;
	}
	struct scratch *scratch = pthread_getspecific(key);
	if (scratch)
		return scratch;
	scratch = smalti_calloc(1, sizeof(*scratch), error);
	if (scratch && pthread_setspecific(key, scratch)) {
		smalti_fail(error, SMALTI_ENOMEM, "out of memory for a thread's working memory");
		free(scratch);
		return NULL;
	}
	return scratch;
}

void *smalti_scratch(enum smalti_scratch_use use, int64_t bytes, struct smalti_error *error)
{
	struct scratch *scratch = of_this_thread(error);
	if (!scratch)
		return NULL;
	if (scratch->block[use].memory && scratch->block[use].bytes >= bytes)
		return scratch->block[use].memory;
	/* Freed first: the contents are not needed, and both might not fit. */
	release_block(scratch, use);
	void *memory = smalti_aligned_alloc(bytes, 1, error);
	if (!memory)
		return NULL;
	scratch->block[use].memory = memory;
	scratch->block[use].bytes = bytes;
	atomic_fetch_add(&held, bytes);
	return memory;
}

int64_t smalti_scratch_held(void)
{
	return atomic_load(&held);
}
