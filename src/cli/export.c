/* SPDX-License-Identifier: Apache-2.0 */
#include "smalti/export.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "cli/signals.h"

/* The options of `smalti export`; strings belong to argv. */
struct smalti_export_settings {
	struct smalti_export_options export;
	bool has_format, has_shard_bytes, json, quiet;
};

#define TYPE struct smalti_export_settings

static const char *const formats[] = {"pixart", "safetensors", "webdataset", NULL};

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Export")},
    {SMALTI_CHOICE(TYPE, export.format), "format", 'f', "FORMAT", "output format", .choices = formats,
     SMALTI_GIVEN(TYPE, has_format)},
    {SMALTI_STRING(TYPE, export.output), "output", 'o', "DIR", "output directory; created if necessary"},
    {SMALTI_BYTES(TYPE, export.shard_bytes), "shard-bytes", 0, "SIZE",
     "for safetensors and webdataset: start a new file after SIZE; default 1G", .minimum = 1,
     .maximum = INT64_C(1) << 40, SMALTI_GIVEN(TYPE, has_shard_bytes)},
    {SMALTI_FLAG(TYPE, export.restart), "restart", 0, NULL,
     "start again instead of resuming; files of the same names are replaced"},
    {SMALTI_FLAG(TYPE, export.share), "share", 0, NULL,
     "share the export to pixart with all processes that run this command, on any machines that see both "
     "directories: each writes a part"},
    {SMALTI_INT64(TYPE, export.lease_seconds), "lease", 0, "SECONDS",
     "with --share: seconds without activity after which the work of a process on another machine is taken "
     "over",
     .minimum = 2, .maximum = 86400},

    {SMALTI_GROUP("Output")},
    {SMALTI_FLAG(TYPE, json), "json", 0, NULL,
     "print failed items and a summary as JSON Lines on standard output"},
    {SMALTI_FLAG(TYPE, quiet), "quiet", 'q', NULL, "print errors only"},
};

static const struct smalti_export_settings defaults = {.export = {.lease_seconds = 300}};

static const struct smalti_example examples[] = {
    {"Export for PixArt's training, beside the images in InternImgs",
     "smalti export features --format pixart -o dataset/InternData"},
    {"Write webdataset files of about 512 MiB",
     "smalti export features -f webdataset --shard-bytes 512M -o tars"},
    {"Export with other machines, which run the same command",
     "smalti export features --format pixart -o /shared/InternData --share"},
    {NULL, NULL},
};

struct export
{
	const struct smalti_export_settings *settings;
	struct smalti_export_progress progress;
	struct smalti_progress shown;
	bool checking; /* the bar shows the comparison of names */
	bool broken;   /* the standard output is no longer read */
	double began;
};

/* What was done before took no time: the rate and the time left are those of the work. */
static bool on_watch(void *user, const struct smalti_export_progress *progress)
{
	struct export *e = user;
	if (e->checking && !progress->checking)
		smalti_progress_begin(&e->shown, stderr, "items", e->settings->quiet);
	e->checking = progress->checking;
	char detail[SMALTI_PROGRESS_DETAIL] = "";
	if (progress->waits_for)
		snprintf(detail, sizeof(detail), "waiting for %.*s", SMALTI_PROGRESS_DETAIL - 16,
			 progress->waits_for);
	smalti_progress_within(&e->shown, 0, progress->checking ? "comparing names" : detail);
	smalti_progress_update(&e->shown, progress->rows - progress->before,
			       progress->total - progress->before);
	return !smalti_signals_caught() && !e->broken;
}

static void on_failed(void *user, const struct smalti_error *error)
{
	struct export *e = user;
	smalti_progress_print(&e->shown, "smalti export: %s", error->message);
	if (!e->settings->json)
		return;
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "status", "failed");
	cJSON_AddStringToObject(object, "error", error->message);
	smalti_json_line(object, &e->broken);
}

static void print_summary(struct export *e, const char *signal, double seconds)
{
	const struct smalti_export_progress *p = &e->progress;
	cJSON *object = cJSON_CreateObject();
	cJSON *summary = cJSON_AddObjectToObject(object, "summary");
	cJSON_AddNumberToObject(summary, "items", (double)p->rows);
	cJSON_AddNumberToObject(summary, "before", (double)p->before);
	cJSON_AddNumberToObject(summary, "total", (double)p->total);
	cJSON_AddNumberToObject(summary, "failed", (double)p->failed);
	cJSON_AddNumberToObject(summary, "empty", (double)p->empty);
	cJSON_AddNumberToObject(summary, "files", (double)p->files);
	cJSON_AddBoolToObject(summary, "complete", p->complete);
	if (signal)
		cJSON_AddStringToObject(summary, "stopped", signal);
	smalti_json_add_seconds(summary, seconds);
	smalti_json_line(object, &e->broken);
}

static void summarize(struct export *e, double seconds)
{
	const struct smalti_export_progress *p = &e->progress;
	char before[64] = "", empty[64] = "", failed[64] = "";
	if (p->before == p->total && p->before > 0) {
		smalti_progress_print(&e->shown, "%" PRId64 " items, complete before: %s", p->rows,
				      e->settings->export.output);
		return;
	}
	if (p->before)
		snprintf(before, sizeof(before), ", %" PRId64 " of them before", p->before);
	if (p->empty)
		snprintf(empty, sizeof(empty), ", %" PRId64 " without features", p->empty);
	if (p->failed)
		snprintf(failed, sizeof(failed), ", %" PRId64 " failed", p->failed);
	smalti_progress_print(&e->shown, "%" PRId64 " item%s in %.1f s, %" PRId64 " file%s written%s%s%s: %s",
			      p->rows, smalti_plural(p->rows), seconds, p->files, smalti_plural(p->files),
			      before, empty, failed, e->settings->export.output);
}

static enum smalti_exit stop(struct export *e, const char *signal)
{
	if (!signal) /* the reader of the standard output has gone */
		return SMALTI_EXIT_FAILED;
	smalti_progress_print(&e->shown,
			      "smalti export: stopped by %s: %" PRId64 " of %" PRId64
			      " items are safe; the same command goes on",
			      signal, e->progress.safe, e->progress.total);
	return SMALTI_EXIT_FAILED;
}

static enum smalti_exit finish(struct export *e, int status, const struct smalti_error *error)
{
	const bool stopped = status && error->code == SMALTI_ECANCELLED;
	const char *signal = stopped ? smalti_signals_caught() : NULL;
	const double seconds = smalti_now() - e->began;
	if (e->settings->json && (!status || stopped))
		print_summary(e, signal, seconds);
	if (stopped)
		return stop(e, signal);
	if (!status && !e->settings->quiet && !e->settings->json)
		summarize(e, seconds);
	else
		smalti_progress_end(&e->shown);
	if (status)
		return smalti_command_fail(&smalti_export_command, error);
	if (e->broken)
		return SMALTI_EXIT_FAILED;
	return e->progress.failed ? SMALTI_EXIT_SOME_FAILED : SMALTI_EXIT_OK;
}

static enum smalti_exit run_command(void *options, int count, char **operands)
{
	const struct smalti_export_settings *settings = options;
	struct export e = {.settings = settings, .began = smalti_now()};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_export_options export = settings->export;
	if (count != 1)
		return smalti_usage_error(&smalti_export_command, "name one directory of features, found %d",
					  count);
	if (!settings->has_format)
		return smalti_usage_error(&smalti_export_command,
					  "no format: give --format pixart, safetensors or webdataset");
	if (!export.output || !*export.output)
		return smalti_usage_error(&smalti_export_command,
					  "no place for the files: give -o DIRECTORY");
	export.directory = operands[0];
	export.on_progress = on_watch;
	export.failed = on_failed;
	export.user = &e;
	if (settings->has_shard_bytes && export.format == SMALTI_EXPORT_PIXART)
		return smalti_usage_error(
		    &smalti_export_command,
		    "--shard-bytes: has no meaning for pixart, which has a file per caption "
		    "and image");
	smalti_signals_catch();
	smalti_progress_begin(&e.shown, stderr, "items", settings->quiet);
	const int status = smalti_export(&export, &e.progress, &error);
	return finish(&e, status, &error);
}

const struct smalti_command smalti_export_command = {
    .name = "smalti export",
    .summary = "export features to other formats",
    .operands = "DIR",
    .description =
	"Converts a directory of features, as written by smalti extract, to files that other programs read. "
	"The checksum of every row is verified; damaged rows are reported and skipped.\n\npixart: the files "
	"that PixArt-Sigma's multi-scale training reads with this directory as its root: "
	"caption_features_new/NAME.npz (\"caption_feature\" float16 [1, tokens, width] and "
	"\"attention_mask\" int16 [1, tokens]; padding is zeros) for captions with the key \"prompt\", "
	"sharegpt4v_caption_features_new/NAME.npz and so on for other keys, and "
	"img_sdxl_vae_features_SIZEresolution_ms_new/NAME.npy (float32 [2 x channels, height, width]). As in "
	"PixArt's loader, NAME is the item's path with the last '/' replaced by '_'. Items with equal names "
	"are refused before anything is written.\n\nsafetensors: features-000000.safetensors and so on, with "
	"tensors \"t5/CAPTION/KEY\" [tokens, width] and \"vae/KEY\" in the features' data type; "
	"features-000000.jsonl contains the token ids and original size of each item.\n\nwebdataset: "
	"features-000000.tar and so on, with members INDEX.json (which contains the item's key), "
	"INDEX.t5.npy (INDEX.t5-2.npy for a second caption) and INDEX.vae.npy.\n\nEach file appears when it "
	"is complete. The same command continues an interrupted export from what is stored safely on disk, "
	"and leaves a complete one unchanged. .smalti-export.json records the progress.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run_command,
    .alone = true,
};
