/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/parse.h"

/* A subcommand's options are a table of rows: parsing, --help and the man page all come from it.
 *
 *	struct sample_options { bool quiet; bool has_seed; uint64_t seed; int64_t steps; };
 *	static const struct smalti_option rows[] = {
 *	    {SMALTI_GROUP("Sampling")},
 *	    {SMALTI_INT64(struct sample_options, steps), "steps", 's', "N", "denoising steps",
 *	     .minimum = 1, .maximum = 1000},
 *	    {SMALTI_SEED(struct sample_options, seed), "seed", 0, "N", "seed of the noise",
 *	     SMALTI_GIVEN(struct sample_options, has_seed)},
 *	    {SMALTI_FLAG(struct sample_options, quiet), "quiet", 'q', NULL, "show no progress"},
 *	};
 *
 * A macro whose field is not of the C type named beside it does not compile. */
enum smalti_option_kind {
	SMALTI_OPTION_GROUP,
	SMALTI_OPTION_FLAG,
	SMALTI_OPTION_INT64,
	SMALTI_OPTION_SEED,
	SMALTI_OPTION_DOUBLE,
	SMALTI_OPTION_BYTES,
	SMALTI_OPTION_SIZE,
	SMALTI_OPTION_STRING,
	SMALTI_OPTION_LIST,
	SMALTI_OPTION_CHOICE,
};

struct smalti_option {
	enum smalti_option_kind kind;
	size_t offset;            /* of the value in the command's option struct */
	const char *name;         /* long name without dashes; a group's heading */
	char letter;              /* 0: none */
	const char *argument;     /* its name in the help, NULL for a flag */
	const char *help;         /* lower case, no full stop; range, choices and default are added */
	const char *alias;        /* another long name; NULL: none */
	int64_t minimum, maximum; /* INT64, BYTES, SIZE (of each side): both included */
	double real_minimum, real_maximum; /* DOUBLE: both included */
	const char *const *choices;        /* NULL-terminated; CHOICE has the index, INT64 -1 - index */
	bool has_given;                    /* SMALTI_GIVEN was used */
	size_t given;                      /* offset of a bool set when the option is given */
};

#define SMALTI_FIELD(ctype, type, field) _Generic(((type *)0)->field, ctype : offsetof(type, field))

#define SMALTI_GROUP(heading)      .kind = SMALTI_OPTION_GROUP, .name = (heading)
#define SMALTI_FLAG(type, field)   .kind = SMALTI_OPTION_FLAG, .offset = SMALTI_FIELD(bool, type, field)
#define SMALTI_INT64(type, field)  .kind = SMALTI_OPTION_INT64, .offset = SMALTI_FIELD(int64_t, type, field)
#define SMALTI_SEED(type, field)   .kind = SMALTI_OPTION_SEED, .offset = SMALTI_FIELD(uint64_t, type, field)
#define SMALTI_DOUBLE(type, field) .kind = SMALTI_OPTION_DOUBLE, .offset = SMALTI_FIELD(double, type, field)
#define SMALTI_BYTES(type, field)  .kind = SMALTI_OPTION_BYTES, .offset = SMALTI_FIELD(int64_t, type, field)
/* Two fields; the second one must stand behind the first. */
#define SMALTI_SIZE(type, width, height)                                                                     \
	.kind = SMALTI_OPTION_SIZE,                                                                          \
	.offset =                                                                                            \
	    SMALTI_FIELD(int64_t, type, width) +                                                             \
	    0 * sizeof(char[SMALTI_FIELD(int64_t, type, height) == offsetof(type, width) + 8 ? 1 : -1])
#define SMALTI_STRING(type, field)                                                                           \
	.kind = SMALTI_OPTION_STRING, .offset = SMALTI_FIELD(const char *, type, field)
#define SMALTI_LIST(type, field)                                                                             \
	.kind = SMALTI_OPTION_LIST, .offset = SMALTI_FIELD(struct smalti_string_list, type, field)
/* An int or an enum. */
#define SMALTI_CHOICE(type, field)                                                                           \
	.kind = SMALTI_OPTION_CHOICE, .offset = _Generic(((type *)0)->field, int                             \
							 : offsetof(type, field), unsigned                   \
							 : offsetof(type, field))

#define SMALTI_GIVEN(type, field) .has_given = true, .given = SMALTI_FIELD(bool, type, field)

struct smalti_option_table {
	const struct smalti_option *rows;
	int count;
};
#define SMALTI_OPTION_TABLE(array) (array), (int)(COUNT_OF(array))

/* What the command line asks for: --help, --version and --man are known to every command. */
enum smalti_invocation { SMALTI_RUN, SMALTI_HELP, SMALTI_SHOW_VERSION, SMALTI_MAN };

/* Parses argv (argv[0] is skipped) into `values`, which holds the defaults. Operands are moved
 * behind the options; *first is the index of the first. Uses getopt: one call at a time. */
int smalti_options_parse(const struct smalti_option_table *table, int argc, char **argv, void *values,
			 enum smalti_invocation *request, int *first, struct smalti_error *error);

/* Frees the arrays of the lists in `values`. */
void smalti_options_free(const struct smalti_option_table *table, void *values);

/* "did you mean": keeps the name that is nearest to what was typed. */
struct smalti_suggestion {
	const char *typed;
	int length;
	const char *name; /* the nearest so far, NULL while none is near enough */
	int distance;
};

struct smalti_suggestion smalti_suggest_start(const char *typed, int length);
void smalti_suggest(struct smalti_suggestion *suggestion, const char *name);
