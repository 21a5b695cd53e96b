/* SPDX-License-Identifier: Apache-2.0 */
#include "simulation/trace_events.h"
#include "base/file.h"

enum { LARGEST_TRACE = 1 << 30 };

static const char *text_of(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static bool is(const cJSON *item, const char *key, const char *value)
{
	const char *text = text_of(item, key);
	return text && strcmp(text, value) == 0;
}

cJSON *smalti_trace_open(const char *path, struct smalti_error *error)
{
	size_t length;
	SCOPED(free) char *text = smalti_file_read(path, LARGEST_TRACE, &length, error);
	cJSON *trace = text ? cJSON_ParseWithLength(text, length) : NULL;
	if (text && !trace)
		smalti_fail(error, SMALTI_EFORMAT, "%s: not JSON", path);
	return trace;
}

const cJSON *smalti_trace_events(const cJSON *trace)
{
	return cJSON_GetObjectItemCaseSensitive(trace, "traceEvents");
}

static enum smalti_trace_kind kind_of(const cJSON *item)
{
	if (is(item, "cat", "task"))
		return SMALTI_TRACE_TASK;
	if (is(item, "cat", "transfer"))
		return SMALTI_TRACE_TRANSFER;
	return is(item, "name", "thread_name") ? SMALTI_TRACE_WORKER : SMALTI_TRACE_OTHER;
}

struct smalti_trace_event smalti_trace_event(const cJSON *item)
{
	const enum smalti_trace_kind kind = kind_of(item);
	const cJSON *arguments = cJSON_GetObjectItemCaseSensitive(item, "args");
	return (struct smalti_trace_event){
	    .kind = kind,
	    .name = text_of(kind == SMALTI_TRACE_WORKER ? arguments : item, "name"),
	    .worker = smalti_json_number(item, "tid"),
	    .start = smalti_json_number(item, "ts"),
	    .duration = smalti_json_number(item, "dur"),
	    .ready = smalti_json_number(arguments, "ready"),
	    .flops = smalti_json_number(arguments, "flops"),
	    .arguments = arguments,
	};
}
