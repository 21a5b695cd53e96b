/* SPDX-License-Identifier: Apache-2.0 */
#include "devices/cuda.h"

#include "devices/nvml.h"

#include <limits.h>
#include <math.h>
#include <xxhash.h>

/* src/kernels/device/cuda.fatbin, which the build made of program.cl. */
__asm__(".pushsection .rodata\n"
	".balign 16\n"
	".local smalti_cuda_program\n"
	"smalti_cuda_program: .incbin \"src/kernels/device/cuda.fatbin\"\n"
	".popsection\n");
extern const char smalti_cuda_program[] __attribute__((visibility("hidden")));

/* The least compute capability that the kernels are compiled for. */
enum { MIN_CAPABILITY = 8 };

static int64_t available(void)
{
	int count = 0;
	return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

static int64_t min_memory(void)
{
	struct cudaDeviceProp properties;
	const int64_t count = available();
	int64_t min = INT64_MAX;
	for (int i = 0; i < count; i++)
		if (cudaGetDeviceProperties(&properties, i) == cudaSuccess)
			min = smalti_min(min, (int64_t)properties.totalGlobalMem);
	return min;
}

cudaStream_t smalti_cuda_stream(struct smalti_cuda_device *cuda)
{
	if (!cuda->stream)
		cuda->stream = starpu_cuda_get_local_stream();
	return cuda->stream;
}

int64_t smalti_cuda_workspace_bytes(const struct smalti_cuda_device *cuda)
{
	return smalti_min(smalti_device_room(&cuda->device), 32 << 20);
}

void *smalti_cuda_workspace(struct smalti_cuda_device *cuda, struct smalti_error *error)
{
	struct smalti_device_memory *workspace = &cuda->workspace[cuda->device.lane];
	if (!workspace->memory)
		smalti_device_allocate(&cuda->device, workspace, smalti_cuda_workspace_bytes(cuda), error);
	return workspace->memory;
}

/* Fails with CUDA's error, and clears it: CUDA would report it to the next caller. */
static int fail(cudaError_t status, struct smalti_error *error, const char *what)
{
	cudaGetLastError();
	return smalti_fail(error, status == cudaErrorMemoryAllocation ? SMALTI_ENOMEM : SMALTI_ENODEV,
			   "%s: CUDA says '%s' (%d)", what, cudaGetErrorString(status), (int)status);
}

/* Finds a kernel; asks CUDA for each name once. */
static cudaError_t find_kernel(struct smalti_cuda_device *cuda, const char *name, cudaKernel_t *kernel)
{
	struct smalti_cuda_kernel *known = &cuda->known[XXH32(name, strlen(name), 0) % SMALTI_CUDA_KERNELS];
	if (!known->kernel || strcmp(known->name, name) != 0) {
		cudaKernel_t found = NULL;
		const cudaError_t status = cudaLibraryGetKernel(&found, cuda->kernels, name);
		if (status)
			return status;
		*known = (struct smalti_cuda_kernel){name, found};
	}
	*kernel = known->kernel;
	return cudaSuccess;
}

static int launch_kernel(struct smalti_device *device, const struct smalti_launch *launch,
			 const struct smalti_device_memory *const *buffers, int count, const void *arguments,
			 size_t argument_bytes, struct smalti_error *error)
{
	struct smalti_cuda_device *cuda = (struct smalti_cuda_device *)device;
	const struct dim3 groups = {(unsigned)launch->groups, 1, 1},
			  threads = {(unsigned)launch->threads, 1, 1};
	void *addresses[SMALTI_MAX_BUFFERS], *parameters[SMALTI_MAX_BUFFERS + 1];
	char what[128];
	cudaKernel_t kernel = NULL;
	(void)argument_bytes; /* the compiled kernel knows its size */
	for (int i = 0; i < count; i++) {
		addresses[i] = buffers[i] ? buffers[i]->memory : NULL;
		parameters[i] = &addresses[i];
	}
	parameters[count] = (void *)(uintptr_t)arguments;
	cudaError_t status = launch->groups <= INT_MAX ? cudaSuccess : cudaErrorInvalidConfiguration;
	if (!status)
		status = find_kernel(cuda, launch->kernel, &kernel);
	if (!status)
		status = cudaLaunchKernel(kernel, groups, threads, parameters, 0, smalti_cuda_stream(cuda));
	if (!status)
		return 0;
	snprintf(what, sizeof(what), "kernel '%s' of %lld x %d threads", launch->kernel,
		 (long long)launch->groups, launch->threads);
	return fail(status, error, what);
}

static int finish(struct smalti_device *device, struct smalti_error *error)
{
	const cudaError_t status =
	    cudaStreamSynchronize(smalti_cuda_stream((struct smalti_cuda_device *)device));
	return status ? fail(status, error, "a device's stream") : 0;
}

static void *allocate(struct smalti_device *device, int64_t bytes, struct smalti_error *error)
{
	char what[128];
	void *memory = NULL;
	const cudaError_t status =
	    cudaMallocAsync(&memory, (size_t)bytes, smalti_cuda_stream((struct smalti_cuda_device *)device));
	if (!status)
		return memory;
	snprintf(what, sizeof(what), "%lld bytes of scratch memory on a device", (long long)bytes);
	fail(status, error, what);
	return NULL;
}

/* Makes another device the calling thread's; returns the one before. */
static int change_device(int number)
{
	int before = 0;
	cudaGetDevice(&before);
	cudaSetDevice(number);
	return before;
}

static void release(struct smalti_device *device, void *memory)
{
	const struct smalti_cuda_device *cuda = (const struct smalti_cuda_device *)device;
	const int before = change_device(cuda->number); /* for closing a session, on another thread */
	cudaFreeAsync(memory, cuda->stream);
	cudaSetDevice(before);
}

static void close_device(struct smalti_device *device)
{
	struct smalti_cuda_device *cuda = (struct smalti_cuda_device *)device;
	const int before = change_device(cuda->number);
	for (int lane = 0; lane < SMALTI_DEVICE_LANES; lane++)
		smalti_device_release(device, &cuda->workspace[lane]);
	smalti_cuda_repeat_close(cuda);
	smalti_cuda_products_close(cuda);
#ifdef SMALTI_HOPPER
	smalti_cuda_attention_close(cuda);
#endif
#ifdef SMALTI_CUDNN
	smalti_cuda_graphs_close(cuda);
#endif
	if (cuda->stream)
		cudaStreamSynchronize(cuda->stream);
	if (cuda->kernels)
		cudaLibraryUnload(cuda->kernels);
	smalti_nvml_close(cuda->nvml);
	cudaSetDevice(before);
	free(cuda);
}

static int check_capability(int number, struct smalti_error *error)
{
	int major = 0, minor = 0;
	cudaError_t status = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, number);
	if (!status)
		status = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, number);
	if (status)
		return fail(status, error, "the compute capability of a device");
	if (major >= MIN_CAPABILITY)
		return 0;
	return smalti_fail(
	    error, SMALTI_EUNSUPPORTED,
	    "CUDA device %d has compute capability %d.%d: expected %d.0 or more; leave it out by "
	    "STARPU_WORKERS_CUDAID",
	    number, major, minor, MIN_CAPABILITY);
}

/* Estimates f32 operations a second: a multiprocessor's 128 units do a multiply-add per cycle; tensor cores
 * do more. */
static double speed_of(int number)
{
	int units = 0, kilohertz = 0;
	cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, number);
	cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, number);
	return 1e3 * (kilohertz > 0 ? kilohertz : 1000000) * (units > 0 ? units : 1) * 2 * 128;
}

static struct smalti_nvml *open_nvml(int number)
{
	char bus_id[32];
	return cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), number) ? NULL : smalti_nvml_open(bus_id);
}

static double utilisation(const struct smalti_device *device, double since)
{
	const struct smalti_nvml *nvml = ((const struct smalti_cuda_device *)device)->nvml;
	return nvml ? smalti_nvml_utilisation(nvml, (uint64_t)(1e6 * since)) : (double)NAN;
}

static int load(struct smalti_cuda_device *cuda, struct smalti_error *error)
{
	if (check_capability(cuda->number, error) < 0)
		return -1;
	const cudaError_t status =
	    cudaLibraryLoadData(&cuda->kernels, smalti_cuda_program, NULL, NULL, 0, NULL, NULL, 0);
	return status ? fail(status, error, "Smalti's kernels") : smalti_cuda_products_open(cuda, error);
}

static struct smalti_device *open_device(int worker, struct smalti_error *error)
{
	struct smalti_cuda_device *cuda = smalti_calloc(1, sizeof(*cuda), error);
	if (!cuda)
		return NULL;
	cuda->number = starpu_worker_get_devid(worker);
	cuda->device.speed = speed_of(cuda->number);
	cuda->nvml = open_nvml(cuda->number);
	const int before = change_device(cuda->number);
	const int status = load(cuda, error);
#ifdef SMALTI_HOPPER
	if (status == 0)
		smalti_cuda_attention_open(cuda);
#endif
#ifdef SMALTI_CUDNN
	if (status == 0)
		smalti_cuda_graphs_open(cuda);
#endif
	cudaSetDevice(before);
	if (status == 0)
		return &cuda->device;
	close_device(&cuda->device);
	return NULL;
}

const struct smalti_device_driver smalti_cuda = {
    .worker = STARPU_CUDA_WORKER,
    .operands = 1u << SMALTI_F32 | 1u << SMALTI_F16 | 1u << SMALTI_BF16,
    .available = available,
    .memory = min_memory,
    .open = open_device,
    .close = close_device,
    .launch = launch_kernel,
    .repeat = smalti_cuda_repeat,
    .follow = smalti_cuda_follow,
    .finish = finish,
    .utilisation = utilisation,
    .makes = smalti_cuda_makes,
    .product = smalti_cuda_product,
#ifdef SMALTI_CUDNN
    .has_convolution = smalti_cuda_has_convolution,
    .convolve = smalti_cuda_convolve,
    .has_sdpa = smalti_cuda_has_sdpa,
    .sdpa = smalti_cuda_sdpa,
#endif
#ifdef SMALTI_HOPPER
    .attends_tile = smalti_cuda_attends_tile,
    .attend_tile = smalti_cuda_attend_tile,
#endif
    .allocate = allocate,
    .release = release,
};
