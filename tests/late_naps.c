/* SPDX-License-Identifier: Apache-2.0
 *
 * A library for LD_PRELOAD that lets naps of a hundredth of a second take five seconds: what happens between
 * two looks happens in one of them.
 */
#include <dlfcn.h>
#include <unistd.h>

#pragma GCC visibility push(default)

int usleep(useconds_t microseconds)
{
	static int (*real)(useconds_t);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "usleep");
	return real(microseconds == 10000 ? 5000000 : microseconds);
}
