/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of transfers: a session in which nothing moves unasked, and what moved.
 */
#pragma once

#include "driver.h"
#include "rt/device_use.h"
#include "rt/session.h"
#include "rt/transfers.h"

#include <stdio.h>

/* Opens one CPU and so many devices, 4 at most; NULL and a message: there are none. */
static inline struct smalti_session *moved_session(int devices)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session_options options = {.cpus = 1, .policy = "dmda"};
	setenv("POCL_DEVICES", "basic basic basic basic", 0);
	test_ask_for(&options, devices);
	struct smalti_session *session = smalti_session_open(&options, &error);
	if (!session)
		printf("skipped: %s\n", error.message);
	return session;
}

/* Returns the bytes that came to each place since the last call. */
static inline void moved_bytes(struct smalti_session *session, int places, double *bytes)
{
	static double before[SMALTI_MAX_NODES];
	int count = 0;
	const struct smalti_transfer *transfers = smalti_transfers(session, &count);
	memset(bytes, 0, (size_t)places * sizeof(*bytes));
	for (int i = 0; i < count; i++)
		bytes[transfers[i].to] += (double)transfers[i].bytes;
	for (int place = 0; place < places; place++) {
		const double now = bytes[place];
		bytes[place] -= before[place];
		before[place] = now;
	}
}
