/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/recent.h"
#include "base/clock.h"
#include "rt/task_message.h"

#include <starpu.h>

struct smalti_recent {
	pthread_mutex_t mutex; /* guards what follows */
	int64_t added, capacity;
	struct smalti_recent_task tasks[]; /* number n at n % capacity */
};

void smalti_recent_free(struct smalti_recent *recent)
{
	if (!recent)
		return;
	pthread_mutex_destroy(&recent->mutex);
	free(recent);
}

void smalti_recent_add(struct smalti_recent *recent, int worker, const char *name, const char *task_group,
		       double seconds)
{
	const double now = smalti_now();
	HOLD_MUTEX(&recent->mutex);
	struct smalti_recent_task *task = &recent->tasks[recent->added % recent->capacity];
	*task = (struct smalti_recent_task){
	    .number = recent->added++, .name = name, .worker = worker, .began = now - seconds, .ended = now};
	snprintf(task->task_group, sizeof(task->task_group), "%s", task_group);
}

static void ended(void *user, struct starpu_task *task, int worker)
{
	const struct smalti_message *message = task->cl_arg;
	if (message->seconds > 0)
		smalti_recent_add(user, worker, task->name, message->task_group->name, message->seconds);
}

int smalti_recent_keep(struct smalti_session *session, int64_t capacity, struct smalti_error *error)
{
	int64_t bytes = capacity;
	struct smalti_recent *recent = NULL;
	if (capacity > 0 && smalti_multiply(&bytes, sizeof(struct smalti_recent_task)))
		recent = smalti_calloc(1, (int64_t)sizeof(*recent) + bytes, error);
	if (!recent)
		return smalti_fail(error, SMALTI_EINVAL, "the last %" PRId64 " tasks cannot be kept",
				   capacity);
	pthread_mutex_init(&recent->mutex, NULL);
	recent->capacity = capacity;
	session->recent = recent;
	session->observers[session->observer_count++] =
	    (struct smalti_observer){.ended = ended, .user = recent};
	return 0;
}

int64_t smalti_recent_read(struct smalti_recent *recent, int64_t *from, int64_t count,
			   struct smalti_recent_task *tasks)
{
	HOLD_MUTEX(&recent->mutex);
	if (*from > recent->added)
		*from = 0;
	*from = smalti_max(*from, smalti_max(recent->added - recent->capacity, 0));
	count = smalti_min(count, recent->added - *from);
	for (int64_t i = 0; i < count; i++)
		tasks[i] = recent->tasks[(*from)++ % recent->capacity];
	return count;
}
