/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by kernels for compute capability 9.0 (src/kernels/device/attention_hopper.cl). */
#include "devices/cuda.h"

#include "kernels/device/hopper_parts.h"

#include <cuda.h>

#include <limits.h>
#include <math.h>

/* src/kernels/device/hopper.fatbin, which the build made of hopper.cl. */
__asm__(".pushsection .rodata\n"
	".balign 16\n"
	".local smalti_hopper_program\n"
	"smalti_hopper_program: .incbin \"src/kernels/device/hopper.fatbin\"\n"
	".popsection\n");
extern const char smalti_hopper_program[] __attribute__((visibility("hidden")));

/* The driver's cuTensorMapEncodeTiled(), as of CUDA 12.0. */
typedef CUresult encode_function(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
				 const cuuint64_t *extents, const cuuint64_t *strides, const cuuint32_t *box,
				 const cuuint32_t *steps, CUtensorMapInterleave interleave,
				 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
				 CUtensorMapFloatOOBfill fill);
enum { ENCODES_SINCE = 12000 };

/* Kernels for heads of one size; a group has `teams` teams (attention_hopper.cl). */
static const struct form {
	int64_t head_dim;
	int teams;
	const char *kernels[SMALTI_BF16 + 1]; /* by dtype */
	int narrow, bytes;                    /* see hopper_parts.h */
} forms[] = {
#define FORM(head_dim, teams)                                                                                \
	{                                                                                                    \
		head_dim, teams,                                                                             \
		    {[SMALTI_F16] = "attend_hopper_f16_" #head_dim "_" #teams,                               \
		     [SMALTI_BF16] = "attend_hopper_bf16_" #head_dim "_" #teams},                            \
		    SMALTI_HOPPER_NARROW(head_dim), SMALTI_HOPPER_BYTES(head_dim, teams)                     \
	}
    FORM(64, 2), FORM(64, 3), FORM(72, 2), FORM(72, 3), FORM(80, 2), FORM(96, 2), FORM(128, 2),
};
enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

struct smalti_cuda_attention {
	cudaLibrary_t library;
	encode_function *encode;
	cudaKernel_t kernels[FORMS][SMALTI_BF16 + 1];
	int units; /* multiprocessors, at least 1: each has one group */
};

/* Finds the kernels and allows each its shared memory. */
static bool find_kernels(struct smalti_cuda_attention *attention, int number)
{
	static const enum smalti_dtype dtypes[] = {SMALTI_F16, SMALTI_BF16};
	for (int i = 0; i < 2 * FORMS; i++) {
		const struct form *form = &forms[i / 2];
		cudaKernel_t *kernel = &attention->kernels[i / 2][dtypes[i % 2]];
		if (cudaLibraryGetKernel(kernel, attention->library, form->kernels[dtypes[i % 2]]) ||
		    cudaKernelSetAttributeForDevice(*kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
						    form->bytes, number))
			return false;
	}
	return true;
}

static bool find_encoder(struct smalti_cuda_attention *attention)
{
	enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
	void *encode = NULL;
	if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, ENCODES_SINCE,
					     cudaEnableDefault, &found) ||
	    found != cudaDriverEntryPointSuccess)
		return false;
	memcpy(&attention->encode, &encode, sizeof(encode)); /* ISO C has no cast for this */
	return encode;
}

/* Opens the kernels. Where anything is missing, the device has none, and other kernels compute attention. */
void smalti_cuda_attention_open(struct smalti_cuda_device *cuda)
{
	int major = 0, minor = 0;
	if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, cuda->number) ||
	    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, cuda->number) || major != 9 ||
	    minor != 0)
		return;
	struct smalti_cuda_attention *attention = calloc(1, sizeof(*attention));
	cuda->attention = attention;
	if (!attention)
		return;
	if (!cudaDeviceGetAttribute(&attention->units, cudaDevAttrMultiProcessorCount, cuda->number) &&
	    attention->units > 0 &&
	    !cudaLibraryLoadData(&attention->library, smalti_hopper_program, NULL, NULL, 0, NULL, NULL, 0) &&
	    find_encoder(attention) && find_kernels(attention, cuda->number))
		return;
	cudaGetLastError();
	smalti_cuda_attention_close(cuda);
}

void smalti_cuda_attention_close(struct smalti_cuda_device *cuda)
{
	if (cuda->attention && cuda->attention->library)
		cudaLibraryUnload(cuda->attention->library);
	free(cuda->attention);
	cuda->attention = NULL;
}

/* A matrix [tokens, heads, head_dim] whose rows are `stride` elements apart. */
struct matrix {
	const struct smalti_device_memory *memory;
	int64_t first, stride, tokens;
};

static char *address_of(const struct matrix *m)
{
	return (char *)m->memory->memory + 2 * m->first;
}

/* Tells whether the tensor memory accelerator can copy the matrix, and the kernel can write it. */
static bool is_aligned(const struct matrix *m)
{
	return m->memory && m->memory->memory && (uintptr_t)address_of(m) % 16 == 0 && m->stride % 8 == 0;
}

static struct matrix queries_of(const struct smalti_device_attend_tile *a)
{
	return (struct matrix){a->q, 0, a->q_stride, a->queries};
}

static struct matrix keys_of(const struct smalti_device_attend_tile *a)
{
	return (struct matrix){a->kv, a->k_first, a->kv_stride, a->keys};
}

static struct matrix values_of(const struct smalti_device_attend_tile *a)
{
	return (struct matrix){a->kv, a->v_first, a->kv_stride, a->keys};
}

static int64_t shares_of(const struct smalti_device_attend_tile *a, const struct form *form)
{
	return (a->queries + SMALTI_HOPPER_QUERIES(form->teams) - 1) / SMALTI_HOPPER_QUERIES(form->teams) *
	       a->heads;
}

/* Returns the time of the shares, in units of one share of two teams. A share of three teams takes 1.22 units
 * (on an H200, heads of 72). */
static double time_of(const struct smalti_device_attend_tile *a, const struct form *form, int units)
{
	const int64_t rounds = (shares_of(a, form) + units - 1) / units;
	return (double)rounds * (form->teams == 3 ? 1.22 : 1);
}

/* Returns the fastest form for such heads; NULL: there is none. */
static const struct form *form_of(const struct smalti_device_attend_tile *a, int units)
{
	const struct form *best = NULL;
	for (const struct form *form = forms; form < forms + FORMS; form++)
		if (form->head_dim == a->head_dim &&
		    (!best || time_of(a, form, units) < time_of(a, best, units)))
			best = form;
	return best;
}

bool smalti_cuda_attends_tile(struct smalti_device *device, const struct smalti_device_attend_tile *a)
{
	const struct matrix q = queries_of(a), k = keys_of(a), v = values_of(a),
			    y = {a->y, 0, a->heads * a->head_dim, a->queries};
	const struct smalti_cuda_attention *attention = ((struct smalti_cuda_device *)device)->attention;
	if (!attention || (a->dtype != SMALTI_F16 && a->dtype != SMALTI_BF16) || a->queries <= 0 ||
	    a->keys <= 0)
		return false;
	const struct form *form = form_of(a, attention->units);
	return form && a->keys <= INT_MAX - SMALTI_HOPPER_KEYS &&
	       a->queries <= INT_MAX - SMALTI_HOPPER_QUERIES(form->teams) &&
	       shares_of(a, form) <= INT_MAX / 2 && a->scale > 0 && is_aligned(&q) && is_aligned(&k) &&
	       is_aligned(&v) && (!a->last || is_aligned(&y));
}

/* Describes the matrix in boxes of `rows` × `columns`. */
static CUresult encode(const struct smalti_cuda_attention *attention,
		       const struct smalti_device_attend_tile *a, const struct matrix *m, int rows,
		       int columns, CUtensorMap *map)
{
	const cuuint64_t extents[] = {(cuuint64_t)a->head_dim, (cuuint64_t)a->heads, (cuuint64_t)m->tokens},
			 strides[] = {2 * (cuuint64_t)a->head_dim, 2 * (cuuint64_t)m->stride};
	const cuuint32_t box[] = {(cuuint32_t)columns, 1, (cuuint32_t)rows}, steps[] = {1, 1, 1};
	const CUtensorMapSwizzle swizzle = columns == 16   ? CU_TENSOR_MAP_SWIZZLE_32B
					   : columns == 32 ? CU_TENSOR_MAP_SWIZZLE_64B
							   : CU_TENSOR_MAP_SWIZZLE_128B;
	return attention->encode(
	    map, a->dtype == SMALTI_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
	    3, address_of(m), extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
	    CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

/* Numbers the maps in the order of the kernel's parameters. */
enum { Q_WIDE, Q_NARROW, K_WIDE, K_NARROW, VALUES, MAPS };

static CUresult encode_all(const struct smalti_cuda_attention *attention,
			   const struct smalti_device_attend_tile *a, const struct form *form,
			   CUtensorMap maps[MAPS])
{
	const struct matrix q = queries_of(a), k = keys_of(a),
			    v = values_of(a), *const of[MAPS] = {&q, &q, &k, &k, &v};
	CUresult status = CUDA_SUCCESS;
	for (int i = 0; status == CUDA_SUCCESS && i < MAPS; i++) {
		const bool is_narrow = (i == Q_NARROW || i == K_NARROW) && form->narrow > 0;
		status = encode(attention, a, of[i],
				of[i] == &q ? SMALTI_HOPPER_QUERIES(form->teams) : SMALTI_HOPPER_KEYS,
				is_narrow ? form->narrow : SMALTI_HOPPER_PANEL, &maps[i]);
	}
	return status;
}

static void *memory_of(const struct smalti_device_memory *memory)
{
	return memory ? memory->memory : NULL;
}

int smalti_cuda_attend_tile(struct smalti_device *device, const struct smalti_device_attend_tile *a,
			    struct smalti_error *error)
{
	struct smalti_cuda_device *cuda = (struct smalti_cuda_device *)device;
	const struct form *form = form_of(a, cuda->attention->units);
	CUtensorMap maps[MAPS];
	void *addresses[] = {memory_of(a->state), memory_of(a->y), memory_of(a->lse)};
	struct attend_hopper_arguments arguments = {.queries = (int)a->queries,
						    .keys = (int)a->keys,
						    .heads = (int)a->heads,
						    .scale = a->scale * (float)M_LOG2E,
						    .first = a->first,
						    .last = a->last};
	void *parameters[MAPS + 4] = {[MAPS] = &addresses[0], &addresses[1], &addresses[2], &arguments};
	const struct dim3 groups = {(unsigned)smalti_min(shares_of(a, form), cuda->attention->units), 1, 1},
			  threads = {SMALTI_HOPPER_THREADS((unsigned)form->teams), 1, 1};
	for (int i = 0; i < MAPS; i++)
		parameters[i] = &maps[i];
	const CUresult encoded = encode_all(cuda->attention, a, form, maps);
	if (encoded)
		return smalti_fail(error, SMALTI_ENODEV, "cuTensorMapEncodeTiled returns %d", (int)encoded);
	const cudaError_t status =
	    cudaLaunchKernel(cuda->attention->kernels[form - forms][a->dtype], groups, threads, parameters,
			     (size_t)form->bytes, smalti_cuda_stream(cuda));
	if (!status)
		return 0;
	cudaGetLastError();
	return smalti_fail(error, SMALTI_ENODEV, "kernel '%s': CUDA says '%s' (%d)", form->kernels[a->dtype],
			   cudaGetErrorString(status), (int)status);
}
