/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN takes the operation graphs that src/rt/cudnn_graph.c makes: it says so without a GPU. */
#include "harness.h"

#include <stdio.h>

#ifdef SMALTI_CUDNN
#include "rt/cudnn_graph.h"

/* That there are engines which may run it. */
static void check(int status, struct smalti_cudnn_graph *graph, const struct smalti_error *error,
		  const char *what)
{
	int64_t count = 0, engines = 0;
	SUCCEEDS(status, error, what);
	CHECK(status == 0 &&
		  cudnnBackendGetAttribute(graph->whole, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT,
					   CUDNN_TYPE_INT64, 1, &count, &engines) == CUDNN_STATUS_SUCCESS,
	      what);
	CHECK(engines > 0, what);
	smalti_cudnn_graph_free(graph);
}

static const enum smalti_dtype dtypes[] = {SMALTI_F32, SMALTI_F16, SMALTI_BF16};

static void convolutions(void)
{
	static const struct {
		const char *name;
		struct smalti_device_convolution convolution;
	} cases[] = {
	    {"same", {.rows = 8, .width = 64, .in = 512, .out = 512, .stride = 1}},
	    {"residual", {.rows = 8, .width = 64, .in = 256, .out = 256, .stride = 1, .adds = true}},
	    {"one row", {.rows = 1, .width = 33, .in = 128, .out = 256, .stride = 1}},
	    {"few channels", {.rows = 16, .width = 64, .in = 128, .out = 3, .stride = 1}},
	    {"half", {.rows = 16, .width = 64, .in = 128, .out = 128, .stride = 2}},
	};
	for (int i = 0; i < COUNT(cases); i++)
		for (int j = 0; j < COUNT(dtypes); j++) {
			struct smalti_device_convolution convolution = cases[i].convolution;
			struct smalti_cudnn_graph graph;
			struct smalti_error error = SMALTI_NO_ERROR;
			convolution.dtype = dtypes[j];
			const int status = smalti_cudnn_convolution_graph(&convolution, &graph, &error);
			check(status, &graph, &error, cases[i].name);
		}
}

static void attention(void)
{
	static const int64_t head_dims[] = {64, 72, 128};
	for (int i = 0; i < 2 * COUNT(head_dims); i++)
		for (int j = 1; j < COUNT(dtypes); j++) {
			const bool biased = i % 2 != 0;
			const struct smalti_device_sdpa sdpa = {256,       300,   16, head_dims[i / 2],
								dtypes[j], biased};
			struct smalti_cudnn_graph graph;
			struct smalti_error error = SMALTI_NO_ERROR;
			const int status = smalti_cudnn_sdpa_graph(&sdpa, &graph, &error);
			check(status, &graph, &error, biased ? "attention with a bias" : "attention");
		}
}

/* What cannot be is refused with cuDNN's words, and leaves nothing. */
static void refused(void)
{
	const struct smalti_device_convolution convolution = {.rows = -3, .width = 64, .in = 8, .stride = 1};
	struct smalti_cudnn_graph graph;
	struct smalti_error error = SMALTI_NO_ERROR;
	FAILS(smalti_cudnn_convolution_graph(&convolution, &graph, &error), &error, SMALTI_EUNSUPPORTED,
	      "no rows", "-3 x 64 x 8", "cuDNN says", "BAD_PARAM");
	smalti_cudnn_graph_free(&graph);
}

static const struct test tests[] = {
    {"convolutions", convolutions},
    {"attention", attention},
    {"refused", refused},
};
#else
static void skipped(void)
{
	printf("\n    skipped: this was built without cuDNN\n");
}

static const struct test tests[] = {{"graphs of cuDNN", skipped}};
#endif

TEST_MAIN("cudnn", tests)
