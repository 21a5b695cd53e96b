/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/text_encoder.h"
#include "rt/session.h"

/* How much is computed together, by main memory or, where devices do all that they can (rt/devices_alone.h),
 * by theirs. It changes no bit of a row. */

/* The memory for jobs. */
struct smalti_extract_room {
	int64_t each, all; /* bytes for one job, and for all together, beside the weights; negative: none */
	int64_t task;      /* bytes for the tiles of a task; INT64_MAX: any */
	int workers;       /* workers that compute */
	int place;         /* the place whose memory decides: rt/places.h */
	bool devices;      /* only devices compute */
};

/* Returns the room with `main` bytes of main memory, and devices whose weights take so many bytes. */
struct smalti_extract_room smalti_extract_room_of(const struct smalti_session *session, int64_t main,
						  int64_t weights);
/* Returns the room of so many devices that compute alone. The smallest has these shares and is `place`. */
struct smalti_extract_room smalti_extract_room_on(const struct smalti_device_shares *shares, int place,
						  int devices, int64_t main, int64_t weights);
/* Gives the name "main memory", or StarPU's name of the device. */
void smalti_extract_room_name(const struct smalti_session *session, const struct smalti_extract_room *room,
			      char name[SMALTI_WORKER_NAME]);

/* Returns the most tokens of captions in a pack; a single caption may be longer. */
int64_t smalti_extract_pack_tokens(const struct smalti_text_encoder *encoder,
				   const struct smalti_extract_room *room);
/* Returns a window's most tokens, without the last caption. CPUs take some seconds for them, or a minute on a
 * small machine with a large model, so that a run stops soon. Devices, which are faster, get two packs (0:
 * CPUs compute). */
int64_t smalti_extract_window_tokens(const struct smalti_text_encoder *encoder, int64_t device_pack);
