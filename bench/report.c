/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report.h"

#include "base/base.h"
#include "base/file.h"
#include "bench/compare.h"
#include "cli/common_rows.h"
#include "cli/device_lines.h"
#include "smalti/version.h"
#include "topology/topology.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_WIDTH = 44, COLUMN_WIDTH = 10 };

struct smalti_bench_report {
	bool json;
	const struct smalti_bench_column *columns;
	int count;
	struct smalti_baseline *baseline;
	const char *compared; /* its path */
	struct smalti_writer *writer;
};

static int no_memory(struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_ENOMEM, "no memory for a line of JSON");
}

static cJSON *libraries_of(const struct smalti_topology *machine)
{
	cJSON *object = cJSON_CreateObject();
	for (int64_t i = 0; object && i < machine->library_count; i++)
		cJSON_AddStringToObject(object, machine->libraries[i].name, machine->libraries[i].version);
	return object;
}

static void add_head(cJSON *head, const struct smalti_command *command, const struct smalti_topology *machine)
{
	cJSON_AddStringToObject(head, "command", command->name);
	cJSON_AddStringToObject(head, "version", smalti_version());
	cJSON_AddStringToObject(head, "cpu", machine->cpu);
	cJSON_AddNumberToObject(head, "cores", (double)machine->cores);
	cJSON_AddStringToObject(head, "isa", machine->isa);
	cJSON_AddStringToObject(head, "features", machine->features);
	cJSON_AddItemToObject(head, "libraries", libraries_of(machine));
}

/* Writes a line to the file, and to the standard output if that is JSON. Frees the line. */
static int put_line(const struct smalti_bench_report *report, cJSON *line, struct smalti_error *error)
{
	char *text = line ? cJSON_PrintUnformatted(line) : NULL;
	cJSON_Delete(line);
	if (!text)
		return no_memory(error);
	if (report->writer)
		fprintf(smalti_writer_stream(report->writer), "%s\n", text);
	if (report->json) {
		printf("%s\n", text);
		fflush(stdout); /* show each measurement at once, as they take long */
	}
	cJSON_free(text);
	return 0;
}

static void print_headings(const struct smalti_bench_report *report)
{
	printf("%-*s", NAME_WIDTH, "");
	for (int i = 0; i < report->count; i++)
		if (report->columns[i].heading)
			printf(" %*s", COLUMN_WIDTH, report->columns[i].heading);
	printf("%s\n", report->baseline ? "      ratio" : "");
	fflush(stdout);
}

static int begin(const struct smalti_bench_report *report, const struct smalti_command *command, cJSON *head,
		 struct smalti_error *error)
{
	struct smalti_topology *machine = smalti_topology_machine(error);
	if (!machine) {
		cJSON_Delete(head);
		return -1;
	}
	if (head)
		add_head(head, command, machine);
	const char *simulated = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(head, "machine"));
	if (!report->json) {
		if (simulated)
			printf("%s, simulated\n", simulated);
		else
			printf("%s, %s\n", machine->cpu, machine->isa);
		print_headings(report);
	}
	smalti_topology_free(machine);
	return put_line(report, head, error);
}

cJSON *smalti_bench_facts(const char *model, enum smalti_precision precision,
			  const struct smalti_session_options *session)
{
	cJSON *facts = cJSON_CreateObject();
	cJSON_AddStringToObject(facts, "model", model);
	cJSON_AddStringToObject(facts, "precision", smalti_precisions[precision]);
	cJSON_AddStringToObject(facts, "sched", session->policy ? session->policy : "default");
	cJSON_AddNumberToObject(facts, "cpus", (double)session->cpus);
	return facts;
}

static int open_files(struct smalti_bench_report *report, const struct smalti_command *command,
		      const struct smalti_bench_options *options, struct smalti_error *error)
{
	if (options->compare &&
	    !(report->baseline = smalti_baseline_read(options->compare, command->name, error)))
		return -1;
	if (options->output && !(report->writer = smalti_writer_open(options->output, error)))
		return -1;
	return 0;
}

struct smalti_bench_report *smalti_bench_report_open(const struct smalti_command *command,
						     const struct smalti_bench_options *options, cJSON *facts,
						     const struct smalti_bench_column *columns, int count,
						     struct smalti_error *error)
{
	struct smalti_bench_report *report = smalti_calloc(1, sizeof(*report), error);
	if (!report || open_files(report, command, options, error) < 0) {
		cJSON_Delete(facts);
		smalti_bench_report_close(report, NULL, -1, error);
		return NULL;
	}
	report->json = options->json;
	report->columns = columns;
	report->count = count;
	report->compared = options->compare;
	if (begin(report, command, facts, error) == 0)
		return report;
	smalti_bench_report_close(report, NULL, -1, error);
	return NULL;
}

static void print_value(const struct smalti_bench_column *column, const struct smalti_bench_value *value)
{
	if (!column->heading)
		return;
	if (column->scale == 0)
		printf(" %*s", COLUMN_WIDTH, value->text ? value->text : "");
	else if (isnan(value->number))
		printf(" %*s", COLUMN_WIDTH, "");
	else {
		char text[32];
		snprintf(text, sizeof(text), column->format, value->number * column->scale);
		printf(" %*s", COLUMN_WIDTH, text);
	}
}

static void print_devices(const struct smalti_device_use *uses, int devices)
{
	char line[SMALTI_DEVICE_LINE];
	for (int i = 0; i < devices; i++) {
		smalti_device_line(&uses[i], line);
		printf("  %s\n", line);
	}
}

int smalti_bench_report_add(struct smalti_bench_report *report, const char *name,
			    const struct smalti_bench_value *values, const struct smalti_device_use *uses,
			    int devices, struct smalti_error *error)
{
	const double ratio = smalti_baseline_ratio(report->baseline, name, values[0].number);
	cJSON *line = cJSON_CreateObject();
	cJSON_AddStringToObject(line, "name", name);
	for (int i = 0; i < report->count; i++) {
		const struct smalti_bench_column *column = &report->columns[i];
		if (column->scale == 0 && values[i].text)
			cJSON_AddStringToObject(line, column->key, values[i].text);
		else if (column->scale != 0 && !isnan(values[i].number))
			cJSON_AddNumberToObject(line, column->key, values[i].number);
	}
	if (!isnan(ratio))
		cJSON_AddNumberToObject(line, "ratio", ratio);
	if (devices)
		cJSON_AddItemToObject(line, "devices", smalti_devices_use_json(uses, devices));
	if (!report->json) {
		printf("%-*s", NAME_WIDTH, name);
		for (int i = 0; i < report->count; i++)
			print_value(&report->columns[i], &values[i]);
		if (!isnan(ratio))
			printf(" %10.3f", ratio);
		printf("\n");
		print_devices(uses, devices);
		fflush(stdout);
	}
	return put_line(report, line, error);
}

static void print_end(const struct smalti_bench_report *report, const char *note)
{
	int ratios;
	const double mean = smalti_baseline_mean(report->baseline, &ratios);
	if (note)
		printf("\n%s\n", note);
	if (ratios)
		printf("\nratio: seconds now to those in %s; the geometric mean of %d is %.3f\n",
		       report->compared, ratios, mean);
	else if (report->baseline)
		printf("\nratio: %s has none of these names\n", report->compared);
}

int smalti_bench_report_close(struct smalti_bench_report *report, const char *note, int status,
			      struct smalti_error *error)
{
	if (!report)
		return status;
	if (status == 0 && !report->json)
		print_end(report, note);
	if (status < 0)
		smalti_writer_abort(report->writer);
	else if (report->writer)
		status = smalti_writer_commit(report->writer, error);
	smalti_baseline_free(report->baseline);
	free(report);
	return status;
}

enum smalti_exit smalti_bench_run(const struct smalti_command *command,
				  int (*measure)(const void *options, struct smalti_error *error),
				  const void *options, int count, char **operands)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	if (count)
		return smalti_usage_error(command, "unexpected operand '%.99s'", operands[0]);
	if (measure(options, &error) < 0)
		return smalti_command_fail(command, &error);
	return smalti_finish_stdout();
}
