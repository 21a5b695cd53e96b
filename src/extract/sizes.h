/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/text_encoder.h"
#include "rt/session.h"

/* How much is computed together, by the memory of who computes: main memory or, where devices do all that
 * they can (rt/devices_alone.h), theirs. It changes no bit of a row. */

/* Says what memory there is for jobs. */
struct smalti_extract_room {
	int64_t each, all; /* bytes for one job, and for all together, beside the weights; negative: none */
	int64_t task;      /* bytes for the tiles of a task; INT64_MAX: any */
	int workers;       /* that compute */
	int place;         /* whose memory decides: rt/places.h */
	bool devices;      /* they alone compute */
};

/* Returns what there is with `main` bytes of main memory, and devices whose weights take so many bytes. */
struct smalti_extract_room smalti_extract_room_of(const struct smalti_session *session, int64_t main,
						  int64_t weights);
/* Returns the same for so many devices that compute alone, the least of which has these shares and is
 * `place`. */
struct smalti_extract_room smalti_extract_room_on(const struct smalti_device_shares *shares, int place,
						  int devices, int64_t main, int64_t weights);
/* Gives the name "main memory", or what StarPU calls the device. */
void smalti_extract_room_name(const struct smalti_session *session, const struct smalti_extract_room *room,
			      char name[SMALTI_WORKER_NAME]);

/* Returns the most tokens of captions in a pack, but for a longer caption. */
int64_t smalti_extract_pack_tokens(const struct smalti_text_encoder *encoder,
				   const struct smalti_extract_room *room);
/* Returns the most tokens of a window, but for its last caption: those of some seconds of CPUs' work, a
 * minute on a small machine with a large model, so that one that is to stop does so soon; of devices, which
 * are faster, those of two of their packs (0: CPUs compute). */
int64_t smalti_extract_window_tokens(const struct smalti_text_encoder *encoder, int64_t device_pack);
