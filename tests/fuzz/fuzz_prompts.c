/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "text/prompts.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whatever the file, it is read to its end, and what is handed out is in the ranges promised. */
static void check(const struct smalti_prompt_line *line)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	if (!line->prompt || line->line < 1 || (line->id && smalti_check_id(line->id, &error)))
		abort();
	if (line->steps < 0 || line->steps > 1000 || line->images < 0 || line->images > 1000000)
		abort();
	if (line->width < 0 || line->width > 1000000000 || line->height < 0 || line->height > 1000000000)
		abort();
	if (!(line->guidance >= 0 && line->guidance <= 1000))
		abort();
}

FUZZER(data, size)
{
	static int fd = -1;
	static char path[64];
	if (fd < 0)
		fd = memfd_create("prompts", 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_prompts *prompts = smalti_prompts_open(path, &error);
	if (!prompts)
		abort();
	enum smalti_prompts_status status;
	do {
		struct smalti_error why = SMALTI_NO_ERROR;
		struct smalti_prompt_line line;
		status = smalti_prompts_next(prompts, &line, &why);
		if (status == SMALTI_PROMPTS_LINE)
			check(&line);
		const bool bad = status == SMALTI_PROMPTS_BAD || status == SMALTI_PROMPTS_FAILED;
		if (bad != (why.code != SMALTI_OK))
			abort();
		smalti_prompt_line_free(&line);
	} while (status > SMALTI_PROMPTS_END);
	smalti_prompts_close(prompts);
	return 0;
}
