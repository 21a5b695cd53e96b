/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/denoising_count.h"
#include "rt/place_facts.h"

/* The seconds of a pass under an exact strategy, at the place that takes longest:
 *
 *   flops / rate + 15 µs for each task + exposed transfers,
 *
 * where transfers take bytes / bandwidth and the latency once for each block, over the slowest link from
 * another of the branch's places (latents and predictions: of all places), and are hidden behind the other
 * branch's computing, if the place has both, and behind a ring's attention to other ranks. */
struct smalti_cost {
	double seconds;
	double missing; /* bytes of weights, activations and buffers beyond a place's memory; of all places */
};
int smalti_strategy_cost(const struct smalti_denoising *denoising, const struct smalti_strategy *strategy,
			 const struct smalti_place_facts *facts, struct smalti_cost *cost,
			 struct smalti_error *error);
