/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* What went from one memory of a session to another; nodes are numbered as in the topology. */
struct smalti_transfer {
	int from, to;
	int64_t bytes, count;
};

enum { SMALTI_MOST_LINKS = 64 * 63 };

/* Of each link that something went over since the last call, or since the session was opened; returns how
 * many. While StarPU runs, one thread at a time. */
int smalti_transfers_take(struct smalti_transfer transfers[SMALTI_MOST_LINKS]);
