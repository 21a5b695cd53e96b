/* SPDX-License-Identifier: Apache-2.0
 *
 * A memory limit is kept: what the system says was resident of `smalti decode` at most, code and mapped files
 * included, is below it. */
#include "checkpoint/npy.h"
#include "harness.h"
#include "rt/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHANNELS = 4, SIDE = 160, VALUES = CHANNELS * SIDE * SIDE, MEGABYTE = 1 << 20 };

static char latents[256], image[256];

static void write_latents(void)
{
	static float values[VALUES];
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_tensor_view view = {
	    .dtype = SMALTI_F32, .rank = 3, .shape = {CHANNELS, SIDE, SIDE}, .data = values};
	uint64_t state = 1;
	for (int i = 0; i < VALUES; i++)
		values[i] = test_random(&state);
	const char *directory = test_scratch();
	snprintf(latents, sizeof(latents), "%s/latents.npy", directory);
	snprintf(image, sizeof(image), "%s/picture.ppm", directory);
	SUCCEEDS(smalti_npy_write(latents, &view, &error), &error, "latents");
}

/* Runs the command; kilobytes resident at most, -1 when it failed. */
static int64_t resident(const char *limit, const char *tile_rows)
{
	char *const arguments[] = {"smalti",
				   "decode",
				   latents,
				   "-o",
				   image,
				   "-q",
				   "--memory-limit",
				   (char *)(uintptr_t)limit,
				   "--tile-rows",
				   (char *)(uintptr_t)tile_rows,
				   NULL};
	const pid_t child = fork();
	if (child == 0) {
		execv(getenv("SMALTI"), arguments);
		_exit(127);
	}
	struct rusage usage;
	int status;
	if (child < 0 || wait4(child, &status, 0, &usage) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
		return -1;
	return usage.ru_maxrss;
}

static void limits(void)
{
	static const struct {
		const char *limit, *tile_rows;
		int64_t megabytes;
	} cases[] = {
	    {"1G", "8", 1024},  {"600M", "8", 600}, {"400M", "8", 400}, {"400M", "1", 400},
	    {"320M", "4", 320}, {"270M", "2", 270}, {"240M", "1", 240},
	};
	write_latents();
	for (size_t i = 0; i < COUNT(cases); i++) {
		const int64_t found = resident(cases[i].limit, cases[i].tile_rows);
		char what[96];
		snprintf(what, sizeof(what), "limit %s, bands of %s rows: %lld kB resident", cases[i].limit,
			 cases[i].tile_rows, (long long)found);
		printf("\n    %s", what);
		CHECK(found > 0, what);
		/* a sanitizer keeps books of its own */
		CHECK(!SMALTI_POOLED || found <= cases[i].megabytes * (MEGABYTE >> 10), what);
	}
}

static const struct test tests[] = {{"limits are kept", limits}};

TEST_MAIN("memory limit", tests)
