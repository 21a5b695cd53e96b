/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/threads.h"

#include "base/alloc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BESIDE = 64 << 20 }; /* bytes that StarPU takes when it starts, well counted */

static void *wait_for_end(void *gate)
{
	pthread_mutex_lock(gate);
	pthread_mutex_unlock(gate);
	return NULL;
}

int smalti_threads_try(int count, struct smalti_error *error)
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
	void *memory =
	    mmap(NULL, BESIDE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory != MAP_FAILED)
		munmap(memory, BESIDE);
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
		return smalti_fail(
		    error, SMALTI_ENOMEM,
		    "the system refuses the memory to start in: allow more (ulimit -v, ulimit -d)");
	return 0;
}
