/* SPDX-License-Identifier: Apache-2.0 */
#include "features/reader.h"
#include "shard/layout.h"

/* A row with all that it points to. */
struct slot {
	struct smalti_features_row row;
	char *memory;
	int64_t capacity;
	int status;
	struct smalti_error error;
};

struct smalti_features_queue {
	struct smalti_features_source *source;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct slot *slots;
	int64_t size;          /* of them: one more than is read ahead, which the caller has */
	int64_t filled, taken; /* ever */
	bool closing;
};

enum { ALIGNMENT = 64 };

/* Copies behind what is there already; with `memory` NULL only counts. */
static const void *place(char *memory, int64_t *used, const void *from, int64_t bytes)
{
	char *to = memory ? memory + *used : NULL;
	if (!from || bytes == 0)
		return NULL;
	*used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	return to ? memcpy(to, from, (size_t)bytes) : NULL;
}

/* Returns the bytes that a row points to; with `memory` they are copied there, and `to` points to the
 * copies. */
static int64_t copy_row(const struct smalti_shard_schema *schema, const struct smalti_features_row *from,
			struct smalti_features_row *to, char *memory)
{
	int64_t used = 0, bytes = 0;
	*to = *from;
	to->key = place(memory, &used, from->key, (int64_t)strlen(from->key) + 1);
	for (int i = 0; i < schema->caption_count; i++) {
		const struct smalti_features_text *text = &from->texts[i];
		smalti_shard_text_bytes(schema, text, &bytes);
		to->texts[i].ids =
		    place(memory, &used, text->ids, text->tokens * (int64_t)sizeof(*text->ids));
		to->texts[i].values = place(memory, &used, text->values, bytes);
	}
	bytes = 0;
	if (schema->latent_channels > 0)
		smalti_shard_image_bytes(schema, &from->image, &bytes);
	to->image.values = place(memory, &used, from->image.values, bytes);
	return used;
}

static int keep_row(struct slot *slot, const struct smalti_shard_schema *schema,
		    const struct smalti_features_row *row, struct smalti_error *error)
{
	const int64_t bytes = copy_row(schema, row, &slot->row, NULL);
	if (bytes > slot->capacity) {
		free(slot->memory);
		slot->memory = smalti_aligned_alloc(bytes, 1, error);
		slot->capacity = slot->memory ? bytes : 0;
		if (!slot->memory)
			return -1;
	}
	copy_row(schema, row, &slot->row, slot->memory);
	return 1;
}

static void fill(struct smalti_features_queue *queue, struct slot *slot)
{
	struct smalti_features_row row;
	slot->error = (struct smalti_error)SMALTI_NO_ERROR;
	slot->status = smalti_features_source_next(queue->source, &row, &slot->error);
	slot->row = (struct smalti_features_row){.index = row.index};
	if (slot->status > 0)
		slot->status =
		    keep_row(slot, smalti_shard_info(queue->source->sets->model)->schema, &row, &slot->error);
}

static void *read_ahead(void *user)
{
	struct smalti_features_queue *queue = user;
	bool last = false;
	pthread_mutex_lock(&queue->mutex);
	while (!last) {
		/* The row that was taken last stays until the next call. */
		while (!queue->closing && queue->filled - queue->taken >= queue->size - 1)
			pthread_cond_wait(&queue->changed, &queue->mutex);
		if (queue->closing)
			break;
		struct slot *slot = &queue->slots[queue->filled % queue->size];
		pthread_mutex_unlock(&queue->mutex);
		fill(queue, slot);
		last = slot->status == 0;
		pthread_mutex_lock(&queue->mutex);
		queue->filled++;
		pthread_cond_broadcast(&queue->changed);
	}
	pthread_mutex_unlock(&queue->mutex);
	return NULL;
}

struct smalti_features_queue *smalti_features_queue_open(struct smalti_features_source *source, int64_t rows,
							 struct smalti_error *error)
{
	struct smalti_features_queue *queue = smalti_calloc(1, sizeof(*queue), error);
	if (!queue)
		return NULL;
	queue->source = source;
	queue->size = rows + 1;
	queue->slots = smalti_calloc(queue->size, sizeof(*queue->slots), error);
	pthread_mutex_init(&queue->mutex, NULL);
	pthread_cond_init(&queue->changed, NULL);
	if (queue->slots) {
		if (pthread_create(&queue->thread, NULL, read_ahead, queue) == 0)
			return queue;
		smalti_fail(error, SMALTI_ENOMEM, "no thread could be had to read ahead");
	}
	pthread_mutex_destroy(&queue->mutex);
	pthread_cond_destroy(&queue->changed);
	free(queue->slots);
	free(queue);
	return NULL;
}

void smalti_features_queue_close(struct smalti_features_queue *queue)
{
	if (!queue)
		return;
	pthread_mutex_lock(&queue->mutex);
	queue->closing = true;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->mutex);
	pthread_join(queue->thread, NULL);
	for (int64_t i = 0; i < queue->size; i++)
		free(queue->slots[i].memory);
	pthread_mutex_destroy(&queue->mutex);
	pthread_cond_destroy(&queue->changed);
	free(queue->slots);
	free(queue);
}

int smalti_features_queue_next(struct smalti_features_queue *queue, struct smalti_features_row *row,
			       struct smalti_error *error)
{
	pthread_mutex_lock(&queue->mutex);
	while (queue->filled == queue->taken)
		pthread_cond_wait(&queue->changed, &queue->mutex);
	const struct slot *slot = &queue->slots[queue->taken % queue->size];
	if (slot->status != 0) { /* the end is met at every call */
		queue->taken++;
		pthread_cond_broadcast(&queue->changed);
	}
	pthread_mutex_unlock(&queue->mutex);
	*row = slot->row;
	return slot->status < 0 ? smalti_pass(error, &slot->error) : slot->status;
}
