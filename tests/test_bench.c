/* SPDX-License-Identifier: Apache-2.0
 *
 * What `smalti-bench` computes with: medians, ratios to an earlier report, and that every codelet has its
 * cases. How fast anything is is not looked at. */
#include "base/clock.h"
#include "bench/cases.h"
#include "bench/compare.h"
#include "bench/kernels.h"
#include "bench/statistics.h"
#include "harness.h"
#include "rt/op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void medians(void)
{
	static const struct {
		int count;
		double values[5], median;
	} cases[] = {{1, {3}, 3},
		     {2, {4, 1}, 2.5},
		     {3, {9, 1, 2}, 2},
		     {4, {8, 1, 2, 4}, 3},
		     {5, {5, 5, 1, 7, 100}, 5}};
	for (int i = 0; i < COUNT(cases); i++) {
		double values[5];
		memcpy(values, cases[i].values, sizeof(values));
		CHECK(smalti_median(values, cases[i].count) == cases[i].median, "median");
	}
	const double start = smalti_now();
	CHECK(smalti_now() >= start, "the clock goes on");
}

static const char *report_file(const char *text)
{
	return test_write("report.jsonl", text, strlen(text));
}

#define HEAD "{\"command\":\"smalti-bench kernels\",\"cpu\":\"x\"}\n"

static void ratios(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *path = report_file(HEAD "{\"name\":\"a\",\"seconds\":2,\"fraction\":0.5}\n"
					    "{\"name\":\"b b\",\"seconds\":0.5}\n");
	struct smalti_baseline *baseline = smalti_baseline_read(path, "smalti-bench kernels", &error);
	SUCCEEDS(baseline ? 0 : -1, &error, "a good report");
	int count = -1;
	CHECK(isnan(smalti_baseline_mean(baseline, &count)) && count == 0, "no ratio yet");
	CHECK(smalti_baseline_ratio(baseline, "a", 1) == 0.5, "twice as fast");
	CHECK(smalti_baseline_ratio(baseline, "b b", 4) == 8, "eight times as slow");
	CHECK(isnan(smalti_baseline_ratio(baseline, "c", 1)), "not there");
	CHECK(fabs(smalti_baseline_mean(baseline, &count) - 2) < 1e-12 && count == 2, "geometric mean");
	smalti_baseline_free(baseline);
	CHECK(isnan(smalti_baseline_ratio(NULL, "a", 1)) && isnan(smalti_baseline_mean(NULL, &count)) &&
		  count == 0,
	      "no baseline");
	smalti_baseline_free(NULL);
}

static void bad_reports(void)
{
	static const struct {
		const char *text, *words[2];
	} cases[] = {
	    {"", {"empty", NULL}},
	    {"{\"command\":\"smalti-bench stages\"}\n", {"line 1", "smalti-bench stages"}},
	    {"{}\n", {"line 1", "none"}},
	    {"[]\n", {"line 1", "none"}},
	    {HEAD "{\"name\":\"a\"}\n", {"line 2", "seconds"}},
	    {HEAD "{\"seconds\":1}\n", {"line 2", "name"}},
	    {HEAD "{\"name\":\"a\",\"seconds\":0}\n", {"line 2", "seconds"}},
	    {HEAD "{\"name\":\"a\",\"seconds\":1}\nnonsense\n", {"line 3", NULL}},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		const char *path = report_file(cases[i].text);
		struct smalti_baseline *baseline = smalti_baseline_read(path, "smalti-bench kernels", &error);
		FAILS(baseline ? 0 : -1, &error, SMALTI_EFORMAT, cases[i].text, "report.jsonl",
		      cases[i].words[0], cases[i].words[1]);
		smalti_baseline_free(baseline);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	CHECK(!smalti_baseline_read("/nonexistent/report", "smalti-bench kernels", &error) &&
		  error.code == SMALTI_ENOENT,
	      "no file");
}

/* Each codelet's cases, and all names. */
struct seen {
	int odd[SMALTI_OPS], count;
	char names[512][128];
};

static int see(void *user, const struct smalti_bench_case *c)
{
	struct seen *seen = user;
	seen->odd[c->op] += strncmp(c->label, "odd", 3) == 0;
	for (int i = 0; i < seen->count; i++)
		CHECK(strcmp(seen->names[i], c->name) != 0, c->name);
	snprintf(seen->names[seen->count++], sizeof(seen->names[0]), "%s", c->name);
	return 0;
}

static void every_codelet_has_a_case(void)
{
	static const enum smalti_dtype precisions[] = {SMALTI_F32, SMALTI_BF16, SMALTI_F16};
	for (int p = 0; p < COUNT(precisions); p++) {
		static struct seen seen;
		memset(&seen, 0, sizeof(seen));
		CHECK(smalti_bench_each(precisions[p], see, &seen) == 0, "all were visited");
		for (int op = 0; op < SMALTI_OPS; op++)
			CHECK(seen.odd[op] > 0, smalti_ops[op].name);
	}
}

/* What part of a case's buffers the row's formula counts at least: all but small vectors, except where a task
 * touches a part of a buffer, and where the packed form is larger than the weights. */
static double min_share(enum smalti_op_number op)
{
	switch (op) {
	case SMALTI_OP_embed_tokens:
	case SMALTI_OP_patchify:
	case SMALTI_OP_unpatchify:
	case SMALTI_OP_latent_rows:
	case SMALTI_OP_sampler_step:
	case SMALTI_OP_repaint:
	case SMALTI_OP_posterior_rows:
	case SMALTI_OP_conv: /* Winograd's form of bf16 weights takes 8 times their bytes */
		return 0.1;
	case SMALTI_OP_merge_moments: /* of any number of parts */
	case SMALTI_OP_linear_input:  /* of any part of a gradient */
	case SMALTI_OP_add_columns:
		return 0.5;
	default:
		return 0.75;
	}
}

static int weigh(void *user, const struct smalti_bench_case *c)
{
	const struct smalti_op *op = &smalti_ops[c->op];
	struct smalti_bench_buffer buffers[SMALTI_MAX_BUFFERS] = {{SMALTI_BENCH_ABSENT, 0}};
	const bool odd = strncmp(c->label, "odd", 3) == 0;
	double touched = 0;
	smalti_bench_buffers(c, buffers);
	(void)user;
	for (int kind = 0, i = 0; kind < op->buffer_kinds; kind++)
		for (int k = 0; k < op->buffers[kind].count; k++, i++) {
			const double bytes = (double)smalti_bench_bytes(&buffers[i]);
			touched +=
			    smalti_op_access(op, kind, c->arguments) == SMALTI_UPDATE ? 2 * bytes : bytes;
			CHECK(bytes > 0 || op->buffers[kind].optional, c->name);
		}
	const double counted = op->bytes(c->arguments);
	CHECK(counted > 0 && counted <= touched, c->name);
	CHECK(odd || counted >= min_share(c->op) * touched, c->name);
	return 0;
}

static void bytes_are_those_of_the_buffers(void)
{
	CHECK(smalti_bench_each(SMALTI_F32, weigh, NULL) == 0, "all in f32");
	CHECK(smalti_bench_each(SMALTI_BF16, weigh, NULL) == 0, "all in bf16");
	CHECK(smalti_bench_each(SMALTI_F16, weigh, NULL) == 0, "all in f16");
}

/* A machine whose numbers are easily divided by. */
static const struct smalti_roofline roofline = {.f32 = 1e9, .bf16 = 4e9, .read = 1e9, .triad = 2e9};

static int measure_odd(void *user, const struct smalti_bench_case *c)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_bench_kernel k = {0};
	int *measured = user;
	if (strncmp(c->label, "odd", 3) != 0)
		return 0;
	SUCCEEDS(smalti_bench_kernel(c, 2, &roofline, &k, &error), &error, c->name);
	CHECK(c->compute == SMALTI_BF16 ? k.peak == 4e9 : k.peak > 1e6, c->name);
	CHECK(k.least > 0 && k.least <= k.seconds, c->name);
	CHECK(k.bound == (k.memory ? k.bytes / 2e9 : k.flops / k.peak), c->name);
	CHECK(k.bound >= k.flops / k.peak && k.bound >= k.bytes / 2e9, c->name);
	++*measured;
	return 0;
}

static void awkward_cases_run(void)
{
	int measured = 0;
	CHECK(smalti_bench_each(SMALTI_F32, measure_odd, &measured) == 0, "all in f32");
	CHECK(smalti_bench_each(SMALTI_BF16, measure_odd, &measured) == 0, "all in bf16");
	CHECK(smalti_bench_each(SMALTI_F16, measure_odd, &measured) == 0, "all in f16");
	CHECK(measured >= 3 * SMALTI_OPS, "one of each codelet");
}

static const struct test tests[] = {
    {"medians", medians},
    {"ratios", ratios},
    {"bad reports", bad_reports},
    {"every codelet has a case", every_codelet_has_a_case},
    {"bytes are those of the buffers", bytes_are_those_of_the_buffers},
    {"awkward cases run", awkward_cases_run},
};

TEST_MAIN("bench", tests)
