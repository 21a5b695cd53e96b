/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/timetable.h"

#include <math.h>

/* How a tile comes to a place. */
struct way {
	int from; /* -1: it has to come from nowhere */
	double begin, end;
};

void smalti_timetable_model_free(struct smalti_timetable_model *m)
{
	if (!m)
		return;
	free(m->ends);
	free(m->waits);
	free(m->pause);
	free(m->end);
	free(m->free_at);
	free(m->valid_at);
	free(m->receives);
	free(m->sends);
	free(m->inserted_at);
	free(m->ended_at);
	free(m);
}

static int make_arrays(struct smalti_timetable_model *m, struct smalti_error *error)
{
	const struct smalti_task_schedule *s = m->schedule;
	m->ends = smalti_calloc(s->count, sizeof(*m->ends), error);
	m->waits = smalti_calloc(s->count, sizeof(*m->waits), error);
	m->pause = smalti_calloc(s->count, sizeof(*m->pause), error);
	m->end = smalti_calloc(s->count, sizeof(*m->end), error);
	m->free_at = smalti_calloc(s->worker_count, sizeof(*m->free_at), error);
	m->valid_at = smalti_calloc(s->tile_count + 1, s->places * (int64_t)sizeof(*m->valid_at), error);
	m->receives = smalti_calloc(s->places, sizeof(*m->receives), error);
	m->sends = smalti_calloc(s->places, sizeof(*m->sends), error);
	m->inserted_at = smalti_calloc(s->count, sizeof(*m->inserted_at), error);
	m->ended_at = smalti_calloc(s->count + 1, sizeof(*m->ended_at), error);
	return m->ends && m->waits && m->pause && m->end && m->free_at && m->valid_at && m->receives &&
		       m->sends && m->inserted_at && m->ended_at
		   ? 0
		   : -1;
}

static int by_end(const void *a, const void *b, void *tasks)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	const struct smalti_schedule_task *of = tasks;
	return of[x].end != of[y].end ? (of[x].end > of[y].end) - (of[x].end < of[y].end) : (x > y) - (x < y);
}

/* Finds, for each task, what had ended when it was inserted, and how long the inserting thread took from
 * there and from the task before. */
static void find_pauses(struct smalti_timetable_model *m)
{
	const struct smalti_task_schedule *s = m->schedule;
	int64_t count = 0;
	double before = 0, ended = 0;
	for (int64_t i = 0; i < s->count; i++)
		m->ends[i] = i;
	qsort_r(m->ends, (size_t)s->count, sizeof(*m->ends), by_end, s->tasks);
	for (int64_t i = 0; m->rules.insertion && i < s->count; i++) {
		const double submitted = fmax(before, s->tasks[i].submitted);
		for (; m->ends[count] < i && s->tasks[m->ends[count]].end <= submitted; count++)
			ended = s->tasks[m->ends[count]].end;
		m->waits[i] = count;
		m->pause[i] = submitted - fmax(before, ended);
		before = submitted;
	}
}

/* Returns how many of its fastest link fill the host's rate; 1 where that is unknown. */
static int count_host_ports(const struct smalti_task_schedule *s)
{
	double rate = 0;
	for (int place = 1; place < s->places; place++)
		rate = fmax(rate, s->links[place].rate);
	return rate > 0 && s->host > rate ? (int)fmin(ceil(s->host / rate), SMALTI_TIMETABLE_PORTS) : 1;
}

struct smalti_timetable_model *smalti_timetable_model_new(const struct smalti_task_schedule *schedule,
							  struct smalti_timetable_rules rules,
							  struct smalti_error *error)
{
	struct smalti_timetable_model *m = smalti_calloc(1, sizeof(*m), error);
	if (!m)
		return NULL;
	m->schedule = schedule;
	m->rules = rules;
	if (make_arrays(m, error) < 0) {
		smalti_timetable_model_free(m);
		return NULL;
	}
	find_pauses(m);
	m->host_ports = count_host_ports(schedule);
	smalti_timetable_model_reset(m);
	return m;
}

/* Inserts what can be inserted. */
static void insert(struct smalti_timetable_model *m)
{
	const int64_t count = m->schedule->count;
	for (; m->ended < count && !isinf(m->end[m->ends[m->ended]]); m->ended++)
		m->ended_at[m->ended + 1] = fmax(m->ended_at[m->ended], m->end[m->ends[m->ended]]);
	for (; m->inserted < count && m->waits[m->inserted] <= m->ended; m->inserted++) {
		const double before = m->inserted ? m->inserted_at[m->inserted - 1] : 0;
		m->inserted_at[m->inserted] =
		    fmax(before, m->ended_at[m->waits[m->inserted]]) + m->pause[m->inserted];
	}
}

void smalti_timetable_model_reset(struct smalti_timetable_model *m)
{
	const struct smalti_task_schedule *s = m->schedule;
	for (int64_t i = 0; i < s->count; i++)
		m->end[i] = (double)INFINITY;
	for (int64_t i = 0; i < s->tile_count * s->places; i++)
		m->valid_at[i] = i % s->places ? (double)INFINITY : 0; /* in main memory */
	memset(m->free_at, 0, (size_t)s->worker_count * sizeof(*m->free_at));
	memset(m->receives, 0, (size_t)s->places * sizeof(*m->receives));
	memset(m->sends, 0, (size_t)s->places * sizeof(*m->sends));
	m->inserted = m->ended = 0;
	insert(m);
}

static int count_ports(const struct smalti_timetable_model *m, int place)
{
	return place == 0 ? m->host_ports : 1;
}

/* Returns when a port becomes free. */
static double first_port(const struct smalti_timetable_model *m, const struct smalti_timetable_ports *of,
			 int place, enum smalti_timetable_lane lane)
{
	double first = (double)INFINITY;
	for (int port = 0; port < count_ports(m, place); port++)
		first = fmin(first, of[place].free_at[lane][port]);
	return first;
}

/* Occupies the port that was busy until shortly before. The others may serve tiles that come earlier. */
static void occupy(const struct smalti_timetable_model *m, struct smalti_timetable_ports *of, int place,
		   enum smalti_timetable_lane lane, double begin, double seconds)
{
	double *free_at = of[place].free_at[lane], *best = free_at;
	for (double *port = free_at; port < free_at + count_ports(m, place); port++)
		if (*port <= begin && (*best > begin || *port > *best))
			best = port;
	*best = begin + seconds;
}

static enum smalti_timetable_lane lane_of(const struct smalti_timetable_model *m, int64_t tile)
{
	return m->schedule->made[tile] ? SMALTI_TIMETABLE_MADE : SMALTI_TIMETABLE_WEIGHTS;
}

/* Finds how the tile arrives first at a place where it is not yet. */
static struct way find_way(const struct smalti_timetable_model *m, int64_t tile, int place)
{
	const struct smalti_task_schedule *s = m->schedule;
	const enum smalti_timetable_lane lane = lane_of(m, tile);
	struct way best = {.from = -1, .end = (double)INFINITY};
	for (int from = 0; from < s->places; from++) {
		const struct smalti_schedule_link *link = &s->links[from * s->places + place];
		const double valid = m->valid_at[tile * s->places + from];
		if (isinf(valid) || link->rate <= 0)
			continue;
		const double begin = fmax(valid, fmax(first_port(m, m->receives, place, lane),
						      first_port(m, m->sends, from, lane))),
			     end = begin + link->delay + s->tiles[tile] / link->rate;
		if (end < best.end)
			best = (struct way){from, begin, end};
	}
	if (best.from < 0)
		best.end = 0;
	return best;
}

double smalti_timetable_model_ready(const struct smalti_timetable_model *m, int64_t number, int place)
{
	const struct smalti_task_schedule *s = m->schedule;
	const struct smalti_schedule_task *task = &s->tasks[number];
	double ready = m->inserted_at[number];
	for (int64_t i = 0; i < task->after_count; i++)
		ready = fmax(ready, m->end[task->after[i]]);
	for (int64_t i = 0; m->rules.moves && i < task->read_count; i++) {
		const double there = m->valid_at[task->reads[i] * s->places + place];
		ready = fmax(ready, isinf(there) ? find_way(m, task->reads[i], place).end : there);
	}
	return ready;
}

/* Returns how long a port of a place is busy with a tile of that many bytes. */
static double occupies(const struct smalti_timetable_model *m, int place, double bytes, double rate)
{
	return place == 0 && m->host_ports > 1 ? bytes * m->host_ports / m->schedule->host : bytes / rate;
}

/* Moves the tile to the place, unless it is there. */
static void move(struct smalti_timetable_model *m, int64_t tile, int place)
{
	const struct smalti_task_schedule *s = m->schedule;
	double *there = &m->valid_at[tile * s->places + place];
	if (!isinf(*there))
		return;
	const struct way way = find_way(m, tile, place);
	*there = way.end;
	if (way.from < 0)
		return;
	const double rate = s->links[way.from * s->places + place].rate;
	const enum smalti_timetable_lane lane = lane_of(m, tile);
	occupy(m, m->receives, place, lane, way.begin, occupies(m, place, s->tiles[tile], rate));
	occupy(m, m->sends, way.from, lane, way.begin, occupies(m, way.from, s->tiles[tile], rate));
}

/* Leaves a tile only where it was written. */
static void write_tile(struct smalti_timetable_model *m, int64_t tile, int place, double at)
{
	double *valid = m->valid_at + tile * m->schedule->places;
	for (int other = 0; other < m->schedule->places; other++)
		valid[other] = (double)INFINITY;
	valid[place] = at;
}

void smalti_timetable_model_add(struct smalti_timetable_model *m, int64_t number, int worker,
				struct smalti_timetable *plan)
{
	const struct smalti_task_schedule *s = m->schedule;
	const struct smalti_schedule_task *task = &s->tasks[number];
	const int place = s->workers[worker].place;
	for (int64_t i = 0; m->rules.moves && i < task->read_count; i++)
		move(m, task->reads[i], place);
	const double begin = fmax(m->free_at[worker], smalti_timetable_model_ready(m, number, place)),
		     end = begin + s->costs[number * s->places + place];
	m->end[number] = m->free_at[worker] = end;
	for (int64_t i = 0; m->rules.moves && i < task->write_count; i++)
		write_tile(m, task->writes[i], place, end);
	plan->sequence[plan->count++] = number;
	plan->worker[number] = worker;
	plan->begin[number] = begin;
	plan->end[number] = end;
	plan->makespan = fmax(plan->makespan, end);
	insert(m);
}

void smalti_timetable_time(struct smalti_timetable_model *m, struct smalti_timetable *plan)
{
	const int64_t count = plan->count;
	plan->count = 0;
	plan->makespan = 0;
	smalti_timetable_model_reset(m);
	for (int64_t i = 0; i < count; i++)
		smalti_timetable_model_add(m, plan->sequence[i], plan->worker[plan->sequence[i]], plan);
}
