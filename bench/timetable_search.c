/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mix.h"
#include "bench/timetable.h"
#include "simulation/bounds.h"

#include <math.h>

/* The work of a search: rounds times tasks. */
enum { WORK = 4000000, MIN_ROUNDS = 200, MAX_ROUNDS = 4000, ANYWHERE = -1, UNDECIDED = -2, SECTIONS = 16 };

/* A list schedule goes by these. */
struct wishes {
	double *rank; /* of each task: the highest goes first among those that could begin equally early */
	int *place;   /* ANYWHERE: where it ends first */
};

/* A task that could be added. */
struct open_task {
	int64_t number;
	int worker;
	double begin;
};

struct search {
	const struct smalti_task_schedule *schedule;
	struct smalti_timetable_model *model;
	const int *fixed;
	struct wishes best, tried;
	struct smalti_timetable *plan, *found;
	int64_t *waits; /* of each task: those before it that are not added */
	int64_t **after, *after_count;
	int64_t *edges;
	int64_t *largest; /* of each task: the largest tile that it reads; -1: none */
	double *ready;    /* of each task that could be added, at each place */
	struct open_task *open;
	int64_t open_count, opened; /* tasks below `opened` were inserted */
	uint64_t random;
};

static double draw(struct search *search)
{
	search->random += UINT64_C(0x9e3779b97f4a7c15);
	return (double)(smalti_mix(search->random) >> 11) * 0x1p-53;
}

static double cost_of(const struct search *search, int64_t task, int place)
{
	return search->schedule->costs[task * search->schedule->places + place];
}

/* The list schedule */

/* Returns the place's worker that is free first. */
static int first_free(const struct search *search, int place)
{
	const struct smalti_task_schedule *s = search->schedule;
	int best = -1;
	for (int worker = 0; worker < s->worker_count; worker++)
		if (s->workers[worker].place == place &&
		    (best < 0 || search->model->free_at[worker] < search->model->free_at[best]))
			best = worker;
	return best;
}

/* Chooses the worker where the task ends first, of those that it may run on. `free_worker`: of each place. */
static void choose_worker(const struct search *search, struct open_task *task, const int *free_worker)
{
	const struct smalti_task_schedule *s = search->schedule;
	const int wish = search->tried.place[task->number],
		  fixed = search->fixed ? search->fixed[task->number] : -1;
	double best = (double)INFINITY;
	task->worker = s->tasks[task->number].worker;
	task->begin = (double)INFINITY;
	for (int place = 0; place < s->places; place++) {
		const int worker = fixed >= 0 ? fixed : free_worker[place];
		if (worker < 0 || s->workers[worker].place != place || (wish >= 0 && wish != place))
			continue;
		const double begin = fmax(search->model->free_at[worker],
					  search->ready[task->number * s->places + place]),
			     end = begin + cost_of(search, task->number, place);
		if (end < best) {
			best = end;
			task->worker = worker;
			task->begin = begin;
		}
	}
}

static void open_task(struct search *search, int64_t task)
{
	const struct smalti_task_schedule *s = search->schedule;
	for (int place = 0; place < s->places; place++)
		search->ready[task * s->places + place] =
		    isinf(cost_of(search, task, place))
			? (double)INFINITY
			: smalti_timetable_model_ready(search->model, task, place);
	search->open[search->open_count++].number = task;
}

/* Opens the tasks that have been inserted since, and wait for nothing. */
static void open_inserted(struct search *search)
{
	for (; search->opened < search->model->inserted; search->opened++)
		if (search->waits[search->opened] == 0)
			open_task(search, search->opened);
}

/* Returns the index of the task that could begin first, and among equals of the highest rank. */
static int64_t choose_task(struct search *search)
{
	const struct smalti_task_schedule *s = search->schedule;
	int free_worker[SMALTI_SCHEDULE_WORKERS];
	int64_t best = 0;
	for (int place = 0; place < s->places; place++)
		free_worker[place] = first_free(search, place);
	for (int64_t i = 0; i < search->open_count; i++) {
		struct open_task *task = &search->open[i];
		const struct open_task *than = &search->open[best];
		choose_worker(search, task, free_worker);
		if (task->begin < than->begin ||
		    (task->begin == than->begin &&
		     search->tried.rank[task->number] > search->tried.rank[than->number]))
			best = i;
	}
	return best;
}

/* Makes the list schedule of the tried wishes. */
static void list(struct search *search)
{
	const struct smalti_task_schedule *s = search->schedule;
	struct smalti_timetable *plan = search->found;
	plan->count = 0;
	plan->makespan = 0;
	for (int64_t i = 0; i < s->count; i++)
		search->waits[i] = s->tasks[i].after_count;
	search->open_count = search->opened = 0;
	smalti_timetable_model_reset(search->model);
	open_inserted(search);
	while (search->open_count) {
		const int64_t index = choose_task(search);
		const struct open_task task = search->open[index];
		search->open[index] = search->open[--search->open_count];
		smalti_timetable_model_add(search->model, task.number, task.worker, plan);
		for (int64_t i = 0; i < search->after_count[task.number]; i++) {
			const int64_t next = search->after[task.number][i];
			if (--search->waits[next] == 0 && next < search->opened)
				open_task(search, next);
		}
		open_inserted(search);
	}
}

/* The search */

/* Ranks tasks by the longest chain from them on, with the least or the mean of each task's costs. */
static void rank_by_chains(struct search *search, bool mean)
{
	const struct smalti_task_schedule *s = search->schedule;
	for (int64_t i = s->count - 1; i >= 0; i--) {
		double chain = 0, least = (double)INFINITY, sum = 0;
		int places = 0;
		for (int64_t j = 0; j < search->after_count[i]; j++)
			chain = fmax(chain, search->tried.rank[search->after[i][j]]);
		for (int place = 0; place < s->places; place++)
			if (!isinf(cost_of(search, i, place))) {
				least = fmin(least, cost_of(search, i, place));
				sum += cost_of(search, i, place);
				places++;
			}
		search->tried.rank[i] = chain + (mean ? sum / smalti_max(places, 1) : least);
		search->tried.place[i] = ANYWHERE;
	}
}

/* Wishes for what a plan did. */
static void wish_for(struct search *search, const struct smalti_timetable *plan, bool places)
{
	for (int64_t i = 0; i < plan->count; i++) {
		search->tried.rank[i] = -plan->begin[i];
		search->tried.place[i] = places ? search->schedule->workers[plan->worker[i]].place : ANYWHERE;
	}
}

static void copy_wishes(struct wishes *to, const struct wishes *from, int64_t count)
{
	memcpy(to->rank, from->rank, (size_t)count * sizeof(*to->rank));
	memcpy(to->place, from->place, (size_t)count * sizeof(*to->place));
}

/* Keeps what is found if it is not longer. */
static void keep(struct search *search)
{
	if (search->found->makespan > search->plan->makespan)
		return;
	smalti_timetable_copy(search->plan, search->found);
	copy_wishes(&search->best, &search->tried, search->schedule->count);
}

static void try_list(struct search *search)
{
	list(search);
	keep(search);
}

static bool is_of_group(const struct search *search, int64_t task, int64_t other)
{
	return task == other ||
	       (search->largest[task] >= 0 && search->largest[task] == search->largest[other]);
}

/* Wishes for a place for all tasks that read the same largest tile as this one: weights come once. */
static void wish_for_group(struct search *search, int64_t task, int place)
{
	const struct smalti_task_schedule *s = search->schedule;
	for (int64_t i = 0; i < s->count; i++)
		if (is_of_group(search, task, i))
			search->tried.place[i] =
			    place != ANYWHERE && isinf(cost_of(search, i, place)) ? ANYWHERE : place;
}

/* Tells whether weights are more than all else that the task reads. */
static bool reads_weights(const struct search *search, int64_t task)
{
	return search->largest[task] >= 0 && !search->schedule->made[search->largest[task]];
}

/* Returns the device that was dealt least. */
static int least_of(const double *dealt, int devices)
{
	int least = 1;
	for (int device = 2; device <= devices; device++)
		if (dealt[device] < dealt[least])
			least = device;
	return least;
}

/* Deals the groups in their order: the first `kept` bytes of weights to main memory, the others to the first
 * devices, so that they use all of their links while CPUs compute. */
static void deal(struct search *search, int devices, double kept)
{
	const struct smalti_task_schedule *s = search->schedule;
	double dealt[SMALTI_AREA_KINDS] = {0};
	for (int64_t i = 0; i < s->count; i++)
		search->tried.place[i] = UNDECIDED;
	for (int64_t i = 0; i < s->count; i++) {
		if (search->tried.place[i] != UNDECIDED)
			continue;
		const int best = dealt[0] < kept ? 0 : least_of(dealt, devices);
		for (int64_t j = i; j < s->count && reads_weights(search, i); j++)
			if (is_of_group(search, i, j))
				dealt[best] += s->weights[j];
		wish_for_group(search, i, reads_weights(search, i) ? best : ANYWHERE);
	}
}

static double time_deal(struct search *search, int devices, double kept)
{
	rank_by_chains(search, false);
	deal(search, devices, kept);
	try_list(search);
	return search->found->makespan;
}

/* Looks for the bytes that main memory keeps best: with more of them the links wait, with fewer the CPUs. */
static void deal_best(struct search *search, int devices)
{
	const struct smalti_task_schedule *s = search->schedule;
	double weights = 0;
	for (int64_t i = 0; i < s->count; i++)
		weights += s->weights[i];
	double least = 0, most = weights;
	for (int step = 0; step < SECTIONS; step++) {
		const double third = (most - least) / 3;
		if (time_deal(search, devices, least + third) < time_deal(search, devices, most - third))
			most -= third;
		else
			least += third;
	}
}

static int draw_place(struct search *search)
{
	const struct smalti_task_schedule *s = search->schedule;
	const int place = (int)(draw(search) * (s->places + 1)) - 1;
	return place != ANYWHERE && s->place_workers[place] ? place : ANYWHERE;
}

/* Changes the ranks of some tasks, of more of them and by more in some rounds than in others. */
static void vary_ranks(struct search *search)
{
	const double share = pow(10, -3 * draw(search)),
		     size = search->plan->makespan * pow(10, -4 * draw(search));
	const bool as_planned = draw(search) < 0.5;
	for (int64_t i = 0; i < search->schedule->count; i++) {
		if (as_planned)
			search->tried.rank[i] = -search->plan->begin[i];
		if (draw(search) < share)
			search->tried.rank[i] += size * (2 * draw(search) - 1);
	}
}

/* Changes some of the best wishes. */
static void vary(struct search *search)
{
	enum { MOST_GROUPS = 4 };
	const struct smalti_task_schedule *s = search->schedule;
	copy_wishes(&search->tried, &search->best, s->count);
	if (s->places == 1 || search->fixed || draw(search) < 0.3) {
		vary_ranks(search);
		return;
	}
	const int groups = 1 + (int)(draw(search) * MOST_GROUPS);
	for (int i = 0; i < groups; i++)
		wish_for_group(search, (int64_t)(draw(search) * (double)s->count), draw_place(search));
}

/* Tries what is given, and places for all tasks. */
static void begin(struct search *search, const struct smalti_timetable *const *from, int count)
{
	const struct smalti_task_schedule *s = search->schedule;
	for (int i = 0; i < count; i++) {
		smalti_timetable_copy(search->found, from[i]);
		smalti_timetable_time(search->model, search->found);
		wish_for(search, from[i], true);
		keep(search);
		try_list(search);
		wish_for(search, from[i], false);
		try_list(search);
	}
	for (int mean = 0; mean < 2; mean++)
		for (int place = ANYWHERE; place < s->places; place++) {
			rank_by_chains(search, mean);
			for (int64_t i = 0; i < s->count && place != ANYWHERE && s->place_workers[place]; i++)
				search->tried.place[i] = isinf(cost_of(search, i, place)) ? ANYWHERE : place;
			try_list(search);
		}
	for (int devices = 1; !search->fixed && devices < s->places && devices < SMALTI_AREA_KINDS; devices++)
		deal_best(search, devices);
}

static void improve(struct search *search, double enough)
{
	const int64_t tasks = search->schedule->count,
		      rounds = smalti_max(MIN_ROUNDS, smalti_min(MAX_ROUNDS, WORK / tasks));
	for (int64_t round = 0; round < rounds && search->plan->makespan > enough; round++) {
		vary(search);
		try_list(search);
	}
}

/* Opening and closing */

/* Turns the edges around. */
static int find_after(struct search *search, struct smalti_error *error)
{
	const struct smalti_task_schedule *s = search->schedule;
	int64_t edges = 0;
	for (int64_t i = 0; i < s->count; i++)
		for (int64_t j = 0; j < s->tasks[i].after_count; j++, edges++)
			search->after_count[s->tasks[i].after[j]]++;
	search->edges = smalti_calloc(edges + 1, sizeof(*search->edges), error);
	if (!search->edges)
		return -1;
	for (int64_t i = 0, at = 0; i < s->count; i++) {
		search->after[i] = search->edges + at;
		at += search->after_count[i];
		search->after_count[i] = 0;
	}
	for (int64_t i = 0; i < s->count; i++)
		for (int64_t j = 0; j < s->tasks[i].after_count; j++) {
			const int64_t before = s->tasks[i].after[j];
			search->after[before][search->after_count[before]++] = i;
		}
	return 0;
}

static void find_largest(struct search *search)
{
	const struct smalti_task_schedule *s = search->schedule;
	for (int64_t i = 0; i < s->count; i++) {
		int64_t *largest = &search->largest[i];
		*largest = -1;
		for (int64_t j = 0; j < s->tasks[i].read_count; j++)
			if (*largest < 0 || s->tiles[s->tasks[i].reads[j]] > s->tiles[*largest])
				*largest = s->tasks[i].reads[j];
	}
}

static int make_wishes(struct wishes *wishes, int64_t count, struct smalti_error *error)
{
	wishes->rank = smalti_calloc(count, sizeof(*wishes->rank), error);
	wishes->place = smalti_calloc(count, sizeof(*wishes->place), error);
	return wishes->rank && wishes->place ? 0 : -1;
}

static int open_search(struct search *search, struct smalti_timetable_rules rules, struct smalti_error *error)
{
	const struct smalti_task_schedule *s = search->schedule;
	const int64_t count = s->count;
	search->model = smalti_timetable_model_new(s, rules, error);
	search->plan = smalti_timetable_new(count, error);
	search->found = smalti_timetable_new(count, error);
	search->waits = smalti_calloc(count, sizeof(*search->waits), error);
	search->after = smalti_calloc(count, sizeof(*search->after), error);
	search->after_count = smalti_calloc(count, sizeof(*search->after_count), error);
	search->ready = smalti_calloc(count, s->places * (int64_t)sizeof(*search->ready), error);
	search->open = smalti_calloc(count, sizeof(*search->open), error);
	search->largest = smalti_calloc(count, sizeof(*search->largest), error);
	if (!search->model || !search->plan || !search->found || !search->waits || !search->after ||
	    !search->after_count || !search->ready || !search->open || !search->largest ||
	    make_wishes(&search->best, count, error) < 0 || make_wishes(&search->tried, count, error) < 0)
		return -1;
	search->plan->makespan = (double)INFINITY;
	find_largest(search);
	return find_after(search, error);
}

static void close_search(struct search *search)
{
	smalti_timetable_model_free(search->model);
	smalti_timetable_free(search->plan);
	smalti_timetable_free(search->found);
	free(search->waits);
	free(search->after);
	free(search->after_count);
	free(search->edges);
	free(search->ready);
	free(search->open);
	free(search->largest);
	free(search->best.rank);
	free(search->best.place);
	free(search->tried.rank);
	free(search->tried.place);
}

struct smalti_timetable *smalti_timetable_search(const struct smalti_task_schedule *schedule,
						 struct smalti_timetable_rules rules, const int *fixed,
						 const struct smalti_timetable *const *from, int count,
						 double enough, struct smalti_error *error)
{
	struct search search = {.schedule = schedule, .fixed = fixed, .random = 1};
	struct smalti_timetable *plan = NULL;
	if (open_search(&search, rules, error) == 0) {
		begin(&search, from, count);
		improve(&search, enough);
		plan = search.plan;
		search.plan = NULL;
	}
	close_search(&search);
	return plan;
}
