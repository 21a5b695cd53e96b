/* SPDX-License-Identifier: Apache-2.0
 *
 * Search (kernels/matches.h). */

/* A group makes the scores of SMALTI_SEARCH_TILE queries and as many rows, of which a thread has every
 * SEARCH_LANES-th. Their values come through local memory, SEARCH_DEPTH at a time. */
enum {
	SEARCH_LANES = 16,
	SEARCH_SIDE = SMALTI_SEARCH_TILE / SEARCH_LANES,
	SEARCH_DEPTH = 16,
	SEARCH_LINE = SMALTI_SEARCH_TILE + 1 /* no two of a column in one bank */
};

/* to[column][row], zeros where there is no row. */
DEVICE void load_turned(GLOBAL const float *x, int64_t dim, int64_t rows, int columns, LOCAL float *to)
{
	const int column = THREAD % SEARCH_DEPTH;
	for (int row = THREAD / SEARCH_DEPTH; row < SMALTI_SEARCH_TILE; row += THREADS / SEARCH_DEPTH)
		if (column < columns)
			to[column * SEARCH_LINE + row] = row < rows ? x[row * dim + column] : 0.f;
}

/* The thread's scores, [query][row]. */
struct scores {
	float of[SEARCH_SIDE][SEARCH_SIDE];
};

DEVICE void add_products(LOCAL const float *left, LOCAL const float *right, int depth, struct scores *sums)
{
	for (int i = 0; i < depth; i++) {
		LOCAL const float *query = left + i * SEARCH_LINE + THREAD / SEARCH_LANES;
		LOCAL const float *row = right + i * SEARCH_LINE + THREAD % SEARCH_LANES;
		UNROLL
		for (int q = 0; q < SEARCH_SIDE; q++) {
			UNROLL
			for (int r = 0; r < SEARCH_SIDE; r++)
				sums->of[q][r] =
				    fma(query[q * SEARCH_LANES], row[r * SEARCH_LANES], sums->of[q][r]);
		}
	}
}

/* The sums of `depth` values are added up in the order of kernels/matmul.h: so they have the bits that a
 * CPU's have. */
DEVICE void add_sums(const struct scores *sums, bool first, struct scores *scores)
{
	UNROLL
	for (int q = 0; q < SEARCH_SIDE; q++) {
		UNROLL
		for (int r = 0; r < SEARCH_SIDE; r++)
			scores->of[q][r] = first ? sums->of[q][r] : scores->of[q][r] + sums->of[q][r];
	}
}

/* Those of `queries` × `rows`, in rows of `stride` elements. */
DEVICE void store_scores(const struct scores *scores, int64_t queries, int64_t rows, int64_t stride,
			 GLOBAL float *to)
{
	UNROLL
	for (int q = 0; q < SEARCH_SIDE; q++) {
		UNROLL
		for (int r = 0; r < SEARCH_SIDE; r++) {
			const int query = THREAD / SEARCH_LANES + q * SEARCH_LANES,
				  row = THREAD % SEARCH_LANES + r * SEARCH_LANES;
			if (query < queries && row < rows)
				to[query * stride + row] = scores->of[q][r];
		}
	}
}

/* scores [queries, count] of rows a.at … of `vectors`. */
KERNEL(search_scores)
(GLOBAL const float *queries, GLOBAL const float *vectors, GLOBAL float *scores,
 struct search_some_arguments a)
{
	LOCAL_ARRAY(float, left, SEARCH_DEPTH *SEARCH_LINE);
	LOCAL_ARRAY(float, right, SEARCH_DEPTH *SEARCH_LINE);
	const int64_t dim = a.of.dim, tiles = (a.count + SMALTI_SEARCH_TILE - 1) / SMALTI_SEARCH_TILE;
	const int64_t query = GROUP / tiles * SMALTI_SEARCH_TILE, row = GROUP % tiles * SMALTI_SEARCH_TILE;
	struct scores all = {{{0}}};
	for (int64_t piece = 0; piece < dim; piece += a.depth) {
		const int64_t end = smaller(piece + a.depth, dim);
		struct scores sums = {{{0}}};
		for (int64_t d = piece; d < end; d += SEARCH_DEPTH) {
			const int depth = (int)smaller(end - d, SEARCH_DEPTH);
			load_turned(queries + query * dim + d, dim, a.of.queries - query, depth, left);
			load_turned(vectors + (a.at + row) * dim + d, dim, a.count - row, depth, right);
			BARRIER();
			add_products(left, right, depth, &sums);
			BARRIER();
		}
		add_sums(&sums, piece == 0, &all);
	}
	store_scores(&all, a.of.queries - query, a.count - row, a.count, scores + query * a.count + row);
}

/* A group has the list of one query. Of some scores at a time those that may belong into it wait in local
 * memory, are sorted, and merged into the list. */
enum {
	WAITING = 1024,
	OWN_WAITING = WAITING / SMALTI_DEVICE_THREADS /* of a thread */
};

/* As kernels/cpu/matches.c. */
DEVICE bool is_better(struct smalti_match a, struct smalti_match b)
{
	return b.row < 0 || a.score > b.score || (a.score == b.score && a.row < b.row);
}

DEVICE struct smalti_match match_of(int64_t row, float score)
{
	struct smalti_match match;
	match.row = row;
	match.score = score;
	match.unused = 0;
	return match;
}

/* Worse than any that there is. */
DEVICE struct smalti_match worst_match(void)
{
	return match_of((int64_t)1 << 62, -INFINITY);
}

/* How many of a list `match` is not better than; its place is behind them. */
DEVICE int64_t place_of(struct smalti_match match, GLOBAL const struct smalti_match *list, int64_t top)
{
	int64_t low = 0;
	for (int64_t high = top; low < high;) {
		const int64_t middle = (low + high) / 2;
		if (is_better(match, list[middle]))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* How many of those that wait, in order, are better than `match`. */
DEVICE int better_than(struct smalti_match match, LOCAL const struct smalti_match *waiting, int count)
{
	int low = 0;
	for (int high = count; low < high;) {
		const int middle = (low + high) / 2;
		if (is_better(waiting[middle], match))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Moves what is in the list to where it is when those that wait are in it, too: from its end on, so that
 * nothing is lost. */
DEVICE void make_room(LOCAL const struct smalti_match *waiting, int count, GLOBAL struct smalti_match *list,
		      int64_t top)
{
	const int64_t first = place_of(waiting[0], list, top);
	for (int64_t end = place_of(worst_match(), list, top); end > first; end -= THREADS) {
		const int64_t at = end - 1 - THREAD;
		struct smalti_match match = worst_match();
		int64_t to = top;
		if (at >= first) {
			match = list[at];
			to = at + better_than(match, waiting, count);
		}
		BARRIER();
		if (to < top)
			list[to] = match;
		BARRIER();
	}
}

/* Those that wait are in order. */
DEVICE void merge_waiting(LOCAL const struct smalti_match *waiting, int count,
			  GLOBAL struct smalti_match *list, int64_t top)
{
	int64_t places[OWN_WAITING];
	UNROLL
	for (int i = 0; i < OWN_WAITING; i++) {
		const int at = THREAD + i * SMALTI_DEVICE_THREADS;
		places[i] = at < count ? at + place_of(waiting[at], list, top) : top;
	}
	BARRIER();
	make_room(waiting, count, list, top);
	BARRIER();
	UNROLL
	for (int i = 0; i < OWN_WAITING; i++)
		if (places[i] < top)
			list[places[i]] = waiting[THREAD + i * SMALTI_DEVICE_THREADS];
	BARRIER();
}

/* A power of two of them, the better one first, by bitonic sorting. */
DEVICE void sort_waiting(LOCAL struct smalti_match *waiting, int count)
{
	for (int size = 2; size <= count; size *= 2)
		for (int step = size / 2; step > 0; step /= 2) {
			for (int i = THREAD; i < count / 2; i += THREADS) {
				const int at = 2 * i - i % step;
				const struct smalti_match a = waiting[at], b = waiting[at + step];
				if (is_better(b, a) == ((at & size) == 0)) {
					waiting[at] = b;
					waiting[at + step] = a;
				}
			}
			BARRIER();
		}
}

/* Behind those that wait there is room up to a power of two. */
DEVICE void offer_waiting(LOCAL struct smalti_match *waiting, int count, GLOBAL struct smalti_match *list,
			  int64_t top)
{
	int size = 1;
	while (size < count)
		size *= 2;
	for (int i = count + THREAD; i < size; i += THREADS)
		waiting[i] = worst_match();
	BARRIER();
	sort_waiting(waiting, size);
	merge_waiting(waiting, count, list, top);
}

/* The sum of the values of the threads before; in `all` that of all. */
DEVICE int group_offset(int value, LOCAL int *room, int *all)
{
	room[THREAD] = value;
	BARRIER();
	for (int step = 1; step < THREADS; step *= 2) {
		const int before = THREAD >= step ? room[THREAD - step] : 0;
		BARRIER();
		room[THREAD] += before;
		BARRIER();
	}
	const int offset = room[THREAD] - value;
	*all = room[THREADS - 1];
	BARRIER();
	return offset;
}

/* Has those of WAITING scores wait that are better than the last of the list, and tells how many: first most,
 * soon few. Numbers that are none match nothing. */
DEVICE int let_wait(GLOBAL const float *scores, int64_t scored, int64_t first, struct smalti_match last,
		    LOCAL struct smalti_match *waiting, LOCAL int *room)
{
	struct smalti_match own[OWN_WAITING];
	int kept = 0, all;
	for (int64_t at = THREAD; at < smaller(scored, WAITING); at += THREADS) {
		const struct smalti_match match = match_of(first + at, scores[at]);
		if (match.score >= last.score && is_better(match, last))
			own[kept++] = match;
	}
	const int offset = group_offset(kept, room, &all);
	for (int i = 0; i < kept; i++)
		waiting[offset + i] = own[i];
	return all;
}

KERNEL(search_best)
(GLOBAL const float *scores, GLOBAL struct smalti_match *matches, struct search_some_arguments a)
{
	LOCAL_ARRAY(struct smalti_match, waiting, WAITING);
	LOCAL_ARRAY(int, room, SMALTI_DEVICE_THREADS);
	const int64_t top = a.of.top;
	GLOBAL struct smalti_match *list = matches + GROUP * top;
	GLOBAL const float *own = scores + GROUP * a.count;
	for (int64_t i = THREAD; !a.of.more && i < top; i += THREADS)
		list[i] = match_of(-1, -INFINITY);
	BARRIER();
	for (int64_t at = 0; at < a.count; at += WAITING) {
		const int count =
		    let_wait(own + at, a.count - at, a.of.first + a.at + at, list[top - 1], waiting, room);
		offer_waiting(waiting, count, list, top);
	}
}

KERNEL(merge_matches)
(GLOBAL const struct smalti_match *others, GLOBAL struct smalti_match *matches,
 struct merge_matches_arguments a)
{
	LOCAL_ARRAY(struct smalti_match, waiting, WAITING);
	GLOBAL const struct smalti_match *own = others + GROUP * a.top;
	GLOBAL struct smalti_match *list = matches + GROUP * a.top;
	const int64_t there = place_of(worst_match(), own, a.top);
	for (int64_t at = 0; at < there && is_better(own[at], list[a.top - 1]); at += WAITING) {
		const int count = (int)smaller(there - at, WAITING);
		for (int i = THREAD; i < count; i += THREADS)
			waiting[i] = own[at + i];
		BARRIER();
		merge_waiting(waiting, count, list, a.top);
	}
}
