/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_SUGGEST_H
#define SMALTI_CLI_SUGGEST_H

/* "did you mean": keeps the name that is nearest to what was typed. */
struct smalti_suggestion {
	const char *typed;
	int length;
	const char *name; /* the nearest so far, NULL while none is near enough */
	int distance;
};

struct smalti_suggestion smalti_suggest_start(const char *typed, int length);
void smalti_suggest(struct smalti_suggestion *suggestion, const char *name);

#endif
