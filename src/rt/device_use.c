/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/device_use.h"
#include "base/clock.h"
#include "rt/places.h"
#include "rt/session.h"
#include "rt/task_message.h"
#include "rt/transfers.h"

#include <math.h>

#include <starpu.h>

/* A memory's meter: what is in progress now, and for how long anything was. */
struct meter {
	pthread_mutex_t mutex;
	int64_t tasks, arriving, leaving;
	double since; /* when one of them changed last, by smalti_now() */
	double to, from, exposed, flops;
	int64_t used, peak, tiles, ended, repeated;
};

struct smalti_meters {
	double began, wall; /* when, by smalti_now() and since 1970 */
	struct meter of[SMALTI_MAX_NODES];
	pthread_mutex_t mutex; /* guards what follows */
	struct smalti_too_large too_large;
};

static struct smalti_meters *watched; /* StarPU has one set of callbacks, without a user pointer */

#define INTEGER(field, grows) #field, offsetof(struct smalti_device_use, field), false, grows
#define REAL(field, grows)    #field, offsetof(struct smalti_device_use, field), true, grows
const struct smalti_device_use_field smalti_device_use_fields[SMALTI_DEVICE_USE_FIELDS] = {
    {INTEGER(worker, false)},
    {INTEGER(node, false)},
    {REAL(seconds, true)},
    {REAL(busy, false)},
    {REAL(utilisation, false)},
    {INTEGER(tasks, true)},
    {INTEGER(repeated, true)},
    {REAL(flops, true)},
    {REAL(peak, false)},
    {INTEGER(bytes_to, true)},
    {INTEGER(transfers_to, true)},
    {INTEGER(bytes_from, true)},
    {INTEGER(transfers_from, true)},
    {REAL(seconds_to, true)},
    {REAL(seconds_from, true)},
    {REAL(exposed, true)},
    {REAL(hidden, true)},
    {INTEGER(used_memory, false)},
    {INTEGER(peak_memory, false)},
    {INTEGER(peak_tiles, false)},
    {INTEGER(memory, false)},
};

/* Adds the time since the last change, under the mutex. */
static void advance(struct meter *meter)
{
	const double now = smalti_now(), seconds = now - meter->since;
	meter->since = now;
	if (meter->arriving)
		meter->to += seconds;
	if (meter->arriving && !meter->tasks)
		meter->exposed += seconds;
	if (meter->leaving)
		meter->from += seconds;
}

static void change(struct meter *meter, int64_t *what, int by)
{
	HOLD_MUTEX(&meter->mutex);
	advance(meter);
	*what += by;
}

static void transfer(unsigned from, unsigned to, int by)
{
	change(&watched->of[from], &watched->of[from].leaving, by);
	change(&watched->of[to], &watched->of[to].arriving, by);
}

static void transfer_begins(unsigned from, unsigned to)
{
	transfer(from, to, 1);
}

static void transfer_ends(unsigned from, unsigned to)
{
	transfer(from, to, -1);
}

static void watch(struct smalti_meters *meters)
{
	watched = meters;
#ifdef STARPU_TRANSFER_CALLBACKS
	const struct starpu_transfer_callbacks callbacks = {transfer_begins, transfer_ends};
	starpu_transfer_set_callbacks(meters ? &callbacks : NULL);
#else
	(void)transfer_begins, (void)transfer_ends;
#endif
}

void smalti_meters_close(struct smalti_meters *meters)
{
	if (!meters)
		return;
	watch(NULL);
	for (int node = 0; node < SMALTI_MAX_NODES; node++)
		pthread_mutex_destroy(&meters->of[node].mutex);
	pthread_mutex_destroy(&meters->mutex);
	free(meters);
}

void smalti_meters_too_large(struct smalti_meters *meters, const char *name, int64_t bytes)
{
	struct smalti_too_large *too_large = &meters->too_large;
	HOLD_MUTEX(&meters->mutex);
	too_large->tasks++;
	if (bytes <= too_large->bytes)
		return;
	too_large->bytes = bytes;
	snprintf(too_large->name, sizeof(too_large->name), "%s", name);
}

struct smalti_too_large smalti_devices_too_large(const struct smalti_session *session)
{
	if (!session || !session->meters)
		return (struct smalti_too_large){.tasks = 0};
	HOLD_MUTEX(&session->meters->mutex);
	return session->meters->too_large;
}

void smalti_meters_begins(struct smalti_meters *meters, unsigned memory_node)
{
	change(&meters->of[memory_node], &meters->of[memory_node].tasks, 1);
}

static void ended(void *user, struct starpu_task *task, int worker)
{
	struct smalti_meters *meters = user;
	const struct smalti_message *message = task->cl_arg;
	if (message->began <= 0) /* no device ran it */
		return;
	const struct smalti_device *device = smalti_session_device(message->task_group->session, worker);
	struct meter *meter = &meters->of[starpu_worker_get_memory_node((unsigned)worker)];
	const int64_t in_use = smalti_device_in_use(device), tiles = smalti_device_tiles(device);
	HOLD_MUTEX(&meter->mutex);
	advance(meter);
	meter->tasks--;
	meter->used = in_use;
	meter->peak = smalti_max(meter->peak, in_use);
	meter->tiles = smalti_max(meter->tiles, tiles);
	meter->flops += message->flops;
	meter->ended++;
	meter->repeated = smalti_device_repeats(device);
}

struct smalti_meters *smalti_meters_open(struct smalti_session *session, struct smalti_error *error)
{
	struct smalti_meters *meters = smalti_calloc(1, sizeof(*meters), error);
	if (!meters)
		return NULL;
	meters->began = smalti_now();
	meters->wall = smalti_wall_clock();
	pthread_mutex_init(&meters->mutex, NULL);
	for (int node = 0; node < SMALTI_MAX_NODES; node++)
		pthread_mutex_init(&meters->of[node].mutex, NULL);
	session->observers[session->observer_count++] =
	    (struct smalti_observer){.ended = ended, .user = meters};
	watch(meters);
	return meters;
}

static void read_times(struct meter *meter, struct smalti_device_use *use)
{
	HOLD_MUTEX(&meter->mutex);
	advance(meter);
#ifdef STARPU_TRANSFER_CALLBACKS
	use->seconds_to = meter->to;
	use->seconds_from = meter->from;
	use->exposed = meter->exposed;
	use->hidden = meter->to - meter->exposed;
#else
	use->seconds_to = use->seconds_from = use->exposed = use->hidden = (double)NAN;
#endif
	use->used_memory = meter->used;
	use->peak_memory = meter->peak;
	use->peak_tiles = meter->tiles;
	use->flops = meter->flops;
	use->tasks = meter->ended;
	use->repeated = meter->repeated;
}

static void read_use(struct smalti_session *session, unsigned worker, double since,
		     struct smalti_device_use *use)
{
	const unsigned node = starpu_worker_get_memory_node(worker);
	*use = (struct smalti_device_use){.worker = worker, .node = node, .peak = (double)NAN};
	smalti_session_worker_name((int)worker, use->name);
	use->seconds = smalti_now() - session->meters->began;
	use->busy = smalti_session_busy(session, (int)worker) / use->seconds;
	use->utilisation = smalti_device_utilisation(smalti_session_device(session, (int)worker), since);
	use->memory = (int64_t)starpu_memory_get_total(node);
	read_times(&session->meters->of[node], use);
}

static void add_transfer(struct smalti_device_use *use, const struct smalti_transfer *transfer)
{
	if (transfer->to == use->node) {
		use->bytes_to += transfer->bytes;
		use->transfers_to += transfer->count;
	}
	if (transfer->from == use->node) {
		use->bytes_from += transfer->bytes;
		use->transfers_from += transfer->count;
	}
}

int smalti_devices_use_lately(struct smalti_session *session, double since,
			      struct smalti_device_use uses[SMALTI_MAX_NODES])
{
	int count = 0, links = 0;
	if (!session || !session->meters)
		return 0;
	const struct smalti_transfer *transfers = smalti_transfers(session, &links);
	for (int worker = 0; worker < session->workers && count < SMALTI_MAX_NODES; worker++) {
		if (!smalti_session_device(session, worker))
			continue;
		read_use(session, (unsigned)worker, since, &uses[count]);
		for (int link = 0; link < links; link++)
			add_transfer(&uses[count], &transfers[link]);
		count++;
	}
	return count;
}

int smalti_devices_use(struct smalti_session *session, struct smalti_device_use uses[SMALTI_MAX_NODES])
{
	const double began = session && session->meters ? session->meters->wall : 0;
	return smalti_devices_use_lately(session, began, uses);
}

double smalti_device_use_value(const struct smalti_device_use *use,
			       const struct smalti_device_use_field *field)
{
	const void *at = (const char *)use + field->offset;
	return field->real ? *(const double *)at : (double)*(const int64_t *)at;
}

void smalti_device_use_since(struct smalti_device_use *use, const struct smalti_device_use *before)
{
	const double busy = use->busy * use->seconds - before->busy * before->seconds;
	for (int i = 0; i < SMALTI_DEVICE_USE_FIELDS; i++) {
		const struct smalti_device_use_field *field = &smalti_device_use_fields[i];
		void *at = (char *)use + field->offset;
		if (field->grows && field->real)
			*(double *)at -= smalti_device_use_value(before, field);
		else if (field->grows)
			*(int64_t *)at -= (int64_t)smalti_device_use_value(before, field);
	}
	use->busy = use->seconds > 0 ? busy / use->seconds : 0;
}

cJSON *smalti_devices_use_json(const struct smalti_device_use *uses, int count)
{
	cJSON *array = cJSON_CreateArray();
	for (int i = 0; i < count; i++) {
		cJSON *object = cJSON_CreateObject();
		smalti_json_add_text(object, "name", uses[i].name);
		for (int j = 0; j < SMALTI_DEVICE_USE_FIELDS; j++) {
			const struct smalti_device_use_field *field = &smalti_device_use_fields[j];
			const double value = smalti_device_use_value(&uses[i], field);
			if (!isnan(value))
				cJSON_AddNumberToObject(object, field->key, value);
		}
		cJSON_AddItemToArray(array, object);
	}
	return array;
}
