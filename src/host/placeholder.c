/* SPDX-License-Identifier: Apache-2.0 */
#include "host/placeholder.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { PIECE = 2 << 20, MOST = 64 };

static char nothing;
/* Each is at least twice as large as the one before; a smaller one may still be in use. */
static struct {
	char *memory;
	int64_t bytes;
} place[MOST];
static atomic_int places;

/* Maps one piece of a file as often as it takes. */
static bool fill(char *memory, int64_t bytes, int file)
{
	for (int64_t at = 0; at < bytes; at += PIECE)
		if (mmap(memory + at, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) ==
		    MAP_FAILED)
			return false;
	return true;
}

static char *map(int64_t bytes)
{
	const int file = memfd_create("smalti", MFD_CLOEXEC);
	char *memory =
	    mmap(NULL, (size_t)bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	const bool mapped =
	    file >= 0 && memory != MAP_FAILED && ftruncate(file, PIECE) == 0 && fill(memory, bytes, file);
	if (file >= 0)
		close(file);
	if (!mapped && memory != MAP_FAILED)
		munmap(memory, (size_t)bytes);
	return mapped ? memory : NULL;
}

int smalti_placeholder_prepare(int64_t bytes, struct smalti_error *error)
{
	const int count = atomic_load(&places);
	const int64_t largest = count ? place[count - 1].bytes : PIECE / 2;
	if (count && bytes <= largest)
		return 0;
	const int64_t wanted = smalti_round_up(smalti_max(bytes, 2 * largest), PIECE);
	char *memory = count < MOST ? map(wanted) : NULL;
	if (!memory)
		return smalti_fail(error, SMALTI_ENOMEM, "the system refused addresses for %lld bytes",
				   (long long)wanted);
	place[count].memory = memory;
	place[count].bytes = wanted;
	atomic_store(&places, count + 1);
	return 0;
}

void *smalti_placeholder_memory(int64_t bytes)
{
	const int count = atomic_load(&places);
	return count && bytes <= place[count - 1].bytes ? place[count - 1].memory : &nothing;
}

bool smalti_placeholder_has(const void *memory)
{
	for (int i = 0; i < atomic_load(&places); i++)
		if (memory == place[i].memory)
			return true;
	return memory == &nothing;
}

void smalti_placeholder_free(void)
{
	for (int i = 0; i < atomic_load(&places); i++)
		munmap(place[i].memory, (size_t)place[i].bytes);
	atomic_store(&places, 0);
}
