/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/matches.h"

#include <math.h>

void smalti_matches_clear(int64_t queries, int64_t top, struct smalti_match *matches)
{
	for (int64_t i = 0; i < queries * top; i++)
		matches[i] = (struct smalti_match){.row = -1, .score = -INFINITY};
}

static bool is_better(const struct smalti_match *a, const struct smalti_match *b)
{
	if (b->row < 0)
		return true;
	return a->score > b->score || (a->score == b->score && a->row < b->row);
}

/* Inserts a match that is better than the last. */
static void insert(int64_t top, const struct smalti_match *match, struct smalti_match *matches)
{
	int64_t at = top - 1;
	for (; at > 0 && is_better(match, &matches[at - 1]); at--)
		matches[at] = matches[at - 1];
	matches[at] = *match;
}

/* Tells whether any score might be among the best. Few are, so most of the time is spent here. */
static bool any_reaches(const float *scores, int64_t count, float min)
{
	int any = 0;
	for (int64_t i = 0; i < count; i++)
		any |= scores[i] >= min;
	return any;
}

static void offer(int64_t top, int64_t first, int64_t count, const float *scores,
		  struct smalti_match *matches)
{
	const struct smalti_match *last = &matches[top - 1];
	for (int64_t i = 0; i < count; i++) {
		const struct smalti_match match = {first + i, scores[i], 0};
		if (match.score >= last->score && is_better(&match, last))
			insert(top, &match, matches);
	}
}

void smalti_matches_offer(int64_t queries, int64_t top, int64_t first, int64_t count, const float *scores,
			  int64_t stride, struct smalti_match *matches)
{
	enum { PIECE = 128 };
	for (int64_t query = 0; query < queries; query++) {
		const float *own = scores + query * stride;
		struct smalti_match *best = matches + query * top;
		for (int64_t at = 0; at < count; at += PIECE) {
			const int64_t piece = smalti_min(PIECE, count - at);
			if (any_reaches(own + at, piece, best[top - 1].score))
				offer(top, first + at, piece, own + at, best);
		}
	}
}

void smalti_matches_merge(int64_t queries, int64_t top, const struct smalti_match *others,
			  struct smalti_match *matches)
{
	for (int64_t i = 0; i < queries; i++) {
		struct smalti_match *best = matches + i * top;
		for (int64_t j = 0; j < top && others[i * top + j].row >= 0; j++) {
			if (!is_better(&others[i * top + j], &best[top - 1]))
				break;
			insert(top, &others[i * top + j], best);
		}
	}
}
