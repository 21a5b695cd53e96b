/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/strategy/cost.h"

/* Whether a strategy or shares are left to this file; NULL is not. */
bool smalti_is_auto(const char *text);

/* The shares that `auto` stands for, by the rates of the devices, of the CPUs where there is none, or of
 * ranks: 1 for the fastest place; one that is 10 % slower at most has the share of the next faster one, so
 * that measurements of equal devices give equal shares. Others in hundredths, rounded down: what a slow place
 * has too much of all others wait for, and what it has too little of they share. */
void smalti_shares_by_rate(const struct smalti_place_facts *facts, double *shares);

enum { SMALTI_STRATEGY_NAME = 48 };

/* The exact strategy that costs least (graphs/strategy/cost.h) and that the places have memory for; of equal
 * ones the one that is tried first: few places before many, and then those with fewer shards. `shares` are of
 * the places, with `fixed` all of them compute; else the faster ones, as many as are best, and the others'
 * become 0. Where there is one place only, it computes, whatever its memory. -1 with SMALTI_ENOMEM where
 * nothing fits. */
int smalti_strategy_choose(const struct smalti_denoising *denoising, const struct smalti_place_facts *facts,
			   bool fixed, double *shares, char name[SMALTI_STRATEGY_NAME],
			   struct smalti_error *error);
