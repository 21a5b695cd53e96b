/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/linear_program.h"
#include "bench/timetable.h"

#include <math.h>

enum { CUTS = 24, MAX_KINDS = 4000 };

/* Tasks that cost the same everywhere, and have at least as much time behind them as the same cut. */
struct kind {
	int64_t task; /* one of them */
	int cut;
	double count;
};

/* A linear program whose tasks may be split among places in any shares. The tasks behind which at least the
 * time of a cut passes have to be done, and their weights have to be there, that long before the end. */
struct cuts {
	const struct smalti_task_schedule *schedule;
	const double *tail;
	double longest;       /* the longest tail */
	double cut[CUTS + 1]; /* the least tail of its tasks */
	struct kind *kinds;
	int64_t count;
	struct smalti_linear_program *program;
};

static int cut_of(const struct cuts *p, int64_t task)
{
	return p->longest > 0 ? (int)(CUTS * p->tail[task] / p->longest) : 0;
}

static int by_kind(const void *a, const void *b, void *user)
{
	const struct cuts *p = user;
	const struct smalti_task_schedule *s = p->schedule;
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	if (cut_of(p, x) != cut_of(p, y))
		return cut_of(p, x) - cut_of(p, y);
	if (s->weights[x] != s->weights[y])
		return s->weights[x] < s->weights[y] ? -1 : 1;
	return memcmp(s->costs + x * s->places, s->costs + y * s->places,
		      (size_t)s->places * sizeof(*s->costs));
}

/* Sorts the tasks into kinds. */
static int sort_kinds(struct cuts *p)
{
	const struct smalti_task_schedule *s = p->schedule;
	SCOPED(free) int64_t *order = smalti_calloc(s->count, sizeof(*order), NULL);
	p->kinds = smalti_calloc(s->count, sizeof(*p->kinds), NULL);
	if (!order || !p->kinds)
		return -1;
	for (int cut = 0; cut <= CUTS; cut++)
		p->cut[cut] = (double)INFINITY;
	for (int64_t i = 0; i < s->count; i++) {
		order[i] = i;
		for (int cut = cut_of(p, i); cut >= 0; cut--)
			p->cut[cut] = fmin(p->cut[cut], p->tail[i]);
	}
	qsort_r(order, (size_t)s->count, sizeof(*order), by_kind, p);
	for (int64_t i = 0; i < s->count; i++) {
		if (i == 0 || by_kind(&order[i - 1], &order[i], p) != 0)
			p->kinds[p->count++] = (struct kind){order[i], cut_of(p, order[i]), 0};
		p->kinds[p->count - 1].count++;
	}
	return p->count <= MAX_KINDS ? 0 : -1;
}

/* Returns the column of a kind's share at a place; the first is the makespan's. */
static int share_of(const struct cuts *p, int64_t kind, int place)
{
	return 2 + (int)(kind * p->schedule->places) + place;
}

static bool runs_at(const struct cuts *p, int64_t kind, int place)
{
	return !isinf(p->schedule->costs[p->kinds[kind].task * p->schedule->places + place]);
}

static void add_kinds(struct cuts *p)
{
	for (int64_t kind = 0; kind < p->count; kind++) {
		for (int place = 0; place < p->schedule->places; place++) {
			if (runs_at(p, kind, place))
				smalti_linear_program_add(p->program, share_of(p, kind, place), 1);
			else
				smalti_linear_program_leave_out(p->program, share_of(p, kind, place));
		}
		smalti_linear_program_equal(p->program, p->kinds[kind].count);
	}
}

/* Adds what the workers of a place can do before a cut. */
static void add_workers(struct cuts *p, int cut, int place)
{
	const struct smalti_task_schedule *s = p->schedule;
	const double workers = (double)smalti_max(1, s->place_workers[place]);
	smalti_linear_program_add(p->program, 1, 1);
	for (int64_t kind = 0; kind < p->count; kind++)
		if (p->kinds[kind].cut >= cut && runs_at(p, kind, place))
			smalti_linear_program_add(p->program, share_of(p, kind, place),
						  -s->costs[p->kinds[kind].task * s->places + place] /
						      workers);
	smalti_linear_program_at_least(p->program, p->cut[cut]);
}

/* Adds what comes to a device, or with place 0 out of main memory, before a cut. */
static void add_link(struct cuts *p, int cut, int place)
{
	const struct smalti_task_schedule *s = p->schedule;
	const double rate = smalti_schedule_weights_rate(s, place);
	smalti_linear_program_add(p->program, 1, 1);
	for (int64_t kind = 0; kind < p->count; kind++)
		for (int device = 1; device < s->places && p->kinds[kind].cut >= cut; device++)
			if ((place == 0 || place == device) && runs_at(p, kind, device))
				smalti_linear_program_add(p->program, share_of(p, kind, device),
							  -s->weights[p->kinds[kind].task] / rate);
	smalti_linear_program_at_least(p->program, p->cut[cut]);
}

static double solve(struct cuts *p)
{
	add_kinds(p);
	for (int cut = 0; cut <= CUTS; cut++)
		for (int place = 0; place < p->schedule->places && isfinite(p->cut[cut]); place++) {
			add_workers(p, cut, place);
			add_link(p, cut, place);
		}
	const double optimum = smalti_linear_program_solve(p->program);
	return isnan(optimum) ? 0 : optimum;
}

static bool has_links(const struct smalti_task_schedule *s)
{
	bool all = true;
	for (int place = 0; place < s->places; place++)
		all = all && smalti_schedule_weights_rate(s, place) > 0;
	return all;
}

double smalti_timetable_links(const struct smalti_task_schedule *s, const double *tail)
{
	struct cuts p = {.schedule = s, .tail = tail};
	double bound = 0;
	for (int64_t i = 0; i < s->count; i++)
		p.longest = fmax(p.longest, tail[i]);
	if (has_links(s) && sort_kinds(&p) == 0)
		p.program = smalti_linear_program_new(share_of(&p, p.count, 0) - 1);
	if (p.program)
		bound = solve(&p);
	smalti_linear_program_free(p.program);
	free(p.kinds);
	return bound;
}
