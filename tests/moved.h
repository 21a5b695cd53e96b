/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of transfers share: a session in which nothing moves unasked, and what moved.
 */
#pragma once

#include "driver.h"
#include "rt/session.h"
#include "rt/transfers.h"

#include <stdio.h>

/* One CPU and so many devices, 4 at most. NULL, said, where there are none. */
static inline struct smalti_session *moved_session(int devices)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session_options options = {.cpus = 1, .policy = "dmda"};
	setenv("POCL_DEVICES", "basic basic basic basic", 0);
	test_ask_for(&options, devices);
	/* What is idle writes nothing back unasked. */
	setenv("STARPU_MINIMUM_CLEAN_BUFFERS", "0", 0);
	setenv("STARPU_TARGET_CLEAN_BUFFERS", "0", 0);
	struct smalti_session *session = smalti_session_open(&options, &error);
	if (!session)
		printf("skipped: %s\n", error.message);
	return session;
}

/* Bytes that came to each place since the last call. */
static inline void moved_bytes(int places, double *bytes)
{
	static struct smalti_transfer transfers[SMALTI_MOST_LINKS];
	const int count = smalti_transfers_take(transfers);
	memset(bytes, 0, (size_t)places * sizeof(*bytes));
	for (int i = 0; i < count; i++)
		bytes[transfers[i].to] += (double)transfers[i].bytes;
}
