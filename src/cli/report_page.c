/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report.h"

#include <string.h>

/* src/cli/report.html, as the build made it of report.html.in and Chart.js. */
__asm__(".pushsection .rodata\n"
	".local smalti_report_html\n"
	"smalti_report_html: .incbin \"src/cli/report.html\"\n"
	".byte 0\n"
	".popsection\n");
extern const char smalti_report_html[] __attribute__((visibility("hidden")));

static const char mark[] = "@DATA@";

void smalti_page_begin(FILE *page)
{
	fwrite(smalti_report_html, 1, (size_t)(strstr(smalti_report_html, mark) - smalti_report_html), page);
}

void smalti_page_end(FILE *page)
{
	fputs(strstr(smalti_report_html, mark) + strlen(mark), page);
}
