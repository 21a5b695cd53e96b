/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <stdarg.h>

static void make_one_line(char *text)
{
	for (unsigned char *c = (unsigned char *)text; *c; c++)
		if (*c < 0x20 || *c == 0x7f)
			*c = '?';
}

static void fill(struct smalti_error *error, enum smalti_code code, const char *format, va_list args)
{
	error->code = code;
	vsnprintf(error->message, sizeof(error->message), format, args);
	make_one_line(error->message);
}

int(smalti_fail)(struct smalti_error *error, enum smalti_code code, const char *format, ...)
{
	if (!error || error->code != SMALTI_OK)
		return -1;
	va_list args;
	va_start(args, format);
	fill(error, code, format, args);
	va_end(args);
	return -1;
}

int smalti_pass(struct smalti_error *error, const struct smalti_error *cause)
{
	return cause->code == SMALTI_OK ? 0 : smalti_fail(error, cause->code, "%s", cause->message);
}

static enum smalti_code code_of(int cause)
{
	static const struct {
		int cause;
		enum smalti_code code;
	} codes[] = {
	    {ENOMEM, SMALTI_ENOMEM}, {ENOENT, SMALTI_ENOENT}, {ENOTDIR, SMALTI_ENOENT},
	    {ELOOP, SMALTI_ENOENT},  {ENXIO, SMALTI_ENOENT},  {ENAMETOOLONG, SMALTI_ENOENT},
	};
	for (size_t i = 0; i < COUNT_OF(codes); i++)
		if (codes[i].cause == cause)
			return codes[i].code;
	return SMALTI_EIO;
}

bool smalti_is_of_input(enum smalti_code code)
{
	return code == SMALTI_EINVAL || code == SMALTI_EFORMAT || code == SMALTI_ECORRUPT ||
	       code == SMALTI_EUNSUPPORTED || code == SMALTI_ENOENT;
}

int(smalti_fail_errno)(struct smalti_error *error, const char *format, ...)
{
	int cause = errno;
	if (!error || error->code != SMALTI_OK)
		return -1;
	va_list args;
	va_start(args, format);
	fill(error, code_of(cause), format, args);
	va_end(args);
	size_t length = strlen(error->message);
	snprintf(error->message + length, sizeof(error->message) - length, ": %s", strerror(cause));
	return -1;
}

void smalti_error_report_end(struct smalti_error_report *report)
{
	if (report->caller && report->own.code != SMALTI_OK)
		*report->caller = report->own;
}

void smalti_error_prefix(struct smalti_error *error, const char *format, ...)
{
	if (!error || error->code == SMALTI_OK)
		return;
	char rest[SMALTI_ERROR_LENGTH];
	memcpy(rest, error->message, sizeof(rest));
	enum smalti_code code = error->code;
	va_list args;
	va_start(args, format);
	fill(error, code, format, args);
	va_end(args);
	size_t length = strlen(error->message);
	snprintf(error->message + length, sizeof(error->message) - length, ": %s", rest);
}

int smalti_check_given(const void *pointer, const char *what, struct smalti_error *error)
{
	return pointer ? 0 : smalti_fail(error, SMALTI_EINVAL, "%s: expected, found NULL", what);
}

int smalti_check_text(const char *text, const char *what, struct smalti_error *error)
{
	if (smalti_check_given(text, what, error) < 0)
		return -1;
	return *text ? 0 : smalti_fail(error, SMALTI_EINVAL, "%s: expected, found an empty text", what);
}

int smalti_check_range(int64_t value, int64_t min, int64_t max, const char *what, struct smalti_error *error)
{
	if (value >= min && value <= max)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL, "%s: expected %lld to %lld, found %lld", what,
			   (long long)min, (long long)max, (long long)value);
}
