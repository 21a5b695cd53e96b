/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/follow.h"

/* The texts of a request. */
static const size_t texts[] = {
    offsetof(struct smalti_request, prompt),    offsetof(struct smalti_request, negative_prompt),
    offsetof(struct smalti_request, scheduler), offsetof(struct smalti_request, shares),
    offsetof(struct smalti_request, strategy),  offsetof(struct smalti_request, lora),
};

static const char **text_of(struct smalti_request *request, size_t i)
{
	return (const char **)(void *)((char *)request + texts[i]);
}

/* The numbers and pixels of a request. */
enum { DATA = 3 };

static int64_t data_bytes(const struct smalti_request *r, int i)
{
	const int64_t bytes[DATA] = {r->latents ? r->latents_count * (int64_t)sizeof(float) : 0,
				     r->image ? r->image_width * r->image_height * 3 : 0,
				     r->mask ? r->mask_width * r->mask_height : 0};
	return bytes[i];
}

static const void *data_of(const struct smalti_request *r, int i)
{
	const void *const data[DATA] = {r->latents, r->image, r->mask};
	return data[i];
}

/* Packs a request with its data: numbers and pixels, then the texts that are given. */
static struct smalti_broadcast *pack(struct smalti_request *request, int64_t *bytes,
				     struct smalti_error *error)
{
	*bytes = (int64_t)sizeof(struct smalti_broadcast);
	for (int i = 0; i < DATA; i++)
		*bytes += data_bytes(request, i);
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		*bytes += *text_of(request, i) ? (int64_t)strlen(*text_of(request, i)) + 1 : 0;
	struct smalti_broadcast *message = smalti_calloc(*bytes, 1, error);
	if (!message)
		return NULL;
	message->request = *request;
	char *to = (char *)(message + 1);
	for (int i = 0; i < DATA; to += data_bytes(request, i++))
		if (data_bytes(request, i))
			memcpy(to, data_of(request, i), (size_t)data_bytes(request, i));
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		if (*text_of(request, i))
			to = stpcpy(to, *text_of(request, i)) + 1;
	return message;
}

/* Makes the request point to the data behind it. */
static void unpack(struct smalti_broadcast *message)
{
	struct smalti_request *request = &message->request;
	char *at = (char *)(message + 1);
	if (request->latents)
		request->latents = (const float *)(void *)at;
	at += data_bytes(request, 0);
	if (request->image)
		request->image = (const unsigned char *)at;
	at += data_bytes(request, 1);
	if (request->mask)
		request->mask = (const unsigned char *)at;
	at += data_bytes(request, 2);
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		if (*text_of(request, i)) {
			*text_of(request, i) = at;
			at += strlen(at) + 1;
		}
}

void smalti_broadcast_image(const struct smalti_request *request, int64_t image,
			    const struct smalti_image_callbacks *callbacks)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_request copy = *request;
	int64_t bytes;
	if (smalti_ranks_count() == 1)
		return;
	struct smalti_broadcast *message = pack(&copy, &bytes, &error);
	if (!message) {
		smalti_ranks_give_up(&error);
		return;
	}
	message->image = image;
	message->rows = callbacks->rows != NULL;
	smalti_ranks_broadcast(message, bytes);
	free(message);
}

void smalti_broadcast_end(void)
{
	const struct smalti_broadcast message = {.ends = true};
	smalti_ranks_broadcast(&message, sizeof(message));
}

struct smalti_broadcast *smalti_broadcast_receive(void (*idle)(void *user), void *user)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	int64_t bytes;
	struct smalti_broadcast *message = smalti_ranks_receive(&bytes, idle, user, &error);
	if (!message)
		smalti_ranks_give_up(&error);
	else
		unpack(message);
	return message;
}
