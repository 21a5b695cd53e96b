/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/vae_follow.h"
#include "ranks/ranks.h"

void smalti_vae_broadcast_request(const struct smalti_vae_request *request,
				  enum smalti_vae_direction direction, bool raw)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t shares = request->shares ? (int64_t)strlen(request->shares) + 1 : 0;
	if (smalti_ranks_count() == 1)
		return;
	SCOPED(free)
	struct smalti_vae_broadcast *message = smalti_calloc((int64_t)sizeof(*message) + shares, 1, &error);
	if (!message) {
		smalti_ranks_give_up(&error);
		return;
	}
	*message = (struct smalti_vae_broadcast){.direction = direction, .raw = raw, .request = *request};
	if (shares)
		memcpy(message + 1, request->shares, (size_t)shares);
	smalti_ranks_broadcast(message, (int64_t)sizeof(*message) + shares);
}

void smalti_vae_broadcast_end(void)
{
	const struct smalti_vae_broadcast message = {.ends = true};
	smalti_ranks_broadcast(&message, sizeof(message));
}

/* Returns the next broadcast, whose request points to this rank's memory; NULL: it was given up. */
static struct smalti_vae_broadcast *receive(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	int64_t bytes;
	struct smalti_vae_broadcast *message = smalti_ranks_receive(&bytes, NULL, NULL, &error);
	if (!message) {
		smalti_ranks_give_up(&error);
		return NULL;
	}
	struct smalti_vae_request *request = &message->request;
	request->shares = request->shares ? (const char *)(message + 1) : NULL;
	request->scratch = NULL; /* refused before */
	request->user = NULL;
	request->on_progress = NULL;
	return message;
}

void smalti_vae_follow(struct smalti_vae *vae)
{
	static void (*const follow[])(struct smalti_vae * vae, const struct smalti_vae_broadcast *message) = {
	    [SMALTI_VAE_DECODE] = smalti_vae_follow_decoding,
	    [SMALTI_VAE_ENCODE] = smalti_vae_follow_encoding};
	for (bool ends = false; !ends;) {
		SCOPED(free) struct smalti_vae_broadcast *message = receive();
		ends = !message || message->ends;
		if (!ends)
			follow[message->direction](vae, message);
	}
}
