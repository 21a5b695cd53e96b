/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/kernels.h"
#include "bench/report.h"
#include "cli/common_rows.h"
#include "kernels/isa.h"

#include <stdio.h>
#include <string.h>

struct kernels_options {
	struct smalti_bench_options bench;
	const char *filter;
	enum smalti_precision precision;
};

static const struct kernels_options defaults = {.bench = {.repeats = 5}};

static const struct smalti_option rows[] = {
    {SMALTI_STRING(struct kernels_options, filter), "filter", 0, "TEXT",
     "run only benchmarks whose name contains TEXT, such as \"matmul DiT\" or \"odd\""},
    SMALTI_PRECISION_ROW(struct kernels_options, precision),
    SMALTI_BENCH_ROWS(struct kernels_options),
};

static const struct smalti_example examples[] = {
    {"All of it, kept for later", "smalti-bench kernels -o before.jsonl"},
    {"What a change brought to convolutions", "smalti-bench kernels --filter conv --compare before.jsonl"},
    {"The slowest ten beside their bounds",
     "smalti-bench kernels --json | jq -s '.[1:] | sort_by(.fraction)[:10]'"},
    {NULL, NULL},
};

static enum smalti_exit run(void *values, int count, char **operands);

const struct smalti_command smalti_bench_kernels_command = {
    .name = "smalti-bench kernels",
    .summary = "time every operation in one thread against the machine's bounds",
    .operands = "",
    .description =
	"Measures what one thread of this machine reaches: f32 arithmetic in registers, bf16 products "
	"where they are faster, and the bandwidth of memory. Then it calls the CPU function of every "
	"codelet on awkward shapes and on those of the real models, without the runtime, and compares. "
	"As the clock falls under load, f32 arithmetic in registers is measured again right behind every "
	"repeat: \"f32 peak\", in GFLOP/s, is the median of these.\n\n"
	"An operation cannot take less time than its arithmetic at the peak rate, nor less than its "
	"bytes, each moved once, at the bandwidth of memory; the longer of both is its bound, and \"% of "
	"bound\" is how near the measured time comes to it. Buffers stay the same from call to call: "
	"those that fit into a cache may beat the memory's bound.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = run,
};

static const struct smalti_bench_column columns[] = {
    {"seconds", "ms", 1e3, "%.4g"},
    {"least", NULL, 1, NULL},
    {"flops_per_second", "GFLOP/s", 1e-9, "%.1f"},
    {"bytes_per_second", "GB/s", 1e-9, "%.1f"},
    {"peak", "f32 peak", 1e-9, "%.1f"},
    {"bound", "bound", 0, NULL},
    {"fraction", "% of it", 100, "%.1f"},
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static const char note[] =
    "bound \"direct\": compute-bound, with the arithmetic of a direct convolution, which other algorithms "
    "undercut: they may pass 100 %.";

struct measuring {
	const struct kernels_options *options;
	struct smalti_roofline roofline;
	struct smalti_bench_report *report;
	int64_t measured;
	struct smalti_error *error;
};

static int measure(void *user, const struct smalti_bench_case *c)
{
	struct measuring *m = user;
	struct smalti_bench_kernel k;
	if (m->options->filter && !strstr(c->name, m->options->filter))
		return 0;
	if (smalti_bench_kernel(c, (int)m->options->bench.repeats, &m->roofline, &k, m->error) < 0)
		return -1;
	m->measured++;
	const char *bound = k.memory ? "memory" : c->direct ? "direct" : "compute";
	const struct smalti_bench_value line[COLUMNS] = {
	    {k.seconds, NULL}, {k.least, NULL}, {k.flops / k.seconds, NULL}, {k.bytes / k.seconds, NULL},
	    {k.peak, NULL},    {0, bound},      {k.bound / k.seconds, NULL}};
	return smalti_bench_report_add(m->report, c->name, line, NULL, 0, m->error);
}

static cJSON *facts_of(const struct measuring *m)
{
	cJSON *facts = cJSON_CreateObject(), *roofline = cJSON_CreateObject();
	cJSON_AddStringToObject(facts, "precision", smalti_precisions[m->options->precision]);
	cJSON_AddNumberToObject(roofline, "f32", m->roofline.f32);
	cJSON_AddNumberToObject(roofline, "bf16", m->roofline.bf16);
	cJSON_AddNumberToObject(roofline, "read", m->roofline.read);
	cJSON_AddNumberToObject(roofline, "triad", m->roofline.triad);
	cJSON_AddItemToObject(facts, "roofline", roofline);
	return facts;
}

static void print_roofline(const struct smalti_roofline *roofline)
{
	printf("One thread: f32 %.1f GFLOP/s", roofline->f32 * 1e-9);
	if (roofline->bf16 > 0)
		printf(", bf16 %.1f GFLOP/s", roofline->bf16 * 1e-9);
	printf(", read %.1f GB/s, triad %.1f GB/s\n", roofline->read * 1e-9, roofline->triad * 1e-9);
}

static int measure_all(const void *options, struct smalti_error *error)
{
	const struct kernels_options *o = options;
	struct measuring m = {.options = o, .error = error};
	if (smalti_precision_choose(o->precision, NULL, error) < 0 || smalti_isa_check(error) < 0 ||
	    smalti_roofline_measure(&m.roofline, error) < 0)
		return -1;
	if (!o->bench.json)
		print_roofline(&m.roofline);
	m.report = smalti_bench_report_open(&smalti_bench_kernels_command, &o->bench, facts_of(&m), columns,
					    COLUMNS, error);
	int status = m.report ? smalti_bench_each(smalti_precision_dtype(o->precision), measure, &m) : -1;
	if (status == 0 && !m.measured)
		status = smalti_fail(error, SMALTI_EINVAL, "no operation has '%s' in its name", o->filter);
	return smalti_bench_report_close(m.report, note, status, error);
}

static enum smalti_exit run(void *options, int count, char **operands)
{
	return smalti_bench_run(&smalti_bench_kernels_command, measure_all, options, count, operands);
}
