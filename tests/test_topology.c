/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/topology.h"
#include "harness.h"
#include "kernels/kernels.h"
#include "smalti/topology.h"

#include <stdlib.h>
#include <string.h>

static struct smalti_session *open_session(const char *policy)
{
	struct smalti_session_options options;
	struct smalti_error error = SMALTI_NO_ERROR;
	smalti_session_defaults(&options);
	options.policy = policy;
	struct smalti_session *session = smalti_session_open(&options, &error);
	SUCCEEDS(session ? 0 : -1, &error, "session");
	return session;
}

static struct smalti_topology *read_topology(const char *policy)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = open_session(policy);
	struct smalti_topology *topology = NULL;
	SUCCEEDS(smalti_topology_read(session, &topology, &error), &error, "topology");
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
	return topology;
}

static void is_consistent(void)
{
	struct smalti_topology *t = read_topology("eager");
	if (!t)
		return;
	CU_ASSERT_TRUE(t->packages >= 0 && t->cores >= 1 && t->threads >= t->cores);
	CU_ASSERT_TRUE(t->worker_count >= 1 && t->worker_count <= t->cores);
	CU_ASSERT_TRUE(t->memory_node_count >= 1);
	for (int64_t i = 0; i < t->worker_count; i++) {
		CHECK(t->workers[i].core >= -1 && t->workers[i].core < t->cores, t->workers[i].name);
		CHECK(t->workers[i].memory_node < t->memory_node_count, t->workers[i].name);
	}
	for (int64_t i = 0; i < t->cache_count; i++)
		CHECK(t->caches[i].bytes > 0 && t->caches[i].count <= t->threads, t->caches[i].kind);
	int64_t nodes = t->memory_node_count;
	CU_ASSERT_EQUAL(t->link_count, nodes * (nodes - 1));
	for (int64_t i = 0; i < t->library_count; i++) {
		CHECK(t->libraries[i].version[0] >= '0' && t->libraries[i].version[0] <= '9',
		      t->libraries[i].name);
		CHECK(t->libraries[i].serves[0] != '\0', t->libraries[i].name);
	}
	smalti_topology_free(t);
}

static void rates_are_measured(void)
{
	struct smalti_topology *t = read_topology(NULL);
	if (!t)
		return;
	CU_ASSERT_EQUAL(t->rate_count, t->worker_count > 1 ? 2 : 1);
	CU_ASSERT_EQUAL(t->rates[0].workers, 1);
	CU_ASSERT_EQUAL(t->rates[t->rate_count - 1].workers, t->worker_count);
	for (int64_t i = 0; i < t->rate_count; i++) {
		const struct smalti_topology_rate *rate = &t->rates[i];
		/* From a tenth of a slow machine's, which others may keep busy, to a core that multiplies and
		 * adds 128 pairs in each of 4e9 cycles, and to memory as fast as a GPU's. */
		const double slowest_bus = 1e7, fastest_bus = 8e12, slowest_core = 1e7;
		const double fastest_cores = 1.024e12 * (double)rate->workers;
		CU_ASSERT_TRUE(rate->read > slowest_bus && rate->read < fastest_bus);
		CU_ASSERT_TRUE(rate->copy > slowest_bus && rate->copy < fastest_bus);
		CU_ASSERT_TRUE(rate->triad > slowest_bus && rate->triad < fastest_bus);
		CU_ASSERT_TRUE(rate->fma > slowest_core && rate->fma < fastest_cores);
		CU_ASSERT_TRUE(rate->bytes > 0);
	}
	smalti_topology_free(t);
}

static void policy_of_the_session_is_marked(void)
{
	static const char *const policies[] = {"eager", "lws", "dmda"};
	for (size_t i = 0; i < COUNT(policies); i++) {
		struct smalti_topology *t = read_topology(policies[i]);
		int marked = 0;
		for (int64_t j = 0; t && j < t->policy_count; j++) {
			if (!t->policies[j].active)
				continue;
			marked++;
			CHECK(!strcmp(t->policies[j].name, policies[i]), policies[i]);
		}
		CHECK(marked == 1, policies[i]);
		smalti_topology_free(t);
	}
}

static void json_holds_everything(void)
{
	static const char *const arrays[] = {"caches", "numa_nodes", "gpus",      "workers", "memory_nodes",
					     "links",  "rates",      "libraries", "policies"};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_topology *t = read_topology(NULL);
	if (!t)
		return;
	char *text = NULL;
	size_t length = 0;
	FILE *to = open_memstream(&text, &length);
	SUCCEEDS(smalti_topology_print_json(t, to, &error), &error, "JSON");
	fclose(to);
	cJSON *object = smalti_json_parse(text, length, &error);
	SUCCEEDS(object ? 0 : -1, &error, "parsing");
	int64_t cores = 0;
	SUCCEEDS(smalti_json_int(object, "cores", SMALTI_JSON_REQUIRED, 1, 1 << 20, &cores, &error), &error,
		 "cores");
	CU_ASSERT_EQUAL(cores, t->cores);
	for (size_t i = 0; i < COUNT(arrays); i++)
		CHECK(cJSON_IsArray(cJSON_GetObjectItem(object, arrays[i])), arrays[i]);
	const cJSON *rate = cJSON_GetArrayItem(cJSON_GetObjectItem(object, "rates"), 0);
	double fma = 0;
	SUCCEEDS(smalti_json_double(rate, "fma", SMALTI_JSON_REQUIRED, 1, 1e15, &fma, &error), &error, "fma");
	CU_ASSERT_DOUBLE_EQUAL(fma, t->rates[0].fma, 1e-12 * fma); /* JSON has it in 15 digits */
	cJSON_Delete(object);
	free(text);
	smalti_topology_free(t);
}

/* Small whole numbers, so that any order of summing gives the same. */
static void loops_compute_what_they_say(void)
{
	enum { VALUES = 3 * 64 };
	float x[VALUES], y[VALUES], z[VALUES];
	float total = 0;
	for (int i = 0; i < VALUES; i++) {
		x[i] = (float)(i % 17);
		y[i] = (float)(2 * (i % 5));
		total += x[i];
	}
	for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
		const struct smalti_cpu_kernels *kernels = smalti_cpu_kernels((enum smalti_isa)isa);
		const char *name = smalti_isa_name((enum smalti_isa)isa);
		CHECK(kernels->measure_read(VALUES, x) == total, name);
		memset(z, 0, sizeof(z));
		kernels->measure_triad(VALUES, x, y, z);
		bool same = true;
		for (int i = 0; i < VALUES; i++)
			same &= z[i] == x[i] + y[i] / 2;
		CHECK(same, name);
		/* Ten vectors of i, (i · 0.999 + 0.001) twice. */
		float sum = 0;
		int64_t operations = kernels->measure_fma(2, &sum);
		int lanes = 4 << (isa < SMALTI_ISA_AVX512 ? isa : SMALTI_ISA_AVX512);
		CHECK(operations == 2 * 10 * 2 * lanes, name);
		CHECK(sum > 44.9 * lanes && sum < 45.0 * lanes, name);
	}
}

static void no_session_is_refused(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_topology *topology;
	FAILS(smalti_topology_read(NULL, &topology, &error), &error, SMALTI_EINVAL, "NULL", "session");
	CU_ASSERT_PTR_NULL(topology);
	smalti_topology_free(NULL);
}

static const struct test tests[] = {
    {"is consistent", is_consistent},
    {"rates are measured", rates_are_measured},
    {"policy of the session is marked", policy_of_the_session_is_marked},
    {"JSON holds everything", json_holds_everything},
    {"loops compute what they say", loops_compute_what_they_say},
    {"no session is refused", no_session_is_refused},
};

TEST_MAIN("topology", tests)
