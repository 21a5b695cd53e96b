/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/isa.h"

#include <dnnl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const names[SMALTI_ISAS] = {"generic", "avx2", "avx512"};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static enum smalti_isa chosen;
static const char *unknown; /* the value of SMALTI_MAX_ISA that names nothing */
static bool library_refused;
static char features[256];

const char *smalti_isa_name(enum smalti_isa isa)
{
	return names[isa];
}

/* Includes what the operating system saves of the registers. */
static enum smalti_isa best_here(void)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
		return SMALTI_ISA_GENERIC;
	if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
	    !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
		return SMALTI_ISA_AVX2;
	return SMALTI_ISA_AVX512;
#else
	return SMALTI_ISA_GENERIC;
#endif
}

static void list_features(void)
{
#if defined(__x86_64__)
	static const struct {
		const char *name;
		unsigned leaf, subleaf;
		int word, bit; /* of eax, ebx, ecx, edx */
	} known[] = {
	    {"avx", 1, 0, 2, 28},        {"f16c", 1, 0, 2, 29},        {"fma", 1, 0, 2, 12},
	    {"avx2", 7, 0, 1, 5},        {"avx512f", 7, 0, 1, 16},     {"avx512dq", 7, 0, 1, 17},
	    {"avx512bw", 7, 0, 1, 30},   {"avx512vl", 7, 0, 1, 31},    {"avx512_vnni", 7, 0, 2, 11},
	    {"avx512_bf16", 7, 1, 0, 5}, {"avx512_fp16", 7, 0, 3, 23}, {"amx_tile", 7, 0, 3, 24},
	    {"amx_bf16", 7, 0, 3, 22},   {"amx_fp16", 7, 1, 0, 21},
	};
	char *end = features;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		unsigned words[4] = {0};
		if (!__get_cpuid_count(known[i].leaf, known[i].subleaf, &words[0], &words[1], &words[2],
				       &words[3]) ||
		    !(words[known[i].word] >> known[i].bit & 1))
			continue;
		const char *blank = end > features ? " " : "";
		end +=
		    snprintf(end, sizeof(features) - (size_t)(end - features), "%s%s", blank, known[i].name);
	}
#endif
}

static enum smalti_isa allowed(void)
{
	const char *limit = getenv("SMALTI_MAX_ISA");
	if (!limit || !*limit)
		return SMALTI_ISA_AVX512;
	for (int isa = 0; isa < SMALTI_ISAS; isa++)
		if (!strcmp(limit, names[isa]))
			return (enum smalti_isa)isa;
	unknown = limit;
	return SMALTI_ISA_AVX512;
}

static void choose(void)
{
	enum smalti_isa best = best_here(), limit = allowed();
	chosen = limit < best ? limit : best;
	if (limit < SMALTI_ISA_AVX512)
		library_refused = dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2) != dnnl_success;
	list_features();
}

enum smalti_isa smalti_isa(void)
{
	pthread_once(&once, choose);
	return chosen;
}

int smalti_isa_check(struct smalti_error *error)
{
	smalti_isa();
	if (unknown)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "environment variable SMALTI_MAX_ISA: expected generic, avx2 or avx512, found '%s'",
		    unknown);
	if (library_refused)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "environment variable SMALTI_MAX_ISA: oneDNN cannot be limited any more; start "
		    "the session before oneDNN is used, or unset the variable");
	return 0;
}

bool smalti_isa_bf16(void)
{
	if (smalti_isa() < SMALTI_ISA_AVX512)
		return false;
	unsigned has = (unsigned)dnnl_get_effective_cpu_isa();
	if ((has & dnnl_cpu_isa_avx512_core_amx) == dnnl_cpu_isa_avx512_core_amx)
		return true;
#if defined(__x86_64__)
	return (has & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16 &&
	       !__builtin_cpu_is("intel");
#else
	return false;
#endif
}

const char *smalti_isa_features(void)
{
	smalti_isa();
	return features;
}
