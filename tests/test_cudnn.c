/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN takes the operation graphs that src/devices/cudnn_graph.c makes, and has plans for them on cards that
 * are described: it says so without a GPU. */
#include "harness.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef SMALTI_CUDNN
#include "devices/cudnn_plan.h"

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

static const struct smalti_cudnn_target nobody = {NULL, NULL};
static const enum smalti_dtype dtypes[] = {SMALTI_F32, SMALTI_F16, SMALTI_BF16};

static void convolutions(void)
{
	static const struct {
		const char *name;
		struct smalti_device_convolution convolution;
	} cases[] = {
	    {"same", {.rows = 8, .width = 64, .in = 512, .out = 512, .stride = 1}},
	    {"few rows", {.rows = 8, .width = 64, .in = 256, .out = 256, .stride = 1}},
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
			const int status =
			    smalti_cudnn_convolution_graph(&convolution, nobody, &graph, &error);
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
			const int status = smalti_cudnn_sdpa_graph(&sdpa, nobody, &graph, &error);
			check(status, &graph, &error, biased ? "attention with a bias" : "attention");
		}
}

/* What cannot be is refused with cuDNN's words, and leaves nothing. */
static void refused(void)
{
	const struct smalti_device_convolution convolution = {.rows = -3, .width = 64, .in = 8, .stride = 1};
	struct smalti_cudnn_graph graph;
	struct smalti_error error = SMALTI_NO_ERROR;
	FAILS(smalti_cudnn_convolution_graph(&convolution, nobody, &graph, &error), &error,
	      SMALTI_EUNSUPPORTED, "no rows", "-3 x 64 x 8", "cuDNN says", "BAD_PARAM");
	smalti_cudnn_graph_free(&graph);
}

#define CARD(name, version, units, shared, cache, clock, bytes)                                              \
	"{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"  \
	"\"multiProcessorCount\":" #units ",\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"              \
	"\"maxSharedMemoryPerBlockOptin\":" #shared ",\"reservedSharedMemoryPerBlock\":1024,"                \
	"\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"                       \
	"\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,"              \
	"\"smClockRateKHz\":" #clock ",\"memClockRateKHz\":3201000,\"l2CacheSize\":" #cache ","              \
	"\"deviceName\":\"" name "\",\"deviceVer\":" #version ",\"driverVer\":13000,\"cudaDeviceId\":0,"     \
	"\"totalGlobalMem\":" #bytes ",\"version\":1}"

static const struct card {
	const char *json, *attention; /* what the kernels for attention have in their names */
} cards[] = {
    {CARD("NVIDIA H200", 900, 132, 232448, 62914560, 1980000, 150000000000), "sm90_flash_fprop_wgmma"},
    {CARD("NVIDIA A100", 800, 108, 166912, 41943040, 1410000, 85000000000), "sm80_flash_fprop"},
};

/* Loads what stands in for CUDA's driver, which compiled kernels are handed to; returns where it keeps the
 * name of the last one, or NULL. */
static const char *load_driver(void)
{
	const char *program = getenv("SMALTI");
	char path[4096];
	snprintf(path, sizeof(path), "%.*s/tests/cuda/.libs/libcuda.so.1",
		 program ? (int)(strrchr(program, '/') - program) : 0, program ? program : "");
	void *driver = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	return driver ? dlsym(driver, "driver_kernel") : NULL;
}

/* Returns whether there is a plan by the first configuration, in 32 MiB. */
static bool has_plan(const struct smalti_cudnn_graph *graph, struct smalti_cudnn_wish wish)
{
	cudnnBackendDescriptor_t proposed[SMALTI_CUDNN_PROPOSED];
	const int count = smalti_cudnn_propose(graph, wish, proposed);
	cudnnBackendDescriptor_t plan = count ? smalti_cudnn_plan(graph, proposed[0], 32 << 20) : NULL;
	smalti_cudnn_drop(plan);
	for (int i = 0; i < count; i++)
		smalti_cudnn_drop(proposed[i]);
	return plan;
}

/* Makes plans for PixArt's transformer at 512, 1024 and 2048 pixels. */
static void plan_attention(const struct card *card, struct smalti_cudnn_target target, const char *kernel)
{
	static const int64_t tokens[] = {1024, 4096, 16384};
	for (int i = 0; i < COUNT(tokens); i++) {
		const struct smalti_device_sdpa sdpa = {tokens[i], tokens[i], 16, 72, SMALTI_BF16, false};
		struct smalti_cudnn_graph graph;
		struct smalti_error error = SMALTI_NO_ERROR;
		SUCCEEDS(smalti_cudnn_sdpa_graph(&sdpa, target, &graph, &error), &error, "attention");
		CHECK(has_plan(&graph, (struct smalti_cudnn_wish){false, false}), card->attention);
		CHECK(strstr(kernel, card->attention), kernel);
		smalti_cudnn_graph_free(&graph);
	}
	printf("\n    %s", kernel);
}

/* Makes plans for a VAE's decoder and encoder at 1024 pixels: by engines that are there, in which nothing is
 * compiled. */
static void plan_convolutions(struct smalti_cudnn_target target)
{
	static const struct smalti_device_convolution cases[] = {
	    {128, 128, 512, 512, 1, SMALTI_BF16},   {256, 256, 512, 512, 1, SMALTI_BF16},
	    {512, 512, 512, 256, 1, SMALTI_BF16},   {1024, 1024, 256, 128, 1, SMALTI_BF16},
	    {1024, 1024, 128, 128, 1, SMALTI_BF16}, {64, 1024, 128, 128, 1, SMALTI_BF16},
	    {1024, 1024, 128, 128, 2, SMALTI_BF16}, {128, 128, 4, 512, 1, SMALTI_BF16},
	    {1024, 1024, 128, 3, 1, SMALTI_BF16},
	};
	const struct smalti_cudnn_wish ready = {.ready = true};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_cudnn_graph graph;
		struct smalti_error error = SMALTI_NO_ERROR;
		char what[160];
		snprintf(what, sizeof(what), "%d x %d, %d to %d channels, stride %d", (int)cases[i].rows,
			 (int)cases[i].width, (int)cases[i].in, (int)cases[i].out, (int)cases[i].stride);
		SUCCEEDS(smalti_cudnn_convolution_graph(&cases[i], target, &graph, &error), &error, what);
		CHECK(has_plan(&graph, ready), what);
		smalti_cudnn_graph_free(&graph);
	}
}

/* Only where no driver is: cuDNN takes the one that is loaded already. */
static void plans(void)
{
	void *loaded = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	if (loaded) {
		dlclose(loaded);
		printf("\n    skipped: a driver of CUDA is here\n");
		return;
	}
	const char *kernel = load_driver();
	CHECK(kernel, "what stands in for CUDA's driver");
	for (int i = 0; kernel && i < COUNT(cards); i++) {
		const struct smalti_cudnn_target target = {.device = smalti_cudnn_device(cards[i].json)};
		CHECK(target.device, cards[i].json);
		if (target.device)
			plan_attention(&cards[i], target, kernel);
		if (target.device)
			plan_convolutions(target);
		smalti_cudnn_drop(target.device);
	}
	CHECK(!smalti_cudnn_device("{\"deviceName\":\"a card\"}"), "a card of which nothing is known");
}

static const struct test tests[] = {
    {"convolutions", convolutions},
    {"plans", plans},
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
