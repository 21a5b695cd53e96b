/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/image_report.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/device_lines.h"
#include "cli/numbers.h"

void smalti_image_report_begin(struct smalti_image_report *report, const struct smalti_command *command,
			       struct smalti_session *session, bool json, bool quiet, int64_t total)
{
	*report = (struct smalti_image_report){.command = command,
					       .session = session,
					       .json = json,
					       .quiet = quiet,
					       .total = total,
					       .began = smalti_now()};
	smalti_progress_begin(&report->progress, stderr, "images", quiet);
}

void smalti_image_report_error(struct smalti_image_report *report, const char *message)
{
	smalti_progress_print(&report->progress, "%s: %s", report->command->name, message);
}

void smalti_image_report_warning(struct smalti_image_report *report, const char *message)
{
	if (!report->quiet)
		smalti_image_report_error(report, message);
}

static void add_json(struct smalti_image_report *report, const struct smalti_image_outcome *outcome)
{
	static const char *const statuses[] = {"ok", "skipped", "failed"};
	char seed[32];
	snprintf(seed, sizeof(seed), "%" PRIu64, outcome->seed);
	cJSON *object = cJSON_CreateObject();
	if (outcome->id)
		cJSON_AddStringToObject(object, "id", outcome->id);
	if (outcome->file)
		cJSON_AddStringToObject(object, "file", outcome->file);
	cJSON_AddStringToObject(object, "status", statuses[outcome->status]);
	if (outcome->error)
		cJSON_AddStringToObject(object, "error", outcome->error->message);
	if (outcome->id)
		cJSON_AddRawToObject(object, "seed", seed);
	cJSON_AddNumberToObject(object, "width", (double)outcome->width);
	cJSON_AddNumberToObject(object, "height", (double)outcome->height);
	if (outcome->id)
		cJSON_AddNumberToObject(object, "image", (double)outcome->image);
	if (outcome->unread && outcome->unread->truncated)
		cJSON_AddStringToObject(object, "cut", outcome->unread->truncated);
	if (outcome->unread && outcome->unread->unknown)
		cJSON_AddStringToObject(object, "unknown_words", outcome->unread->unknown);
	smalti_json_add_seconds(object, outcome->seconds);
	if (outcome->calls) {
		cJSON_AddNumberToObject(object, "calls", (double)outcome->calls);
		cJSON_AddNumberToObject(object, "skipped_calls", (double)outcome->skipped_calls);
	}
	if (outcome->places)
		cJSON_AddItemReferenceToObject(object, "places", (cJSON *)(uintptr_t)outcome->places);
	smalti_json_line(object, &report->broken);
}

void smalti_image_report_progress(struct smalti_image_report *report, double begun, const char *detail)
{
	smalti_progress_within(&report->progress, begun, detail);
	report->progress.failed = report->failed;
	if (report->shared.total) {
		smalti_progress_update(&report->progress, report->shared.done, report->shared.total);
		return;
	}
	/* what was skipped took no time: the rate and the time left are those of the work */
	smalti_progress_update(&report->progress, report->made + report->failed,
			       report->total < 0 ? -1 : report->total - report->skipped);
}

void smalti_image_report_add(struct smalti_image_report *report, const struct smalti_image_outcome *outcome)
{
	char detail[SMALTI_PROGRESS_DETAIL];
	int64_t *const counts[] = {&report->made, &report->skipped, &report->failed};
	*counts[outcome->status] += outcome->images;
	if (outcome->status == SMALTI_IMAGE_MADE) {
		free(report->last);
		report->last = strdup(outcome->file);
	}
	if (outcome->status == SMALTI_IMAGE_FAILED)
		smalti_image_report_error(report, outcome->error->message);
	if (report->json)
		add_json(report, outcome);
	/* it is no longer among those begun */
	memcpy(detail, report->progress.detail, sizeof(detail));
	smalti_image_report_progress(
	    report, report->progress.begun - (outcome->status != SMALTI_IMAGE_SKIPPED), detail);
}

static void summarize_json(struct smalti_image_report *report, const char *signal, double seconds)
{
	cJSON *object = cJSON_CreateObject();
	cJSON *summary = cJSON_AddObjectToObject(object, "summary");
	cJSON_AddNumberToObject(summary, "made", (double)report->made);
	cJSON_AddNumberToObject(summary, "skipped", (double)report->skipped);
	cJSON_AddNumberToObject(summary, "failed", (double)report->failed);
	if (signal)
		cJSON_AddStringToObject(summary, "stopped", signal);
	smalti_json_add_seconds(summary, seconds);
	smalti_device_json(summary, report->session);
	if (report->predicted)
		cJSON_AddItemReferenceToObject(summary, "predicted", report->predicted);
	smalti_json_line(object, &report->broken);
}

static void summarize_stop(struct smalti_image_report *report, const char *signal, const char *remedy)
{
	char left[48] = "";
	if (report->total >= 0)
		snprintf(left, sizeof(left), ", %" PRId64 " left",
			 report->total - report->made - report->skipped - report->failed);
	smalti_progress_print(&report->progress, "%s: stopped by %s: %" PRId64 " image%s made%s%s",
			      report->command->name, signal, report->made, smalti_plural(report->made), left,
			      remedy);
}

static void summarize(struct smalti_image_report *report, double seconds, const char *result)
{
	char rate[32] = "", skipped[48] = "", failed[48] = "", shared[80] = "";
	const bool named = result && strcmp(result, "-") != 0;
	if (report->made > 1)
		snprintf(rate, sizeof(rate), " (%.3g/s)", (double)report->made / seconds);
	if (report->skipped)
		snprintf(skipped, sizeof(skipped), ", %" PRId64 " made earlier", report->skipped);
	if (report->failed)
		snprintf(failed, sizeof(failed), ", %" PRId64 " failed", report->failed);
	if (report->shared.total)
		snprintf(shared, sizeof(shared), "; %" PRId64 " of %" PRId64 " prompts are done",
			 report->shared.done, report->shared.total);
	smalti_progress_print(&report->progress, "%" PRId64 " image%s in %.1f s%s%s%s%s%s%s", report->made,
			      smalti_plural(report->made), seconds, rate, skipped, failed, shared,
			      named ? ": " : "", named ? result : "");
	smalti_device_lines(&report->progress, report->session);
}

enum smalti_exit smalti_image_report_end(struct smalti_image_report *report, const char *signal,
					 const char *remedy, const char *result)
{
	const double seconds = smalti_now() - report->began;
	const bool any = report->made + report->skipped > 0;
	if (report->json)
		summarize_json(report, signal, seconds);
	if (signal)
		summarize_stop(report, signal, remedy);
	else if ((any || report->shared.total) && !report->quiet && !report->json)
		summarize(report, seconds, result || report->made != 1 ? result : report->last);
	else
		smalti_progress_end(&report->progress);
	free(report->last);
	cJSON_Delete(report->predicted);
	if (signal || report->broken || (report->failed && !any))
		return SMALTI_EXIT_FAILED;
	return report->failed ? SMALTI_EXIT_SOME_FAILED : SMALTI_EXIT_OK;
}
