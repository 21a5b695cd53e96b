/* SPDX-License-Identifier: Apache-2.0 */
#include "report/training.h"
#include "base/file.h"
#include "report/page.h"
#include "report/samples.h"
#include "share/lock.h"

#include <math.h>

/* Points of a page; more are joined with their neighbours. */
enum { POINTS = 1 << 12 };

enum joining { MEAN, SUM, LARGEST };

static const struct field {
	const char *key;
	enum joining joining;
} fields[SMALTI_TRAINING_FIELDS] = {
    [SMALTI_TRAINING_LOSS] = {"loss", MEAN},
    [SMALTI_TRAINING_MSE] = {"mse", MEAN},
    [SMALTI_TRAINING_VB] = {"vb", MEAN},
    [SMALTI_TRAINING_NORM] = {"norm", MEAN},
    [SMALTI_TRAINING_RATE] = {"lr", MEAN},
    [SMALTI_TRAINING_SCALE] = {"scale", MEAN},
    [SMALTI_TRAINING_TFLOPS] = {"tflops", MEAN},
    [SMALTI_TRAINING_SECONDS] = {"seconds", MEAN},
    [SMALTI_TRAINING_SAMPLES_PER_SECOND] = {"samples_per_second", MEAN},
    [SMALTI_TRAINING_DATA_SECONDS] = {"data_seconds", MEAN},
    [SMALTI_TRAINING_UPDATE_SECONDS] = {"update_seconds", MEAN},
    [SMALTI_TRAINING_RESIDENT] = {"resident", LARGEST},
    [SMALTI_TRAINING_MOVED] = {"moved", SUM},
    [SMALTI_TRAINING_LATENT_PIXELS] = {"latent_pixels", MEAN},
    [SMALTI_TRAINING_CAPTION_TOKENS] = {"caption_tokens", MEAN},
    [SMALTI_TRAINING_DEVICE_MEMORY] = {"device_memory", LARGEST},
    [SMALTI_TRAINING_DEVICE_UTILISATION] = {"device_utilisation", MEAN},
};

static double number(const cJSON *line, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(line, key);
	return cJSON_IsNumber(item) && isfinite(item->valuedouble) ? item->valuedouble : NAN;
}

static int64_t step_of(const cJSON *line, const char *key)
{
	const double step = number(line, key);
	return step >= 0 && step < 0x1p53 ? (int64_t)step : -1;
}

/* Drops the lines of a list of steps behind `step`. */
static void forget_lines(cJSON *lines, int64_t step)
{
	for (int i = cJSON_GetArraySize(lines) - 1; i >= 0; i--)
		if (step_of(cJSON_GetArrayItem(lines, i), "step") > step)
			cJSON_DeleteItemFromArray(lines, i);
}

/* Forgets the steps behind `step`: a process went on there. */
static void forget_behind(struct smalti_training_history *history, int64_t step)
{
	while (history->count && history->points[history->count - 1].step > step)
		history->count--;
	forget_lines(history->evaluations, step);
}

static int take_head(struct smalti_training_history *history, cJSON **line)
{
	const int64_t from = step_of(*line, "from");
	if (from < 0)
		return -1;
	forget_behind(history, from);
	cJSON_Delete(history->head);
	cJSON_Delete(history->devices);
	cJSON_Delete(history->operations);
	cJSON_Delete(history->failed);
	cJSON_Delete(history->predicted);
	history->head = *line;
	history->devices = history->operations = history->failed = history->predicted = *line = NULL;
	history->processes++;
	return 0;
}

/* Joins what a step's line has of each device into one number of all. */
static void take_devices(struct smalti_training_point *point, const cJSON *devices)
{
	double max = NAN, sum = 0;
	int known = 0;
	const cJSON *device = NULL;
	cJSON_ArrayForEach (device, devices) {
		const double utilisation = number(device, "utilisation");
		max = fmax(max, number(device, "used_memory"));
		sum += isnan(utilisation) ? 0 : utilisation;
		known += !isnan(utilisation);
	}
	point->values[SMALTI_TRAINING_DEVICE_MEMORY] = max;
	point->values[SMALTI_TRAINING_DEVICE_UTILISATION] = known ? sum / known : NAN;
}

static int take_step(struct smalti_training_history *history, const cJSON *line, struct smalti_error *error)
{
	struct smalti_training_point point = {.step = step_of(line, "step")};
	const cJSON *busy = cJSON_GetObjectItemCaseSensitive(line, "busy");
	if (point.step < 0 || (history->count && point.step <= history->points[history->count - 1].step))
		return -1;
	if (smalti_grow(&history->points, history->count, sizeof(*history->points), error) < 0)
		return -1;
	for (int i = 0; i < SMALTI_TRAINING_FIELDS; i++)
		point.values[i] = number(line, fields[i].key);
	take_devices(&point, cJSON_GetObjectItemCaseSensitive(line, "devices"));
	busy = busy ? busy->child : NULL;
	for (int i = 0; busy && i < SMALTI_TRAINING_WORKERS; i++, busy = busy->next)
		point.busy[i] = cJSON_IsNumber(busy) ? (float)busy->valuedouble : 0;
	history->points[history->count++] = point;
	return 0;
}

/* Takes the line if it has the key. */
static bool put_line(cJSON *list, const char *key, cJSON **line)
{
	if (!cJSON_GetObjectItemCaseSensitive(*line, key))
		return false;
	if (cJSON_AddItemToArray(list, *line))
		*line = NULL;
	return true;
}

static int take_line(void *user, cJSON **line, struct smalti_error *error)
{
	struct smalti_training_history *history = user;
	if (cJSON_GetObjectItemCaseSensitive(*line, "training"))
		return take_head(history, line);
	if (cJSON_GetObjectItemCaseSensitive(*line, "loss"))
		return take_step(history, *line, error);
	return put_line(history->evaluations, "evaluation", line) ||
		       put_line(history->checkpoints, "checkpoint", line) ||
		       put_line(history->damaged, "damaged", line) ||
		       smalti_json_take(&history->devices, "devices", *line) ||
		       smalti_json_take(&history->operations, "operations", *line) ||
		       smalti_json_take(&history->predicted, "predicted", *line) ||
		       smalti_json_take(&history->failed, "failed", *line)
		   ? 0
		   : -1;
}

int smalti_training_history_read(const char *directory, struct smalti_training_history *history,
				 struct smalti_error *error)
{
	*history = (struct smalti_training_history){.evaluations = cJSON_CreateArray(),
						    .checkpoints = cJSON_CreateArray(),
						    .damaged = cJSON_CreateArray()};
	history->lives = smalti_lock_is_held(directory);
	SCOPED(free) char *path = smalti_format(error, "%s/log.jsonl", directory);
	int64_t size = 0;
	const int found = path ? smalti_find_file(path, error) : -1;
	if (found <= 0)
		return found;
	SCOPED(close) const int file = smalti_open_regular(path, &size, error);
	return file < 0 ? -1 : smalti_json_lines(file, take_line, history, &history->unreadable, error);
}

void smalti_training_history_free(struct smalti_training_history *history)
{
	free(history->points);
	cJSON_Delete(history->head);
	cJSON_Delete(history->evaluations);
	cJSON_Delete(history->checkpoints);
	cJSON_Delete(history->damaged);
	cJSON_Delete(history->devices);
	cJSON_Delete(history->operations);
	cJSON_Delete(history->failed);
	cJSON_Delete(history->predicted);
}

struct smalti_training_pace smalti_training_history_pace(const struct smalti_training_history *history)
{
	static const double RECENT_SECONDS = 60;
	const int64_t from = step_of(history->head, "from"), steps = step_of(history->head, "steps");
	struct smalti_training_pace pace = {
	    .step = from, .steps = smalti_max(0, steps), .per_second = NAN, .left = NAN};
	double seconds = 0;
	int64_t made = 0;
	for (int64_t i = history->count - 1; i >= 0 && seconds < RECENT_SECONDS; i--, made++) {
		if (history->points[i].step <= from)
			break;
		seconds += fmax(history->points[i].values[SMALTI_TRAINING_SECONDS], 0);
	}
	if (history->count)
		pace.step = history->points[history->count - 1].step;
	if (pace.steps > 0) /* the last process may have been begun for fewer than there are */
		pace.steps = smalti_max(pace.steps, pace.step);
	if (seconds > 0)
		pace.per_second = (double)made / seconds;
	if (history->lives && steps > pace.step)
		pace.left = (double)(steps - pace.step) / pace.per_second;
	return pace;
}

static double join(const struct smalti_training_point *points, int64_t count, int field)
{
	double sum = 0, largest = 0;
	int64_t known = 0;
	for (int64_t i = 0; i < count; i++) {
		const double value = points[i].values[field];
		if (isnan(value))
			continue;
		sum += value;
		largest = known++ ? fmax(largest, value) : value;
	}
	if (!known)
		return NAN;
	return fields[field].joining == MEAN  ? sum / (double)known
	       : fields[field].joining == SUM ? sum
					      : largest;
}

double smalti_training_history_mean(const struct smalti_training_history *history,
				    enum smalti_training_field field)
{
	const int64_t from = step_of(history->head, "from");
	int64_t first = history->count;
	while (first > 0 && history->points[first - 1].step > from + 1)
		first--;
	return join(&history->points[first], history->count - first, (int)field);
}

static void put_number(FILE *page, double value)
{
	if (isfinite(value))
		fprintf(page, ",%.9g", value);
	else
		fputs(",null", page);
}

static void put_pace(FILE *page, const struct smalti_training_history *history)
{
	const struct smalti_training_pace pace = smalti_training_history_pace(history);
	fprintf(page, "\"pace\":[%" PRId64, pace.steps);
	put_number(page, pace.per_second);
	put_number(page, pace.left);
	fputs("],", page);
}

static void put_points(FILE *page, const struct smalti_training_history *history, int64_t step)
{
	fputs("\"points\":[", page);
	for (int64_t i = 0; i < history->count; i += step) {
		const int64_t count = smalti_min(step, history->count - i);
		fprintf(page, "%s[%" PRId64, i ? ",\n" : "", history->points[i + count - 1].step);
		for (int j = 0; j < SMALTI_TRAINING_FIELDS; j++)
			put_number(page, join(&history->points[i], count, j));
		fputc(']', page);
	}
	fputs("],\n", page);
}

/* Puts shares of the time that steps took. */
static void put_busy(FILE *page, const struct smalti_training_history *history, int64_t step, int workers)
{
	fputs("\"busy\":[", page);
	for (int64_t i = 0; i < history->count; i += step) {
		const int64_t count = smalti_min(step, history->count - i);
		fputs(i ? ",\n[" : "[", page);
		for (int j = 0; j < workers; j++) {
			double busy = 0, seconds = 0;
			for (int64_t k = i; k < i + count; k++) {
				busy += (double)history->points[k].busy[j];
				seconds += history->points[k].values[SMALTI_TRAINING_SECONDS];
			}
			fprintf(page, "%s%.4f", j ? "," : "", seconds > 0 ? fmin(busy / seconds, 1) : 0);
		}
		fputc(']', page);
	}
	fputs("],\n", page);
}

static void put_evaluations(FILE *page, const cJSON *lines)
{
	const cJSON *line = NULL;
	fputs("\"evaluations\":[", page);
	cJSON_ArrayForEach (line, lines) {
		fputs(line == lines->child ? "[" : ",\n[", page);
		smalti_page_text(page, smalti_text_of(cJSON_GetObjectItemCaseSensitive(line, "evaluation")));
		put_number(page, number(line, "step"));
		put_number(page, number(line, "mean_mse"));
		put_number(page, number(line, "mean_vb"));
		fputc(']', page);
	}
	fputs("],\n", page);
}

/* Puts the operations whose numbers are all there. */
static void put_operations(FILE *page, const cJSON *list)
{
	static const char *const keys[] = {"count", "seconds", "flops", "bytes"};
	const cJSON *one = NULL;
	bool first = true;
	fputs("\"operations\":[", page);
	cJSON_ArrayForEach (one, list) {
		double values[COUNT_OF(keys)];
		bool whole = true;
		for (size_t i = 0; i < COUNT_OF(keys); i++)
			whole = (values[i] = number(one, keys[i])) >= 0 && whole;
		if (!whole)
			continue;
		fputs(first ? "{" : ",\n{", page);
		first = false;
		smalti_page_value(page, "name", one);
		smalti_page_value(page, "dtype", one);
		for (size_t i = 0; i < COUNT_OF(keys); i++)
			fprintf(page, "%s\"%s\":%.9g", i ? "," : "", keys[i], values[i]);
		fputc('}', page);
	}
	fputs("],\n", page);
}

void smalti_training_history_print(FILE *page, const char *directory, int64_t every,
				   const struct smalti_training_history *history)
{
	const cJSON *names = cJSON_GetObjectItemCaseSensitive(history->head, "workers");
	const int workers = (int)smalti_min(cJSON_GetArraySize(names), SMALTI_TRAINING_WORKERS);
	const int64_t step = history->count / POINTS + 1;
	SCOPED(free)
	char *options = cJSON_Print(cJSON_GetObjectItemCaseSensitive(history->head, "identity"));
	const cJSON *last =
	    cJSON_GetArrayItem(history->checkpoints, cJSON_GetArraySize(history->checkpoints) - 1);
	fputs("{\"report\":\"training\",", page);
	smalti_page_member(page, "folder", directory);
	fprintf(page, "\"every\":%" PRId64 ",", every);
	smalti_page_value(page, "program", history->head);
	smalti_page_member(page, "options", options ? options : "");
	smalti_page_member(page, "failed", smalti_text_of(history->failed));
	smalti_page_value(page, "checkpoint", last);
	put_pace(page, history);
	smalti_page_prediction(page, history->predicted);
	smalti_page_list(page, "workers", names);
	fputs("\"fields\":[\"step\"", page);
	for (int i = 0; i < SMALTI_TRAINING_FIELDS; i++)
		fprintf(page, ",\"%s\"", fields[i].key);
	fputs("],\n", page);
	put_points(page, history, step);
	put_busy(page, history, step, workers);
	put_evaluations(page, history->evaluations);
	smalti_report_samples(page, directory);
	smalti_page_devices(page, history->devices);
	put_operations(page, history->operations);
	fprintf(page, "\"damaged\":%d,\"processes\":%" PRId64 ",\"unreadable\":%" PRId64 "}",
		cJSON_GetArraySize(history->damaged), history->processes, history->unreadable);
}
