/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/strategy/cost.h"

/* Tells whether a strategy or shares are "auto"; NULL is not. */
bool smalti_is_auto(const char *text);

/* Makes the shares of `auto` by the rates of the devices, of the CPUs if there is none, or of ranks. The
 * fastest place has 1. One that is 10 % slower at most has the share of the next faster one, so that
 * measurements of equal devices give equal shares. Others have hundredths, rounded down: all places wait for
 * a slow one with too much; what it has too little of, they share. */
void smalti_shares_by_rate(const struct smalti_place_facts *facts, double *shares);

enum { SMALTI_STRATEGY_NAME = 48 };

/* Chooses the exact strategy that costs least (graphs/strategy/cost.h) and fits the places' memory; of equal
 * ones the first that is tried: few places before many, then few shards. `shares` are of the places. With
 * `fixed` all compute; else the best number of the fastest, and the others' shares become 0. A single place
 * computes whatever its memory. -1 with SMALTI_ENOMEM if nothing fits. */
int smalti_strategy_choose(const struct smalti_denoising *denoising, const struct smalti_place_facts *facts,
			   bool fixed, double *shares, char name[SMALTI_STRATEGY_NAME],
			   struct smalti_error *error);
