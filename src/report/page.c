/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page.h"
#include "base/utf8.h"
#include "rt/device_use.h"

#include <math.h>

/* src/report/page.html, as the build made it of page.html.in and Chart.js. */
__asm__(".pushsection .rodata\n"
	".local smalti_report_html\n"
	"smalti_report_html: .incbin \"src/report/page.html\"\n"
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

void smalti_page_text(FILE *page, const char *text)
{
	size_t left = strlen(text);
	fputc('"', page);
	while (left) {
		const size_t length = smalti_utf8_length(text, left), step = length ? length : 1;
		const bool special = (unsigned char)*text < 0x20 || strchr("\"\\<>&\x7f", *text);
		if (length && special)
			fprintf(page, "\\u%04x", (unsigned)*text);
		else
			fwrite(length ? text : "\xef\xbf\xbd", 1, length ? length : 3, page);
		text += step;
		left -= step;
	}
	fputc('"', page);
}

void smalti_page_member(FILE *page, const char *key, const char *text)
{
	fprintf(page, "\"%s\":", key);
	smalti_page_text(page, text);
	fputc(',', page);
}

const char *smalti_text_of(const cJSON *item)
{
	const char *text = cJSON_GetStringValue(item);
	return text ? text : "";
}

void smalti_page_value(FILE *page, const char *key, const cJSON *object)
{
	smalti_page_member(page, key, smalti_text_of(cJSON_GetObjectItemCaseSensitive(object, key)));
}

void smalti_page_list(FILE *page, const char *key, const cJSON *texts)
{
	const cJSON *text = NULL;
	fprintf(page, "\"%s\":[", key);
	cJSON_ArrayForEach (text, texts) {
		fputs(text == texts->child ? "" : ",", page);
		smalti_page_text(page, smalti_text_of(text));
	}
	fputs("],\n", page);
}

void smalti_page_prediction(FILE *page, const cJSON *prediction)
{
	const double seconds = smalti_json_number(prediction, "seconds"),
		     measured = smalti_json_number(prediction, "measured");
	if (!isfinite(seconds) || !isfinite(measured)) {
		fputs("\"predicted\":null,", page);
		return;
	}
	fputs("\"predicted\":[", page);
	smalti_page_text(page, smalti_text_of(cJSON_GetObjectItemCaseSensitive(prediction, "machine")));
	fprintf(page, ",%.9g,%.9g],", seconds, measured);
}

void smalti_page_devices(FILE *page, const cJSON *devices)
{
	const cJSON *device = NULL;
	fputs("\"devices\":[", page);
	cJSON_ArrayForEach (device, devices) {
		fputs(device == devices->child ? "{" : ",{", page);
		for (int i = 0; i < SMALTI_DEVICE_USE_FIELDS; i++) {
			const char *key = smalti_device_use_fields[i].key;
			const cJSON *value = cJSON_GetObjectItemCaseSensitive(device, key);
			if (cJSON_IsNumber(value) && isfinite(value->valuedouble))
				fprintf(page, "\"%s\":%.9g,", key, value->valuedouble);
		}
		fputs("\"name\":", page);
		smalti_page_text(page, smalti_text_of(cJSON_GetObjectItemCaseSensitive(device, "name")));
		fputs("}", page);
	}
	fputs("],", page);
}
