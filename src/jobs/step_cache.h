/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/sealed.h"
#include "graphs/step_cache.h"
#include "samplers/sampler.h"

/* The step cache of a request (graphs/step_cache.h): what its text says, and tables of bounds in files. */

/* Reads "first-block:X", "bound:X" or "calibration"; NULL is no cache. A bound has no table yet. */
int smalti_step_cache_parse(const char *text, struct smalti_step_cache_rule *rule,
			    struct smalti_error *error);

/* A table is of a model's calls with these timesteps and this guidance. */
struct smalti_step_cache_key {
	const char *model; /* digest */
	const char *precision;
	const char *scheduler; /* name; NULL: it has none */
	double guidance;
	const struct smalti_sampler *sampler;
};

struct smalti_step_cache_table {
	int64_t steps;
	char digest[SMALTI_HEX_DIGITS + 1];
	smalti_step_ratios ratios[];
};

/* Reads the file's table for a key; NULL with an error that says which there are. Free with free(). */
struct smalti_step_cache_table *smalti_step_cache_table_read(const char *path,
							     const struct smalti_step_cache_key *key,
							     struct smalti_error *error);
/* Writes a table that so many images measured into a file, in place of one of the same key. Other tables
 * stay; the file may be missing. */
int smalti_step_cache_table_write(const char *path, const struct smalti_step_cache_key *key, int64_t images,
				  const smalti_step_ratios *ratios, struct smalti_error *error);
