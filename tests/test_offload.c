/* SPDX-License-Identifier: Apache-2.0
 *
 * The file for what does not fit into memory: it holds what was written, leaves nothing behind, and says what
 * it cannot do. */
#include "base/offload.h"
#include "harness.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *directory;

static int entries(void)
{
	int count = 0;
	DIR *open = opendir(directory);
	while (open && readdir(open))
		count++;
	if (open)
		closedir(open);
	return count;
}

enum { BAND = 100003, BANDS = 7 };

static void bands_in_any_order(void)
{
	static unsigned char written[BANDS][BAND], read[BAND];
	struct smalti_error error = SMALTI_NO_ERROR;
	const int before = entries();
	struct smalti_offload *offload = smalti_offload_open(directory, BANDS * BAND, &error);
	SUCCEEDS(offload ? 0 : -1, &error, "open");
	for (int i = 0; i < BANDS; i++) {
		const int band = i * 3 % BANDS;
		for (int j = 0; j < BAND; j++)
			written[band][j] = (unsigned char)(band * 31 + j * 7);
		SUCCEEDS(smalti_offload_write(offload, (int64_t)band * BAND, BAND, written[band], &error),
			 &error, "write");
	}
	for (int twice = 0; twice < 2; twice++)
		for (int band = 0; band < BANDS; band++) {
			memset(read, 0, sizeof(read));
			SUCCEEDS(smalti_offload_read(offload, (int64_t)band * BAND, BAND, twice == 1, read,
						     &error),
				 &error, "read");
			CHECK(memcmp(read, written[band], BAND) == 0, "what was written");
		}
	CHECK(entries() == before, "the file has no name");
	struct smalti_error short_error = SMALTI_NO_ERROR;
	FAILS(smalti_offload_read(offload, (int64_t)BANDS * BAND, 1, false, read, &short_error), &short_error,
	      SMALTI_EIO, "behind the end", directory, "truncated");
	smalti_offload_close(offload);
	CHECK(entries() == before, "nothing is left");
}

static void full_disk(void)
{
	static const unsigned char band[BAND];
	const struct rlimit small = {BAND / 2, RLIM_INFINITY};
	struct rlimit before;
	struct smalti_error error = SMALTI_NO_ERROR, full = SMALTI_NO_ERROR;
	getrlimit(RLIMIT_FSIZE, &before);
	signal(SIGXFSZ, SIG_IGN);
	struct smalti_offload *offload = smalti_offload_open(directory, BAND, &error);
	SUCCEEDS(offload ? 0 : -1, &error, "open");
	setrlimit(RLIMIT_FSIZE, &small);
	FAILS(smalti_offload_write(offload, 0, BAND, band, &full), &full, SMALTI_EIO, "full", directory,
	      "written");
	setrlimit(RLIMIT_FSIZE, &before);
	smalti_offload_close(offload);
}

static void refusals(void)
{
	const struct {
		const char *directory;
		int64_t bytes;
		const char *words;
	} cases[] = {
	    {"no-such-folder", 1, "No such file"},
	    {"Makefile", 1, "Not a directory"},
	    {directory, INT64_MAX, "MB are needed"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_offload *offload =
		    smalti_offload_open(cases[i].directory, cases[i].bytes, &error);
		FAILS(offload ? 0 : -1, &error, SMALTI_EIO, cases[i].directory, cases[i].directory,
		      cases[i].words);
		smalti_offload_close(offload);
	}
}

static const struct test tests[] = {
    {"bands in any order", bands_in_any_order},
    {"a full disk", full_disk},
    {"refusals", refusals},
};

TEST_PROGRAM()
{
	directory = test_scratch();
	return test_main("offload file", tests, COUNT(tests));
}
