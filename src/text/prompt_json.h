/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_TEXT_PROMPT_JSON_H
#define SMALTI_TEXT_PROMPT_JSON_H

#include "text/prompts.h"

#include <stddef.h>

/* One line of JSON (a NUL behind its `length` bytes) into *line, whose strings may be partly filled
 * when it fails: free them either way. */
int smalti_prompt_parse_json(const char *text, size_t length, struct smalti_prompt_line *line,
			     struct smalti_error *error);

#endif
