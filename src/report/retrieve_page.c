/* SPDX-License-Identifier: Apache-2.0 */
#include "report/retrieve_page.h"
#include "base/file.h"
#include "report/small_image.h"

#include <math.h>

enum { LONGEST_SIDE = 160 };

struct smalti_retrieve_page {
	struct smalti_writer *writer;
	FILE *out;
	const char *images;
	bool in_query;
};

static void put_text(FILE *out, const char *text)
{
	static const char special[] = "&<>\"'";
	for (; *text; text++)
		if (strchr(special, *text))
			fprintf(out, "&#%d;", *text);
		else
			fputc(*text, out);
}

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<style>\n:root { color-scheme: light dark; }\n"
    "body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem auto; max-width: 64rem; padding: 0 1rem; }\n"
    "h1 { font-size: 1.3rem; } h2 { font-size: 1rem; margin: 2rem 0 .5rem; overflow-wrap: anywhere; }\n"
    "ol { display: flex; flex-wrap: wrap; gap: 1rem; list-style: none; padding: 0; margin: 0; }\n"
    "li { width: 160px; font-size: .8rem; overflow-wrap: anywhere; }\n"
    "img { display: block; max-width: 100%; } small { color: #777; }\n</style>\n";

struct smalti_retrieve_page *smalti_retrieve_page_open(const char *path, const char *index,
						       const char *images, struct smalti_error *error)
{
	struct smalti_retrieve_page *page = smalti_calloc(1, sizeof(*page), error);
	if (!page)
		return NULL;
	page->images = images;
	page->writer = smalti_writer_open(path, error);
	if (!page->writer) {
		free(page);
		return NULL;
	}
	page->out = smalti_writer_stream(page->writer);
	fputs(head, page->out);
	fputs("<title>", page->out);
	put_text(page->out, index);
	fputs("</title>\n<h1>Found in ", page->out);
	put_text(page->out, index);
	fputs("</h1>\n", page->out);
	return page;
}

static void end_query(struct smalti_retrieve_page *page)
{
	if (page->in_query)
		fputs("</ol>\n", page->out);
}

void smalti_retrieve_page_query(struct smalti_retrieve_page *page, const char *name)
{
	end_query(page);
	page->in_query = true;
	fputs("<h2>", page->out);
	put_text(page->out, name);
	fputs("</h2>\n<ol>\n", page->out);
}

static void put_image(const struct smalti_retrieve_page *page, const char *key)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_fit fit;
	SCOPED(free) char *path = smalti_path_beneath(page->images, key, &error);
	SCOPED(free) char *data = path ? smalti_small_image(path, LONGEST_SIDE, &fit, &error) : NULL;
	if (data) {
		fprintf(page->out,
			"<img width=\"%" PRId64 "\" height=\"%" PRId64 "\" alt=\"\" "
			"src=\"data:image/png;base64,%s\">",
			fit.width, fit.height, data);
		return;
	}
	fputs("<small>", page->out);
	put_text(page->out, error.message);
	fputs("</small><br>", page->out);
}

void smalti_retrieve_page_match(struct smalti_retrieve_page *page, const char *key, double score,
				double denoising)
{
	fputs("<li>", page->out);
	if (page->images)
		put_image(page, key);
	fprintf(page->out, "%.4f ", score);
	if (!isnan(denoising))
		fprintf(page->out, "<b>%.6f</b> ", denoising);
	put_text(page->out, key);
	fputs("</li>\n", page->out);
}

int smalti_retrieve_page_commit(struct smalti_retrieve_page *page, struct smalti_error *error)
{
	end_query(page);
	fputs("</html>\n", page->out);
	const int status = smalti_writer_commit(page->writer, error);
	free(page);
	return status;
}

void smalti_retrieve_page_abort(struct smalti_retrieve_page *page)
{
	if (page)
		smalti_writer_abort(page->writer);
	free(page);
}
