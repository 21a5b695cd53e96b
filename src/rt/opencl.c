/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/opencl.h"

/* src/kernels/device/opencl.cl, as the build made it of program.cl. */
__asm__(".pushsection .rodata\n"
	".local smalti_opencl_program\n"
	"smalti_opencl_program: .incbin \"src/kernels/device/opencl.cl\"\n"
	".byte 0\n"
	".popsection\n");
extern const char smalti_opencl_program[] __attribute__((visibility("hidden")));

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

void smalti_device_begin(const struct smalti_device *device)
{
	if (device->takes_turns)
		pthread_mutex_lock(&turn);
}

void smalti_device_end(const struct smalti_device *device)
{
	if (device->takes_turns)
		pthread_mutex_unlock(&turn);
}

static bool is_pocl(cl_device_id id)
{
	cl_platform_id platform = NULL;
	char name[128] = "";
	clGetDeviceInfo(id, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL);
	clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(name) - 1, name, NULL);
	return strcmp(name, "Portable Computing Language") == 0;
}

static cl_kernel find_kernel(const struct smalti_device *device, const char *name)
{
	for (cl_uint i = 0; i < device->kernel_count; i++)
		if (strcmp(device->names[i], name) == 0)
			return device->kernels[i];
	return NULL;
}

int smalti_device_launch(struct smalti_device *device, const struct smalti_launch *launch,
			 const struct smalti_device_memory *const *buffers, int count, const void *arguments,
			 size_t argument_bytes, struct smalti_error *error)
{
	const size_t threads = (size_t)launch->threads, items = (size_t)launch->groups * threads;
	cl_kernel kernel = find_kernel(device, launch->kernel);
	cl_int status = kernel ? CL_SUCCESS : CL_INVALID_KERNEL_NAME;
	if (items == 0)
		return 0;
	for (int i = 0; i < count && !status; i++) {
		cl_mem memory = buffers[i] ? buffers[i]->memory : NULL;
		status = clSetKernelArg(kernel, (cl_uint)i, sizeof(memory), &memory);
	}
	if (!status)
		status = clSetKernelArg(kernel, (cl_uint)count, argument_bytes, arguments);
	smalti_device_begin(device);
	if (!status)
		status =
		    clEnqueueNDRangeKernel(device->queue, kernel, 1, NULL, &items, &threads, 0, NULL, NULL);
	smalti_device_end(device);
	if (!status)
		return 0;
	return smalti_fail(error, SMALTI_ENODEV, "kernel '%s' of %lld x %d threads: OpenCL says '%s' (%d)",
			   launch->kernel, (long long)launch->groups, launch->threads,
			   starpu_opencl_error_string(status), status);
}

int smalti_device_allocate(struct smalti_device *device, struct smalti_device_memory *memory, int64_t bytes,
			   struct smalti_error *error)
{
	cl_int status;
	memory->memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &status);
	if (!memory->memory)
		return smalti_fail(error, SMALTI_ENOMEM,
				   "%lld bytes of scratch memory on a device: OpenCL says '%s' (%d)",
				   (long long)bytes, starpu_opencl_error_string(status), status);
	memory->bytes = bytes;
	starpu_memory_allocate(device->memory_node, (size_t)bytes, STARPU_MEMORY_OVERFLOW); /* counts it */
	return 0;
}

void smalti_device_release(struct smalti_device *device, struct smalti_device_memory *memory)
{
	if (!memory->memory)
		return;
	clReleaseMemObject(memory->memory); /* when the commands before have ended */
	starpu_memory_deallocate(device->memory_node, (size_t)memory->bytes);
	*memory = (struct smalti_device_memory){NULL, 0};
}

const struct smalti_device_memory *smalti_device_scratch(struct smalti_device *device, int slot,
							 int64_t bytes, struct smalti_error *error)
{
	struct smalti_device_memory *scratch = &device->scratch[slot];
	if (scratch->memory && scratch->bytes >= bytes)
		return scratch;
	smalti_device_release(device, scratch);
	return smalti_device_allocate(device, scratch, bytes, error) == 0 ? scratch : NULL;
}

/* The beginning of what the compiler says. */
static int fail_build(const struct smalti_device *device, const char *name, struct smalti_error *error)
{
	size_t bytes = 0;
	char *log = NULL;
	clGetProgramBuildInfo(device->program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
	if (bytes)
		log = smalti_calloc((int64_t)bytes + 1, 1, NULL);
	if (log)
		clGetProgramBuildInfo(device->program, device->id, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
	smalti_fail(
	    error, SMALTI_EUNSUPPORTED,
	    "OpenCL device '%s' does not compile Smalti's kernels (update its driver, or leave it out "
	    "by STARPU_WORKERS_OPENCLID): %.300s",
	    name, log ? log : "it does not say why");
	free(log);
	return -1;
}

static int build(struct smalti_device *device, const char *name, struct smalti_error *error)
{
	const char *text = smalti_opencl_program;
	cl_int status;
	device->program = clCreateProgramWithSource(device->context, 1, &text, NULL, &status);
	if (!device->program || clBuildProgram(device->program, 1, &device->id, "-cl-std=CL1.2", NULL, NULL))
		return fail_build(device, name, error);
	cl_uint count = 0;
	clCreateKernelsInProgram(device->program, 0, NULL, &count);
	device->kernels = smalti_calloc(count, sizeof(*device->kernels), error);
	device->names = smalti_calloc(count, sizeof(*device->names), error);
	if (!device->kernels || !device->names)
		return -1;
	if (clCreateKernelsInProgram(device->program, count, device->kernels, NULL))
		return fail_build(device, name, error);
	device->kernel_count = count;
	for (cl_uint i = 0; i < count; i++)
		if (clGetKernelInfo(device->kernels[i], CL_KERNEL_FUNCTION_NAME, sizeof(device->names[i]) - 1,
				    device->names[i], NULL))
			return fail_build(device, name, error);
	return 0;
}

static void free_device(struct smalti_device *device)
{
	if (!device)
		return;
	for (int i = 0; i < SMALTI_DEVICE_SCRATCH; i++)
		smalti_device_release(device, &device->scratch[i]);
	smalti_device_locals_free(device);
	for (cl_uint i = 0; i < device->kernel_count; i++)
		clReleaseKernel(device->kernels[i]);
	free(device->kernels);
	free(device->names);
	if (device->program)
		clReleaseProgram(device->program);
	free(device);
}

static struct smalti_device *new_device(int worker, struct smalti_error *error)
{
	char name[128] = "", extensions[4096] = "";
	struct smalti_device *device = smalti_calloc(1, sizeof(*device), error);
	if (!device)
		return NULL;
	const int number = starpu_worker_get_devid(worker);
	starpu_opencl_get_context(number, &device->context);
	starpu_opencl_get_device(number, &device->id);
	starpu_opencl_get_queue(number, &device->queue);
	device->takes_turns = is_pocl(device->id);
	device->memory_node = starpu_worker_get_memory_node((unsigned)worker);
	clGetDeviceInfo(device->id, CL_DEVICE_NAME, sizeof(name) - 1, name, NULL);
	clGetDeviceInfo(device->id, CL_DEVICE_EXTENSIONS, sizeof(extensions) - 1, extensions, NULL);
	int status = 0;
	if (!strstr(extensions, "cl_khr_fp64"))
		status = smalti_fail(error, SMALTI_EUNSUPPORTED,
				     "OpenCL device '%s' has no double precision (cl_khr_fp64): leave it out "
				     "by STARPU_WORKERS_OPENCLID",
				     name);
	if (status == 0 && build(device, name, error) == 0)
		return device;
	free_device(device);
	return NULL;
}

static int check_count(int64_t wanted, struct smalti_error *error)
{
	const int64_t found = (int64_t)starpu_opencl_worker_get_count();
	if (found >= wanted)
		return 0;
	return smalti_fail(
	    error, SMALTI_ENODEV,
	    "%lld OpenCL devices are asked for and %lld found: install the device's driver "
	    "(clinfo -l lists devices), or set STARPU_OPENCL_ON_CPUS=1 for a CPU's, such as PoCL",
	    (long long)wanted, (long long)found);
}

struct smalti_device **smalti_devices_open(int64_t wanted, struct smalti_error *error)
{
	const int workers = (int)starpu_worker_get_count();
	if (check_count(wanted, error) < 0)
		return NULL;
	struct smalti_device **devices = smalti_calloc(workers + 1, sizeof(struct smalti_device *), error);
	for (int i = 0; devices && i < workers; i++) {
		if (starpu_worker_get_type(i) != STARPU_OPENCL_WORKER)
			continue;
		devices[i] = new_device(i, error);
		if (!devices[i]) {
			smalti_devices_close(devices);
			return NULL;
		}
	}
	return devices;
}

void smalti_devices_close(struct smalti_device **devices)
{
	const int workers = devices ? (int)starpu_worker_get_count() : 0;
	for (int i = 0; i < workers; i++)
		free_device(devices[i]);
	free(devices);
}
