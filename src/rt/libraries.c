/* SPDX-License-Identifier: Apache-2.0 */
/* Which library does what, in the version that runs. */
#include "kernels/isa.h"
#include "rt/topology.h"
#include "smalti/version.h"

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

struct version {
	char text[64];
};

static struct version join(unsigned major, unsigned minor, unsigned patch)
{
	struct version version;
	snprintf(version.text, sizeof(version.text), "%u.%u.%u", major, minor, patch);
	return version;
}

static struct version named(const char *text)
{
	struct version version;
	snprintf(version.text, sizeof(version.text), "%s", text);
	return version;
}

static struct version own(void)
{
	return named(smalti_version());
}

static struct version onednn(void)
{
	const dnnl_version_t *version = dnnl_version();
	return join((unsigned)version->major, (unsigned)version->minor, (unsigned)version->patch);
}

static struct version starpu(void)
{
	int major, minor, release;
	starpu_get_version(&major, &minor, &release);
	return join((unsigned)major, (unsigned)minor, (unsigned)release);
}

static struct version hwloc(void)
{
	unsigned version = hwloc_get_api_version();
	return join(version >> 16, version >> 8 & 0xff, version & 0xff);
}

/* These cannot be asked: what this was built against. */
static struct version sentencepiece(void)
{
	return named(SMALTI_SENTENCEPIECE_VERSION);
}

static struct version libjpeg(void)
{
	return named(SMALTI_LIBJPEG_VERSION);
}

static struct version libpng(void)
{
	return named(png_get_libpng_ver(NULL));
}

static struct version libwebp(void)
{
	unsigned version = (unsigned)WebPGetDecoderVersion();
	return join(version >> 16, version >> 8 & 0xff, version & 0xff);
}

static struct version cjson(void)
{
	return named(cJSON_Version());
}

/* Cannot be asked either, as OpenCL's loader and CLBlast. */
static struct version deflate(void)
{
	return named(LIBDEFLATE_VERSION_STRING);
}

static struct version xxhash(void)
{
	unsigned version = XXH_versionNumber();
	return join(version / 10000, version / 100 % 100, version % 100);
}

#ifdef SMALTI_OPENCL
static struct version opencl(void)
{
	return named(SMALTI_OPENCL_VERSION);
}

static struct version clblast(void)
{
	return named(SMALTI_CLBLAST_VERSION);
}
#endif

#ifdef SMALTI_CUDA
static struct version cuda(void)
{
	int version = 0;
	cudaRuntimeGetVersion(&version);
	return join((unsigned)version / 1000, (unsigned)version / 10 % 100, (unsigned)version % 10);
}

static struct version cublaslt(void)
{
	const unsigned version = (unsigned)cublasLtGetVersion();
	return join(version / 10000, version / 100 % 100, version % 100);
}
#endif

static const struct {
	const char *name;
	struct version (*version)(void);
	const char *serves;
} libraries[] = {
    {"oneDNN", onednn, "matmul, convolution"},
    {"smalti's kernels", own, "attention, norms, element-wise, layout"},
    {"StarPU", starpu, "scheduling, memory, performance models"},
    {"hwloc", hwloc, "the machine's topology"},
    {"SentencePiece", sentencepiece, "tokenizer"},
    {"libpng", libpng, "PNG files"},
    {"libjpeg", libjpeg, "JPEG files"},
    {"libwebp", libwebp, "WebP files"},
    {"cJSON", cjson, "JSON"},
    {"xxHash", xxhash, "checksums"},
    {"libdeflate", deflate, "compressed features"},
#ifdef SMALTI_OPENCL
    {"OpenCL", opencl, "OpenCL devices"},
    {"CLBlast", clblast, "matmul on them"},
#endif
#ifdef SMALTI_CUDA
    {"CUDA", cuda, "CUDA devices"},
    {"cuBLASLt", cublaslt, "matmul on them"},
#endif
};

int smalti_topology_libraries(struct smalti_topology *topology, struct smalti_error *error)
{
	int count = COUNT_OF(libraries);
	topology->libraries = smalti_calloc(count, sizeof(*topology->libraries), error);
	if (!topology->libraries)
		return -1;
	for (int i = 0; i < count; i++) {
		struct smalti_topology_library *library = &topology->libraries[topology->library_count++];
		struct version version = libraries[i].version();
		snprintf(library->name, sizeof(library->name), "%s", libraries[i].name);
		snprintf(library->version, sizeof(library->version), "%s", version.text);
		snprintf(library->serves, sizeof(library->serves), "%s", libraries[i].serves);
	}
	return 0;
}
