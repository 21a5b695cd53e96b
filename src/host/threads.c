/* SPDX-License-Identifier: Apache-2.0 */
#include "host/threads.h"

#include <sys/mman.h>

static void *wait_for_end(void *gate)
{
	pthread_mutex_lock(gate);
	pthread_mutex_unlock(gate);
	return NULL;
}

int smalti_threads_try(int count, int64_t bytes, struct smalti_error *error)
{
	pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
	pthread_t *threads = smalti_calloc(count, sizeof(*threads), error);
	if (!threads)
		return -1;
	int started = 0, cause = 0;
	pthread_mutex_lock(&gate);
	while (started < count && !cause) {
		cause = pthread_create(&threads[started], NULL, wait_for_end, &gate);
		started += !cause;
	}
	void *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory != MAP_FAILED)
		munmap(memory, (size_t)bytes);
	pthread_mutex_unlock(&gate);
	while (started > 0)
		pthread_join(threads[--started], NULL);
	free(threads);
	if (cause)
		return smalti_fail(
		    error, SMALTI_ENOMEM,
		    "the system refused one of %d threads (%s): allow more (ulimit -u, ulimit -v), or "
		    "fewer workers",
		    count, strerror(cause));
	if (memory == MAP_FAILED)
		return smalti_fail(error, SMALTI_ENOMEM,
				   "the system refuses %lld MB to work in: allow more (ulimit -v, ulimit "
				   "-d), or lower the memory limit",
				   (long long)(bytes >> 20));
	return 0;
}
