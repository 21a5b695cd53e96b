/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"

#include <dnnl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What is chosen is chosen once per process, so each value is tried in its own. */
static int in_child(const char *limit, int (*body)(void))
{
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		if (limit)
			setenv("SMALTI_MAX_ISA", limit, 1);
		else
			unsetenv("SMALTI_MAX_ISA");
		_exit(body());
	}
	int status = -1;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int chosen(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	return smalti_isa_check(&error) < 0 ? 100 : (int)smalti_isa();
}

static int library(void)
{
	smalti_isa();
	return dnnl_get_effective_cpu_isa() <= dnnl_cpu_isa_avx2;
}

static int bf16(void)
{
	return smalti_isa_bf16();
}

static int complains(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	return smalti_isa_check(&error) == -1 && error.code == SMALTI_EINVAL &&
	       strstr(error.message, "SMALTI_MAX_ISA") && strstr(error.message, "AVX2") &&
	       smalti_isa() < SMALTI_ISAS;
}

static int knows_bf16(void)
{
	return strstr(smalti_isa_features(), "avx512_bf16") != NULL;
}

/* Intel's processors without AMX take avx512_bf16 only by name: they multiply bf16 at half the rate of f32.
 */
static bool only_by_name(int isa, int best)
{
	return isa == SMALTI_ISA_AVX512_BF16 && best == SMALTI_ISA_AVX512 && in_child(NULL, knows_bf16) == 1;
}

static void limit_is_obeyed(void)
{
	int best = in_child(NULL, chosen);
	CU_ASSERT_TRUE(best >= 0 && best < SMALTI_ISAS);
	CU_ASSERT_EQUAL(in_child("", chosen), best);
	for (int isa = 0; isa < SMALTI_ISAS; isa++) {
		const char *name = smalti_isa_name((enum smalti_isa)isa);
		const int expected = isa < best || only_by_name(isa, best) ? isa : best;
		CHECK(in_child(name, chosen) == expected, name);
		if (isa < SMALTI_ISA_AVX512)
			CHECK(in_child(name, library) == 1, name);
		if (isa < SMALTI_ISA_AVX512_BF16)
			CHECK(in_child(name, bf16) == 0, name);
	}
}

static void unknown_limit_is_reported(void)
{
	CU_ASSERT_EQUAL(in_child("AVX2", complains), 1);
}

static void names_and_features(void)
{
	CU_ASSERT_STRING_EQUAL(smalti_isa_name(SMALTI_ISA_GENERIC), "generic");
	CU_ASSERT_STRING_EQUAL(smalti_isa_name(SMALTI_ISA_AVX2), "avx2");
	CU_ASSERT_STRING_EQUAL(smalti_isa_name(SMALTI_ISA_AVX512), "avx512");
	if (smalti_isa() >= SMALTI_ISA_AVX2)
		CU_ASSERT_PTR_NOT_NULL(strstr(smalti_isa_features(), "avx2"));
	if (smalti_isa() >= SMALTI_ISA_AVX512)
		CU_ASSERT_PTR_NOT_NULL(strstr(smalti_isa_features(), "avx512vl"));
}

/* Whether a kernel is missing where the instruction set does not multiply bf16. */
static const bool is_bf16[] = {
#define KERNEL(type, name, parameters)      false,
#define BF16_KERNEL(type, name, parameters) true,
#include "kernels/kernels.def"
};

static void every_table_is_full(void)
{
	for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
		const struct smalti_cpu_kernels *kernels = smalti_cpu_kernels((enum smalti_isa)isa);
		void *entry[sizeof(*kernels) / sizeof(void *)];
		memcpy(entry, kernels, sizeof(*kernels));
		for (size_t i = 0; i < COUNT(entry); i++)
			CHECK((entry[i] == NULL) == (is_bf16[i] && isa < SMALTI_ISA_AVX512_BF16),
			      smalti_isa_name((enum smalti_isa)isa));
	}
}

static const struct test tests[] = {
    {"the limit is obeyed", limit_is_obeyed},
    {"an unknown limit is reported", unknown_limit_is_reported},
    {"names and features", names_and_features},
    {"every table is full", every_table_is_full},
};

TEST_MAIN("isa", tests)
