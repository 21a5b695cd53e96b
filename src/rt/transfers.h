/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

struct smalti_session;

/* What went from one memory of a session to another; nodes are numbered as in the topology. */
struct smalti_transfer {
	int from, to;
	int64_t bytes, count;
};

/* Of each link since the session was opened: as many as `count` says, which are the session's. While StarPU
 * runs, one thread at a time. */
const struct smalti_transfer *smalti_transfers(struct smalti_session *session, int *count);
