/* SPDX-License-Identifier: Apache-2.0
 *
 * A library for LD_PRELOAD that counts how often StarPU takes a lock in a simulation, where its locks are
 * functions. The number is written to the file SMALTI_LOCKS at the end.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#pragma GCC visibility push(default)

int starpu_pthread_mutex_lock(void *mutex);

static long taken;

/* One thread of a simulation runs at a time. */
int starpu_pthread_mutex_lock(void *mutex)
{
	static int (*real)(void *);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "starpu_pthread_mutex_lock");
	taken++;
	return real(mutex);
}

__attribute__((destructor)) static void tell_count(void)
{
	const char *path = getenv("SMALTI_LOCKS");
	FILE *file = path && taken ? fopen(path, "we") : NULL; /* not of the programs beside the simulation */
	if (!file)
		return;
	fprintf(file, "%ld\n", taken);
	fclose(file);
}
