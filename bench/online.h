/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "smalti/extract.h"

/* Features that are computed inside another run, batch after batch, as in a run that stores none. Pictures
 * are read, decoded and resized, captions and pictures are encoded, and the values are dropped. The models
 * stay open. */
struct smalti_online;

/* Takes the options of an extraction; nothing is written into its output. NULL with an error. */
struct smalti_online *smalti_online_open(struct smalti_session *session,
					 const struct smalti_extract_options *options,
					 struct smalti_error *error);
/* Computes the features of the list's next `count` items; the first item follows the last. The thread that
 * opened it must call it. -1 with an error, also for an item without features. */
int smalti_online_compute(struct smalti_online *online, int64_t count, struct smalti_error *error);
void smalti_online_close(struct smalti_online *online); /* NULL is fine */
