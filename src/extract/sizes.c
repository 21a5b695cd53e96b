/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/sizes.h"
#include "rt/devices_alone.h"
#include "rt/places.h"

/* The tokens of captions that share a reading of the weights. More would hardly be faster on CPUs, and take
 * memory; fewer would be slower, and save little. A device that does everything can use a band of the
 * encoder. */
enum { PACK_TOKENS_MAX = 2048, PACK_TOKENS_MIN = 512 };
enum { WINDOW_TOKENS_MIN = 1024, WINDOW_TOKENS_MAX = 8192 };

/* Counts the memory that weights leave. Weights that take more than half of a device are loaded again
 * whenever they are read. Main memory may get a copy of the tiles on devices, so its free bytes are a limit,
 * too. */
struct smalti_extract_room smalti_extract_room_on(const struct smalti_device_shares *shares, int place,
						  int devices, int64_t main, int64_t weights)
{
	const int64_t each = shares->tiles - smalti_min(weights, shares->tiles / 2);
	return (struct smalti_extract_room){.each = smalti_min(each, main),
					    .all = smalti_min(devices * each, main),
					    .task = shares->task,
					    .workers = devices,
					    .place = each < main ? place : 0,
					    .devices = true};
}

struct smalti_extract_room smalti_extract_room_of(const struct smalti_session *session, int64_t main,
						  int64_t weights)
{
	struct smalti_device_shares min;
	if (!smalti_devices_alone(session))
		return (struct smalti_extract_room){
		    .each = main, .all = main, .task = INT64_MAX, .workers = session->workers};
	const int smallest = smalti_places_smallest(session->places, &min);
	return smalti_extract_room_on(&min, smallest, smalti_places_count(session->places) - 1, main,
				      weights);
}

void smalti_extract_room_name(const struct smalti_session *session, const struct smalti_extract_room *room,
			      char name[SMALTI_WORKER_NAME])
{
	if (room->place)
		smalti_session_place_name(session, room->place, name);
	else
		snprintf(name, SMALTI_WORKER_NAME, "main memory");
}

/* Tells whether fewer tokens are needed: a task has no room, or two packs take more than half of it. */
static bool is_too_much(const struct smalti_text_encoder *encoder, const struct smalti_extract_room *room,
			int64_t tokens)
{
	int64_t (*const bytes)(const struct smalti_text_encoder *, int64_t) =
	    encoder->functions->working_bytes;
	return bytes(encoder, smalti_min(tokens, encoder->band_tokens)) >
		   room->task - encoder->task_weights ||
	       (bytes(encoder, tokens) > room->each / 4 && tokens > PACK_TOKENS_MIN);
}

int64_t smalti_extract_pack_tokens(const struct smalti_text_encoder *encoder,
				   const struct smalti_extract_room *room)
{
	int64_t tokens = room->devices
			     ? smalti_max(encoder->band_tokens, PACK_TOKENS_MAX)
			     : smalti_min(smalti_extract_window_tokens(encoder, 0), PACK_TOKENS_MAX);
	while (tokens > 1 && is_too_much(encoder, room, tokens))
		tokens /= 2;
	return tokens;
}

int64_t smalti_extract_window_tokens(const struct smalti_text_encoder *encoder, int64_t device_pack)
{
	const double flops = 2e13, tokens = flops / encoder->token_flops;
	const int64_t max = tokens > WINDOW_TOKENS_MAX   ? WINDOW_TOKENS_MAX
			    : tokens < WINDOW_TOKENS_MIN ? WINDOW_TOKENS_MIN
							 : (int64_t)tokens;
	return smalti_max(max, 2 * device_pack);
}
