/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/device_lines.h"
#include "cli/numbers.h"

#include <math.h>

/* Appends ", 1.2 GiB to it in 0.4 s", with the time if it is known. */
static void add_transfers(char *line, const char *way, int64_t bytes, double seconds)
{
	char size[SMALTI_NUMBER], time[SMALTI_NUMBER];
	smalti_append(line, SMALTI_DEVICE_LINE, ", ", "%s %s it", smalti_number_bytes((double)bytes, size),
		      way);
	if (!isnan(seconds))
		smalti_append(line, SMALTI_DEVICE_LINE, " in ", "%s", smalti_number_seconds(seconds, time));
}

void smalti_device_line(const struct smalti_device_use *use, char line[SMALTI_DEVICE_LINE])
{
	char time[SMALTI_NUMBER], peak[SMALTI_NUMBER], memory[SMALTI_NUMBER];
	snprintf(line, SMALTI_DEVICE_LINE, "%s: busy %.0f %%", use->name, 100 * use->busy);
	if (!isnan(use->utilisation))
		smalti_append(line, SMALTI_DEVICE_LINE, " ", "(%.0f %% by its driver)",
			      100 * use->utilisation);
	if (use->busy > 0)
		smalti_append(line, SMALTI_DEVICE_LINE, " ", "at %.3g GFLOP/s",
			      1e-9 * use->flops / (use->busy * use->seconds));
	if (!isnan(use->peak))
		smalti_append(line, SMALTI_DEVICE_LINE, " ", "of %.3g in products", 1e-9 * use->peak);
	if (use->repeated > 0)
		smalti_append(line, SMALTI_DEVICE_LINE, ", ", "%lld of %lld tasks as graphs",
			      (long long)use->repeated, (long long)use->tasks);
	add_transfers(line, "to", use->bytes_to, use->seconds_to);
	if (!isnan(use->exposed))
		smalti_append(line, SMALTI_DEVICE_LINE, " ", "(%s exposed)",
			      smalti_number_seconds(use->exposed, time));
	add_transfers(line, "from", use->bytes_from, use->seconds_from);
	smalti_append(line, SMALTI_DEVICE_LINE, ", ", "memory %s of %s",
		      smalti_number_bytes((double)use->peak_memory, peak),
		      smalti_number_bytes((double)use->memory, memory));
}

void smalti_device_lines(struct smalti_progress *progress, struct smalti_session *session)
{
	struct smalti_device_use uses[SMALTI_MAX_NODES];
	char line[SMALTI_DEVICE_LINE];
	const int count = smalti_devices_use(session, uses);
	for (int i = 0; i < count; i++) {
		smalti_device_line(&uses[i], line);
		smalti_progress_print(progress, "%s", line);
	}
	const struct smalti_too_large too_large = smalti_devices_too_large(session);
	char size[SMALTI_NUMBER];
	if (too_large.tasks)
		smalti_progress_print(
		    progress,
		    "%lld tasks were too large for a device's memory, so CPUs ran them; the "
		    "largest, '%s', takes %s",
		    (long long)too_large.tasks, too_large.name,
		    smalti_number_bytes((double)too_large.bytes, size));
}

void smalti_device_json(cJSON *object, struct smalti_session *session)
{
	struct smalti_device_use uses[SMALTI_MAX_NODES];
	const int count = smalti_devices_use(session, uses);
	if (count)
		cJSON_AddItemToObject(object, "devices", smalti_devices_use_json(uses, count));
	const struct smalti_too_large too_large = smalti_devices_too_large(session);
	if (!too_large.tasks)
		return;
	cJSON *found = cJSON_AddObjectToObject(object, "too_large");
	cJSON_AddNumberToObject(found, "tasks", (double)too_large.tasks);
	cJSON_AddNumberToObject(found, "bytes", (double)too_large.bytes);
	cJSON_AddStringToObject(found, "name", too_large.name);
}
