/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/isa.h"

#include <dnnl.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

static const char *const names[SMALTI_ISAS] = {"generic", "avx2", "avx512", "avx512_bf16", "amx"};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static enum smalti_isa chosen;
static const char *unknown; /* an invalid value of SMALTI_MAX_ISA */
static bool library_refused;
static char features[256];

const char *smalti_isa_name(enum smalti_isa isa)
{
	return names[isa];
}

#if defined(__x86_64__)
/* Asks the kernel for AMX's tiles for this process; threads made later have them too. */
static bool obtain_amx(void)
{
	enum {
		REQUEST = 0x1023,
		TILE_DATA = 18,
		TILE_STATE = 3 << 17,
		BF16 = 1 << 22,
		TILES = 1 << 24,
		INT8 = 1 << 25
	};
	unsigned eax, ebx, ecx, edx, low, high;
	if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !(edx & BF16) || !(edx & TILES) ||
	    !(edx & INT8))
		return false;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (low & TILE_STATE) == TILE_STATE && !syscall(SYS_arch_prctl, REQUEST, TILE_DATA);
}
#endif

/* Returns the best set that CPU and operating system support. */
static enum smalti_isa best_here(enum smalti_isa limit)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
		return SMALTI_ISA_GENERIC;
	if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
	    !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
		return SMALTI_ISA_AVX2;
	if (limit <= SMALTI_ISA_AVX512 || !__builtin_cpu_supports("avx512bf16") ||
	    !__builtin_cpu_supports("avx512vnni"))
		return SMALTI_ISA_AVX512;
	if (limit == SMALTI_ISA_AMX && obtain_amx())
		return SMALTI_ISA_AMX;
	return limit == SMALTI_ISA_AVX512_BF16 || !__builtin_cpu_is("intel") ? SMALTI_ISA_AVX512_BF16
									     : SMALTI_ISA_AVX512;
#else
	(void)limit;
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
	    {"amx_bf16", 7, 0, 3, 22},   {"amx_int8", 7, 0, 3, 25},    {"amx_fp16", 7, 1, 0, 21},
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
		return SMALTI_ISA_AMX;
	for (int isa = 0; isa < SMALTI_ISAS; isa++)
		if (!strcmp(limit, names[isa]))
			return (enum smalti_isa)isa;
	unknown = limit;
	return SMALTI_ISA_AMX;
}

static void choose(void)
{
	static const dnnl_cpu_isa_t library_limits[SMALTI_ISAS] = {
	    [SMALTI_ISA_GENERIC] = dnnl_cpu_isa_avx2,
	    [SMALTI_ISA_AVX2] = dnnl_cpu_isa_avx2,
	    [SMALTI_ISA_AVX512] = dnnl_cpu_isa_avx512_core,
	    [SMALTI_ISA_AVX512_BF16] = dnnl_cpu_isa_avx512_core_bf16,
	    [SMALTI_ISA_AMX] = (dnnl_cpu_isa_t)0, /* all sets: dnnl_cpu_isa_all in oneDNN 2, _default in 3 */
	};
	enum smalti_isa limit = allowed(), best = best_here(limit);
	chosen = limit < best ? limit : best;
	/* Called also without a limit: it overrules DNNL_MAX_CPU_ISA and similar variables. */
	const bool refused = dnnl_set_max_cpu_isa(library_limits[limit]) != dnnl_success;
	library_refused = refused && limit < SMALTI_ISA_AMX;
	(void)dnnl_set_cpu_isa_hints(dnnl_cpu_isa_no_hints);
	(void)dnnl_set_default_fpmath_mode(dnnl_fpmath_mode_strict);
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
		    "environment variable SMALTI_MAX_ISA: expected generic, avx2, avx512, avx512_bf16 or "
		    "amx, found '%s'",
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
	if (smalti_isa() < SMALTI_ISA_AVX512_BF16)
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
