/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "kernels/match.h"

/* The best of many scored rows: for each query `top` matches, the best first. Of equal scores the lower row
 * is better, so that the result does not depend on the order in which rows are offered. */

/* Clears `queries` · `top` matches. */
void smalti_matches_clear(int64_t queries, int64_t top, struct smalti_match *matches);

/* Offers `count` rows from row `first` on, whose scores for query i begin at scores[i · stride]. NaN scores
 * match nothing. */
void smalti_matches_offer(int64_t queries, int64_t top, int64_t first, int64_t count, const float *scores,
			  int64_t stride, struct smalti_match *matches);

/* Offers the matches of another list. */
void smalti_matches_merge(int64_t queries, int64_t top, const struct smalti_match *others,
			  struct smalti_match *matches);
