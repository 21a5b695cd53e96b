/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries, their purposes, and the versions that run. */
#include "kernels/isa.h"
#include "smalti/version.h"
#include "topology/topology.h"

#include <cjson/cJSON.h>
#include <dnnl.h>
#include <hwloc.h>
#include <libdeflate.h>
#include <png.h>
#include <starpu.h>
#include <webp/decode.h>
#include <xxhash.h>

#ifdef SMALTI_CUDA
#include <cublasLt.h>
#endif
#ifdef SMALTI_CUDNN
#include <cudnn.h>
#endif

struct version {
	char text[64];
};

static struct version named(const char *text)
{
	struct version version;
	snprintf(version.text, sizeof(version.text), "%s", text);
	return version;
}

static struct version join(int major, int minor, int patch)
{
	struct version version;
	snprintf(version.text, sizeof(version.text), "%d.%d.%d", major, minor, patch);
	return version;
}

/* Splits a number into bytes. */
static struct version of_bytes(int number)
{
	return join(number >> 16, number >> 8 & 0xff, number & 0xff);
}

/* Splits a number by two digits. */
static struct version of_digits(int number)
{
	return join(number / 10000, number / 100 % 100, number % 100);
}

/* Names the version that this was built against where it cannot ask. */
int smalti_topology_libraries(struct smalti_topology *topology, struct smalti_error *error)
{
	const dnnl_version_t *onednn = dnnl_version();
	int starpu[3];
	starpu_get_version(&starpu[0], &starpu[1], &starpu[2]);
#ifdef SMALTI_CUDA
	int cuda = 0;
	cudaRuntimeGetVersion(&cuda);
#endif
	const struct {
		const char *name;
		struct version version;
		const char *serves;
	} libraries[] = {
	    {"oneDNN", join(onednn->major, onednn->minor, onednn->patch), "matmul, convolution"},
	    {"smalti's kernels", named(smalti_version()), "attention, norms, element-wise, layout"},
	    {"StarPU", join(starpu[0], starpu[1], starpu[2]), "scheduling, memory, performance models"},
	    {"hwloc", of_bytes((int)hwloc_get_api_version()), "the machine's topology"},
	    {"SentencePiece", named(SMALTI_SENTENCEPIECE_VERSION), "tokenizer"},
	    {"libpng", named(png_get_libpng_ver(NULL)), "PNG files"},
	    {"libjpeg", named(SMALTI_LIBJPEG_VERSION), "JPEG files"},
	    {"libwebp", of_bytes(WebPGetDecoderVersion()), "WebP files"},
	    {"cJSON", named(cJSON_Version()), "JSON"},
	    {"xxHash", of_digits((int)XXH_versionNumber()), "checksums"},
	    {"libdeflate", named(LIBDEFLATE_VERSION_STRING), "compressed features"},
#ifdef SMALTI_OPENCL
	    {"OpenCL", named(SMALTI_OPENCL_VERSION), "OpenCL devices"},
	    {"CLBlast", named(SMALTI_CLBLAST_VERSION), "matmul on them"},
#endif
#ifdef SMALTI_CUDA
	    {"CUDA", join(cuda / 1000, cuda / 10 % 100, cuda % 10), "CUDA devices"},
	    {"cuBLASLt", of_digits((int)cublasLtGetVersion()), "matmul on them"},
#endif
#ifdef SMALTI_CUDNN
	    {"cuDNN", of_digits((int)cudnnGetVersion()), "convolution, attention on them"},
#endif
	};
	topology->libraries = smalti_calloc(COUNT_OF(libraries), sizeof(*topology->libraries), error);
	for (size_t i = 0; i < COUNT_OF(libraries) && topology->libraries; i++) {
		struct smalti_topology_library *library = &topology->libraries[topology->library_count++];
		snprintf(library->name, sizeof(library->name), "%s", libraries[i].name);
		snprintf(library->version, sizeof(library->version), "%s", libraries[i].version.text);
		snprintf(library->serves, sizeof(library->serves), "%s", libraries[i].serves);
	}
	return topology->libraries ? 0 : -1;
}
