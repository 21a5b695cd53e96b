/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

struct smalti_session;

/* Transfers from one memory of a session to another; nodes are numbered as in the topology. */
struct smalti_transfer {
	int from, to;
	int64_t bytes, count;
};

/* Returns the transfers of each link since the session was opened, *count of them, which the session owns.
 * StarPU is running; one thread at a time. */
const struct smalti_transfer *smalti_transfers(struct smalti_session *session, int *count);
