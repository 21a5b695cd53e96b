/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "smalti/verify.h"
#include "store/directory.h"

/* The findings of a check of a directory. */
struct smalti_checker {
	const char *directory;
	const struct smalti_verify_options *options;
	struct smalti_verify_result *result;
	struct smalti_shards shards;
	bool extract_broken;
	cJSON *manifest; /* NULL: there is none that can be read */
	int64_t items;   /* that there should be; -1: not known */
	int64_t lost;    /* items of shards that the manifest has, but the directory has not */
};

/* Tells of a problem; the text is "FILE: " and what is said here. */
void smalti_checker_say(struct smalti_checker *checker, const char *kind, const char *file,
			const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Tells of a failure, which names DIRECTORY/FILE. */
void smalti_checker_say_error(struct smalti_checker *checker, const char *kind, const char *file, int64_t row,
			      const char *key, const struct smalti_error *cause);

/* Checks the shards, row by row, and what they say of themselves. */
int smalti_checker_shards(struct smalti_checker *checker, struct smalti_error *error);
/* Repairs what was found. The lock is held. */
int smalti_checker_repair(struct smalti_checker *checker, int64_t now, struct smalti_error *error);
int smalti_checker_clean(struct smalti_checker *checker, int64_t now, const struct smalti_strays *strays,
			 struct smalti_error *error);
