/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/numbers.h"
#include "cli/report.h"
#include "cli/report_html.h"

#include <inttypes.h>
#include <stdlib.h>

static void print_tile(FILE *page, const char *value, const char *name)
{
	fprintf(page, "<div class=\"tile\"><b>%s</b><span>%s</span></div>\n", value, name);
}

/* Sums over the runs: an item that was made again counts again. */
static void print_tiles(FILE *page, const struct smalti_report_data *data)
{
	char text[SMALTI_NUMBER];
	double seconds = 0;
	int64_t items = 0, captions = 0, tokens = 0, pictures = 0;
	for (int i = 0; i < data->runs.count; i++) {
		const struct smalti_run *run = &data->runs.items[i];
		if (!run->count)
			continue;
		const struct smalti_run_point *last = &run->points[run->count - 1];
		seconds += last->time;
		items += last->sample.items;
		captions += last->sample.captions;
		tokens += last->sample.tokens;
		pictures += last->sample.pictures;
	}
	fputs("<div class=\"tiles\">\n", page);
	if (data->rows >= 0)
		print_tile(page, smalti_number_count(data->rows, text), "items committed");
	print_tile(page, smalti_number_count(data->failures.items, text), "items with failures");
	print_tile(page, smalti_number_bytes((double)data->shards_bytes, text), "in shards");
	print_tile(page, smalti_number_count(captions, text), "captions");
	print_tile(page, smalti_number_short((double)tokens, text), "tokens");
	print_tile(page, smalti_number_count(pictures, text), "pictures");
	print_tile(page, smalti_number_seconds(seconds, text), "of work, processes added up");
	if (seconds > 0)
		print_tile(page, smalti_number_short((double)items / seconds, text),
			   "items per process second");
	fputs("</div>\n", page);
}

static void print_group(FILE *page, const struct smalti_failure_group *group)
{
	char text[SMALTI_NUMBER];
	fputs("<tr><td>", page);
	smalti_page_text(page, group->stage);
	fprintf(page, "</td><td class=\"n\">%s</td><td>", smalti_number_count(group->count, text));
	smalti_page_text(page, group->reason);
	fputs("</td><td>", page);
	for (int i = 0; i < SMALTI_FAILURE_EXAMPLES && group->examples[i]; i++) {
		fputs(i ? ", <code>" : "<code>", page);
		smalti_page_text(page, group->examples[i]);
		fputs("</code>", page);
	}
	fputs(group->count > SMALTI_FAILURE_EXAMPLES ? ", \xe2\x80\xa6</td></tr>\n" : "</td></tr>\n", page);
}

static void print_failures(FILE *page, const struct smalti_failures *failures)
{
	char items[SMALTI_NUMBER];
	fputs("<h2>Failures</h2>\n", page);
	if (!failures->lines && !failures->unreadable) {
		fputs("<p class=\"note\">None: every committed item has all its features.</p>\n", page);
		return;
	}
	fprintf(
	    page,
	    "<p class=\"note\">%s items lack features; all of them are listed in failed.jsonl. Numbers in "
	    "reasons are shown as #.</p>\n",
	    smalti_number_count(failures->items, items));
	fputs("<div class=\"wide\"><table><thead><tr><th>stage</th><th class=\"n\">how "
	      "many</th><th>reason</th><th>examples</th></tr></thead><tbody>\n",
	      page);
	for (int i = 0; i < failures->count; i++)
		print_group(page, &failures->groups[i]);
	fputs("</tbody></table></div>\n", page);
	if (failures->others)
		fprintf(page, "<p class=\"note\">%" PRId64 " more, of other reasons.</p>\n",
			failures->others);
	if (failures->unreadable)
		fprintf(page, "<p class=\"note\">%" PRId64 " lines of failed.jsonl cannot be read.</p>\n",
			failures->unreadable);
}

void smalti_report_page(FILE *page, const struct smalti_report_data *data)
{
	smalti_page_begin(page, data->folder);
	fputs("<h1>Extraction into ", page);
	smalti_page_text(page, data->folder);
	fputs("</h1>\n", page);
	print_tiles(page, data);
	if (!data->runs.count)
		fputs(
		    "<p class=\"note\">There is no log of any process in runs/: how fast it was is not known."
		    "</p>\n",
		    page);
	smalti_report_sessions(page, &data->runs);
	print_failures(page, &data->failures);
	smalti_report_histograms(page, &data->runs);
	smalti_report_runs(page, &data->runs);
	smalti_page_end(page);
}
