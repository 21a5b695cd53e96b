/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/timetable.h"

#include <math.h>

#ifdef HAVE_GLPK
#include <glpk.h>

enum { CUTS = 24, MAX_CLASSES = 4000, MAX_SECONDS = 60 };

/* Tasks that cost the same everywhere, and have at least as much time behind them as the same cut. */
struct class
{
	int64_t task; /* one of them */
	int cut;
	double count;
};

/* A linear program whose tasks may be split among places in any shares. The tasks behind which at least the
 * time of a cut passes have to be done, and their weights have to be there, that long before the end. */
struct program {
	const struct smalti_task_schedule *schedule;
	const double *tail;
	double longest;       /* the longest tail */
	double cut[CUTS + 1]; /* the least tail of its tasks */
	struct class *classes;
	int64_t count;
	glp_prob *rows;
	int *index; /* of the row that is being made */
	double *value;
	int length;
};

static int cut_of(const struct program *p, int64_t task)
{
	return p->longest > 0 ? (int)(CUTS * p->tail[task] / p->longest) : 0;
}

static int by_class(const void *a, const void *b, void *user)
{
	const struct program *p = user;
	const struct smalti_task_schedule *s = p->schedule;
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	if (cut_of(p, x) != cut_of(p, y))
		return cut_of(p, x) - cut_of(p, y);
	if (s->weights[x] != s->weights[y])
		return s->weights[x] < s->weights[y] ? -1 : 1;
	return memcmp(s->costs + x * s->places, s->costs + y * s->places,
		      (size_t)s->places * sizeof(*s->costs));
}

/* Sorts the tasks into classes. */
static int classify(struct program *p)
{
	const struct smalti_task_schedule *s = p->schedule;
	SCOPED(free) int64_t *order = smalti_calloc(s->count, sizeof(*order), NULL);
	p->classes = smalti_calloc(s->count, sizeof(*p->classes), NULL);
	if (!order || !p->classes)
		return -1;
	for (int cut = 0; cut <= CUTS; cut++)
		p->cut[cut] = (double)INFINITY;
	for (int64_t i = 0; i < s->count; i++) {
		order[i] = i;
		for (int cut = cut_of(p, i); cut >= 0; cut--)
			p->cut[cut] = fmin(p->cut[cut], p->tail[i]);
	}
	qsort_r(order, (size_t)s->count, sizeof(*order), by_class, p);
	for (int64_t i = 0; i < s->count; i++) {
		if (i == 0 || by_class(&order[i - 1], &order[i], p) != 0)
			p->classes[p->count++] = (struct class){order[i], cut_of(p, order[i]), 0};
		p->classes[p->count - 1].count++;
	}
	return p->count <= MAX_CLASSES ? 0 : -1;
}

/* Returns the column of a class's share at a place; the first is the makespan's. GLPK counts from 1. */
static int share_of(const struct program *p, int64_t class, int place)
{
	return 2 + (int)(class * p->schedule->places) + place;
}

static void add(struct program *p, int column, double value)
{
	p->length++;
	p->index[p->length] = column;
	p->value[p->length] = value;
}

static void end_row(struct program *p, int type, double bound)
{
	const int number = glp_add_rows(p->rows, 1);
	glp_set_row_bnds(p->rows, number, type, bound, bound);
	glp_set_mat_row(p->rows, number, p->length, p->index, p->value);
	p->length = 0;
}

static bool runs_at(const struct program *p, int64_t class, int place)
{
	return !isinf(p->schedule->costs[p->classes[class].task * p->schedule->places + place]);
}

static void add_classes(struct program *p)
{
	glp_add_cols(p->rows, share_of(p, p->count, 0) - 1);
	glp_set_obj_dir(p->rows, GLP_MIN);
	glp_set_obj_coef(p->rows, 1, 1);
	glp_set_col_bnds(p->rows, 1, GLP_LO, 0, 0);
	for (int64_t class = 0; class < p->count; class ++) {
		for (int place = 0; place < p->schedule->places; place++) {
			const bool runs = runs_at(p, class, place);
			glp_set_col_bnds(p->rows, share_of(p, class, place), runs ? GLP_LO : GLP_FX, 0, 0);
			if (runs)
				add(p, share_of(p, class, place), 1);
		}
		end_row(p, GLP_FX, p->classes[class].count);
	}
}

/* Adds what the workers of a place can do before a cut. */
static void add_workers(struct program *p, int cut, int place)
{
	const struct smalti_task_schedule *s = p->schedule;
	const double workers = (double)smalti_max(1, s->place_workers[place]);
	add(p, 1, 1);
	for (int64_t class = 0; class < p->count; class ++)
		if (p->classes[class].cut >= cut && runs_at(p, class, place))
			add(p, share_of(p, class, place),
			    -s->costs[p->classes[class].task * s->places + place] / workers);
	end_row(p, GLP_LO, p->cut[cut]);
}

/* Adds what comes to a device, or with place 0 out of main memory, before a cut. */
static void add_link(struct program *p, int cut, int place)
{
	const struct smalti_task_schedule *s = p->schedule;
	const double rate = smalti_schedule_weights_rate(s, place);
	add(p, 1, 1);
	for (int64_t class = 0; class < p->count; class ++)
		for (int device = 1; device < s->places && p->classes[class].cut >= cut; device++)
			if ((place == 0 || place == device) && runs_at(p, class, device))
				add(p, share_of(p, class, device),
				    -s->weights[p->classes[class].task] / rate);
	end_row(p, GLP_LO, p->cut[cut]);
}

static double solve(struct program *p)
{
	glp_smcp options;
	glp_init_smcp(&options);
	options.msg_lev = GLP_MSG_OFF;
	options.meth = GLP_DUALP;
	options.presolve = GLP_ON;
	options.tm_lim = 1000 * MAX_SECONDS;
	add_classes(p);
	for (int cut = 0; cut <= CUTS; cut++)
		for (int place = 0; place < p->schedule->places && isfinite(p->cut[cut]); place++) {
			add_workers(p, cut, place);
			add_link(p, cut, place);
		}
	const bool solved = glp_simplex(p->rows, &options) == 0 && glp_get_status(p->rows) == GLP_OPT;
	return solved ? glp_get_obj_val(p->rows) : 0;
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
	struct program p = {.schedule = s, .tail = tail};
	double bound = 0;
	for (int64_t i = 0; i < s->count; i++)
		p.longest = fmax(p.longest, tail[i]);
	if (has_links(s) && classify(&p) == 0) {
		const int64_t columns = share_of(&p, p.count, 0);
		p.index = smalti_calloc(columns, sizeof(*p.index), NULL);
		p.value = smalti_calloc(columns, sizeof(*p.value), NULL);
		glp_term_out(GLP_OFF);
		p.rows = glp_create_prob();
		if (p.index && p.value)
			bound = solve(&p);
		glp_delete_prob(p.rows);
	}
	free(p.index);
	free(p.value);
	free(p.classes);
	return bound;
}
#else
double smalti_timetable_links(const struct smalti_task_schedule *s, const double *tail)
{
	(void)s, (void)tail;
	return 0;
}
#endif
