/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What one place bears of a denoising that a strategy spreads. */

/* Bytes that come to it in one pass behind the warm-up, by what they are. */
struct smalti_traffic {
	double keys;       /* keys and values of other tokens */
	double heads;      /* Ulysses: queries to their shards, and what they attended to back home */
	double sums;       /* tensor: what shards compute from, and the sums that pass through them */
	double stream;     /* a band that goes to its next stage; the latents, and the transformer's output */
	double modulation; /* of the timestep */
};

static inline double smalti_traffic_bytes(const struct smalti_traffic *traffic)
{
	return traffic->keys + traffic->heads + traffic->sums + traffic->stream + traffic->modulation;
}

struct smalti_load {
	struct smalti_traffic traffic;
	double flops;       /* of a pass */
	double attention;   /* those of them that attend to other ranks' keys */
	double blocks;      /* that a pass goes through there, of all branches */
	double operations;  /* of a pass: tasks, where none are joined */
	double weights;     /* bytes, as a device holds them */
	double activations; /* bytes of what it computes, at most at a time */
	double buffers; /* bytes of others' keys in one block, of bands that come for a shard's part, and of
			   what is kept for the next pass */
};
