/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/merge.h"
#include "kernels/kernels.h"

#include <math.h>

struct smalti_merge {
	const struct smalti_tensor_view *tensor;
	int64_t out, in;
	struct term {
		const struct smalti_low_rank *change;
		double weight;
	} * terms;
	int count;
	const struct smalti_low_rank *dora; /* the only term, if it has magnitudes */
	pthread_mutex_t lock;
	double *factors; /* m/‖V‖ of each row or column, once they were needed */
};

int smalti_merge_new(struct smalti_merge **merge, const struct smalti_adapter_set *adapters,
		     const struct smalti_tensor_view *tensor, struct smalti_error *error)
{
	*merge = NULL;
	for (int i = 0; adapters && i < adapters->count; i++) {
		const struct smalti_low_rank *change =
		    smalti_adapter_find(adapters->uses[i].adapter, tensor->name);
		if (!change)
			continue;
		if (!*merge && !(*merge = smalti_calloc(1, sizeof(**merge), error)))
			return -1;
		struct smalti_merge *m = *merge;
		if (m->count == 0)
			pthread_mutex_init(&m->lock, NULL);
		m->tensor = tensor;
		m->out = change->out;
		m->in = change->in;
		if (change->magnitude)
			m->dora = change;
		if (smalti_grow(&m->terms, m->count, sizeof(*m->terms), error) < 0)
			return -1;
		m->terms[m->count++] = (struct term){change, adapters->uses[i].weight};
	}
	return 0;
}

void smalti_merge_free(struct smalti_merge *merge)
{
	if (!merge)
		return;
	pthread_mutex_destroy(&merge->lock);
	free(merge->terms);
	free(merge->factors);
	free(merge);
}

/* Computes columns of one row of V = W + Σ w·s·B·A; `file` has room for a whole row. */
static void sum_row(const struct smalti_merge *m, int64_t row, int64_t first_in, int64_t in, float *file,
		    double *sum)
{
	smalti_tensor_values(m->tensor, row, 1, file);
	for (int64_t i = 0; i < in; i++)
		sum[i] = (double)file[first_in + i];
	for (int t = 0; t < m->count; t++) {
		const struct smalti_low_rank *c = m->terms[t].change;
		for (int64_t r = 0; r < c->rank; r++)
			smalti_kernels()->add_scaled(
			    in, m->terms[t].weight * c->scale * (double)c->b[row * c->rank + r],
			    c->a + r * c->in + first_in, sum);
	}
}

/* Room for one row. */
struct row {
	double *sum;
	float *file;
};

static int make_row(const struct smalti_merge *m, struct row *row, struct smalti_error *error)
{
	row->sum = smalti_calloc(m->in, (int64_t)(sizeof(*row->sum) + sizeof(*row->file)), error);
	row->file = row->sum ? (float *)(row->sum + m->in) : NULL;
	return row->sum ? 0 : -1;
}

/* Computes m/‖V‖, which needs all of V. A norm of 0 has no direction: peft's quotient would not be finite. */
static int make_factors(struct smalti_merge *m, struct smalti_error *error)
{
	const bool by_column = m->dora->by_column;
	const int64_t count = by_column ? m->in : m->out;
	struct row row;
	SCOPED(free) double *squares = smalti_calloc(count, sizeof(*squares), error);
	if (!squares || make_row(m, &row, error) < 0)
		return -1;
	for (int64_t o = 0; o < m->out; o++) {
		sum_row(m, o, 0, m->in, row.file, row.sum);
		for (int64_t i = 0; i < m->in; i++)
			squares[by_column ? i : o] += row.sum[i] * row.sum[i];
	}
	free(row.sum);
	for (int64_t i = 0; i < count; i++) {
		if (squares[i] == 0)
			return smalti_fail(error, SMALTI_EFORMAT,
					   "%s: %s %" PRId64 " is zero, so DoRA's magnitude has no direction",
					   m->tensor->name, by_column ? "column" : "row", i);
		squares[i] = (double)m->dora->magnitude[i] / sqrt(squares[i]);
	}
	m->factors = squares;
	squares = NULL;
	return 0;
}

static int need_factors(struct smalti_merge *m, struct smalti_error *error)
{
	HOLD_MUTEX(&m->lock);
	return !m->dora || m->factors ? 0 : make_factors(m, error);
}

int smalti_merge_rows(struct smalti_merge *m, int64_t first_out, int64_t rows, int64_t first_in, int64_t in,
		      float *to, struct smalti_error *error)
{
	struct row row;
	if (need_factors(m, error) < 0 || make_row(m, &row, error) < 0)
		return -1;
	for (int64_t o = first_out; o < first_out + rows; o++, to += in) {
		sum_row(m, o, first_in, in, row.file, row.sum);
		for (int64_t i = 0; i < in; i++) {
			const double factor =
			    !m->dora ? 1 : m->factors[m->dora->by_column ? first_in + i : o];
			to[i] = (float)(factor * row.sum[i]);
		}
	}
	free(row.sum);
	return 0;
}
