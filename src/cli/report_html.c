/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_html.h"

#include "base/utf8.h"

#include <string.h>

static const char style[] =
    ":root{--back:#fff;--text:#1b1f24;--soft:#5b6570;--line:#dfe3e8;--card:#f6f8fa;"
    "--c0:#2b6cb0;--c1:#c05621;--c2:#2f855a;--c3:#b83280;--c4:#6b46c1;--c5:#97810b;--c6:#0e7c86;--c7:#8a5a44}"
    "@media(prefers-color-scheme:dark){:root{--back:#14171b;--text:#e6e9ed;--soft:#98a2ad;--line:#2c333b;"
    "--card:#1c2127;--c0:#63a4e8;--c1:#ef8e4f;--c2:#5cbf8a;--c3:#ec79bd;--c4:#a68bf0;--c5:#d1b93f;--c6:#"
    "45bdc8;"
    "--c7:#c99a80}}"
    "body{font:15px/1.5 system-ui,sans-serif;background:var(--back);color:var(--text);max-width:1100px;"
    "margin:0 auto;padding:1rem 1.5rem 4rem}"
    "h1{font-size:1.5rem;overflow-wrap:anywhere}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}"
    "h3{font-size:1rem;margin:1.2rem 0 .2rem;font-weight:600}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:.7rem}"
    ".tile{background:var(--card);border-radius:8px;padding:.6rem .8rem}"
    ".tile b{display:block;font-size:1.35rem;font-weight:600}.tile span,.note,caption{color:var(--soft)}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.92em}"
    "th,td{text-align:left;padding:.35rem .7rem .35rem 0;border-bottom:1px solid "
    "var(--line);vertical-align:top}"
    "td:not(:first-child){overflow-wrap:anywhere}.n{text-align:right;white-space:nowrap;font-variant-numeric:"
    "tabular-nums}"
    "code{font:13px ui-monospace,monospace}pre{background:var(--card);padding:.8rem;overflow:auto}"
    ".charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,460px),1fr));gap:.4rem "
    "1.6rem}"
    "svg{width:100%;height:auto;display:block}svg text{fill:var(--soft);font:11px system-ui,sans-serif}"
    ".grid{stroke:var(--line)}.key{color:var(--soft);font-size:.88em;margin:0}"
    ".key i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .35em 0 .8em}"
    "summary{cursor:pointer;font-weight:600;margin-top:1rem}"
#define COLOUR(n)                                                                                            \
	".s" #n "{stroke:var(--c" #n ");fill:none;stroke-width:1.6;stroke-linejoin:round}"                   \
	".f" #n "{fill:var(--c" #n ");background:var(--c" #n ")}"
    COLOUR(0) COLOUR(1) COLOUR(2) COLOUR(3) COLOUR(4) COLOUR(5) COLOUR(6) COLOUR(7);

void smalti_page_text(FILE *page, const char *text)
{
	size_t left = strlen(text);
	while (left) {
		const size_t length = smalti_utf8_length(text, left), step = length ? length : 1;
		if (*text == '<')
			fputs("&lt;", page);
		else if (*text == '>')
			fputs("&gt;", page);
		else if (*text == '&')
			fputs("&amp;", page);
		else if (*text == '"')
			fputs("&quot;", page);
		else if (*text == '\'')
			fputs("&#39;", page);
		else if (!length || (unsigned char)*text < 0x20 || *text == 0x7f)
			fputs("\xef\xbf\xbd", page);
		else
			fwrite(text, 1, length, page);
		text += step;
		left -= step;
	}
}

/* The policy holds should ever something slip through: the page runs nothing and loads nothing. */
void smalti_page_begin(FILE *page, const char *title)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
	      "'unsafe-inline'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width\">\n"
	      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
	      page);
	smalti_page_text(page, title);
	fprintf(page, "</title>\n<style>%s</style>\n</head>\n<body>\n", style);
}

void smalti_page_end(FILE *page)
{
	fputs("</body>\n</html>\n", page);
}
