/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "driver.h"
#include "harness.h"
#include "rt/session.h"

#include <stdio.h>

/* Opens `cpus` CPU workers, maybe none, and devices, whose memory is limited if `megabytes` is not NULL. NULL
 * and a message for `test` without a device. */
static inline struct smalti_session *test_open_devices(const char *test, const char *cpus, int64_t devices,
						       const char *megabytes, const char *policy)
{
	const char *limit = test_cuda() ? "STARPU_LIMIT_CUDA_MEM" : "STARPU_LIMIT_OPENCL_MEM";
	struct smalti_session_options options = {.policy = policy};
	struct smalti_error error = SMALTI_NO_ERROR;
	test_ask_for(&options, devices);
	setenv("STARPU_NCPU", cpus, 1);
	if (megabytes)
		setenv(limit, megabytes, 1);
	struct smalti_session *session = smalti_session_open(&options, &error);
	unsetenv("STARPU_NCPU");
	unsetenv(limit);
	if (!session && error.code == SMALTI_ENODEV)
		printf("\n    %s: skipped: %s", test, error.message);
	else
		SUCCEEDS(session ? 0 : -1, &error, test);
	return session;
}

static inline void test_close_devices(struct smalti_session *session)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
}
