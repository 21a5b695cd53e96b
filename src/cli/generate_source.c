/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/generate.h"
#include "cli/signals.h"

#include <sys/stat.h>

/* Counts the images of a file that can be read twice. */
static int count_images(struct smalti_source *source, struct smalti_error *error)
{
	struct stat info;
	if (strcmp(source->options->prompts, "-") == 0 || stat(source->options->prompts, &info) ||
	    !S_ISREG(info.st_mode))
		return 0;
	struct smalti_prompts *file = smalti_prompts_open(source->options->prompts, error);
	if (!file)
		return -1;
	source->images = 0;
	enum smalti_prompts_status status = SMALTI_PROMPTS_LINE;
	while (status > SMALTI_PROMPTS_END) {
		struct smalti_prompt_line line;
		struct smalti_error bad = SMALTI_NO_ERROR;
		status = smalti_prompts_next(file, &line, &bad);
		if (status == SMALTI_PROMPTS_FAILED)
			smalti_pass(error, &bad);
		else if (status != SMALTI_PROMPTS_END)
			source->images += status == SMALTI_PROMPTS_BAD ? 1
					  : line.images                ? line.images
								       : source->options->request.images;
		smalti_prompt_line_free(&line);
	}
	smalti_prompts_close(file);
	if (source->images == 0)
		smalti_fail(error, SMALTI_EFORMAT, "%s: no prompts in it", source->name);
	return status == SMALTI_PROMPTS_FAILED || source->images == 0 ? -1 : 0;
}

static int open_file(struct smalti_source *source, struct smalti_error *error)
{
	const char *path = source->options->prompts;
	source->name = strcmp(path, "-") == 0 ? "standard input" : path;
	source->images = -1;
	if (!source->options->share && count_images(source, error) < 0)
		return -1;
	source->file = smalti_prompts_open(path, error);
	if (!source->file)
		return -1;
	const bool waits =
	    source->images < 0 && !source->options->share; /* for its writer: a pipe or a terminal */
	if (waits && smalti_signals_end_reads(smalti_prompts_file(source->file)) < 0)
		return smalti_fail_errno(error, "/dev/null cannot be opened");
	return 0;
}

int smalti_source_open(struct smalti_source *source, const struct smalti_generate_options *options,
		       struct smalti_error *error)
{
	*source = (struct smalti_source){.options = options,
					 .name = "--prompt",
					 .images = options->prompt.count * options->request.images};
	return options->prompts ? open_file(source, error) : 0;
}

static enum smalti_prompts_status next_option(struct smalti_source *source, struct smalti_prompt_line *line,
					      struct smalti_error *error)
{
	const struct smalti_string_list *prompts = &source->options->prompt;
	*line = (struct smalti_prompt_line){0};
	if (source->next == prompts->count)
		return SMALTI_PROMPTS_END;
	line->prompt = smalti_format(error, "%s", prompts->items[source->next]);
	line->line = ++source->next;
	return line->prompt ? SMALTI_PROMPTS_LINE : SMALTI_PROMPTS_FAILED;
}

enum smalti_prompts_status smalti_source_next(struct smalti_source *source, struct smalti_item *item,
					      struct smalti_error *error)
{
	const enum smalti_prompts_status status = source->file
						      ? smalti_prompts_next(source->file, &item->line, error)
						      : next_option(source, &item->line, error);
	item->warned = false;
	item->request = smalti_request_of_line(&source->options->request, &item->line);
	item->image = item->line.image ? item->line.image : source->options->image;
	item->mask = item->line.mask ? item->line.mask : source->options->mask;
	if (item->line.id)
		snprintf(item->id, sizeof(item->id), "%s", item->line.id);
	else
		snprintf(item->id, sizeof(item->id), "%" PRId64, item->line.line);
	return status;
}

void smalti_source_add_context(const struct smalti_source *source, const struct smalti_item *item,
			       struct smalti_error *error)
{
	if (source->file)
		smalti_error_prefix(error, "%s:%" PRId64, source->name, item->line.line);
	else if (source->options->prompt.count > 1)
		smalti_error_prefix(error, "prompt %" PRId64, item->line.line);
}
