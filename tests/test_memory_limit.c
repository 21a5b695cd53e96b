/* SPDX-License-Identifier: Apache-2.0
 *
 * A memory limit is kept: what the system says was resident of `smalti decode` at most, code and mapped files
 * included, is below it. */
#include "checkpoint/npy.h"
#include "harness.h"
#include "host/pool.h"
#include "rt/session.h"

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
static int64_t resident(int64_t limit, const char *tile_rows)
{
	char bytes[32];
	snprintf(bytes, sizeof(bytes), "%lld", (long long)limit);
	char *const arguments[] = {
	    "smalti", "decode",         latents, "-o",          image,
	    "-q",     "--memory-limit", bytes,   "--tile-rows", (char *)(uintptr_t)tile_rows,
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
		int64_t megabytes; /* beside the program's */
		const char *tile_rows;
	} cases[] = {{864, "8"}, {440, "8"}, {240, "8"}, {240, "1"}, {160, "4"}, {110, "2"}, {80, "1"}};
	write_latents();
	for (size_t i = 0; i < COUNT(cases); i++) {
		const int64_t limit = cases[i].megabytes * MEGABYTE + SMALTI_PROGRAM_BYTES;
		const int64_t found = resident(limit, cases[i].tile_rows);
		char what[96];
		snprintf(what, sizeof(what), "limit %lld MB, bands of %s rows: %lld kB resident",
			 (long long)(limit / MEGABYTE), cases[i].tile_rows, (long long)found);
		printf("\n    %s", what);
		CHECK(found > 0, what);
		/* a sanitizer keeps books of its own */
		CHECK(!SMALTI_POOLED || found <= limit >> 10, what);
	}
}

static const struct test tests[] = {{"limits are kept", limits}};

TEST_MAIN("memory limit", tests)
