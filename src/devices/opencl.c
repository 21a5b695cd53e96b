/* SPDX-License-Identifier: Apache-2.0 */
#include "devices/opencl.h"

/* src/kernels/device/opencl.cl, which the build made of program.cl. */
__asm__(".pushsection .rodata\n"
	".local smalti_opencl_program\n"
	"smalti_opencl_program: .incbin \"src/kernels/device/opencl.cl\"\n"
	".byte 0\n"
	".popsection\n");
extern const char smalti_opencl_program[] __attribute__((visibility("hidden")));

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

void smalti_opencl_begin(const struct smalti_opencl *opencl)
{
	if (opencl->takes_turns)
		pthread_mutex_lock(&turn);
}

void smalti_opencl_end(const struct smalti_opencl *opencl)
{
	if (opencl->takes_turns)
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

static cl_kernel find_kernel(const struct smalti_opencl *opencl, const char *name)
{
	for (cl_uint i = 0; i < opencl->kernel_count; i++)
		if (strcmp(opencl->names[i], name) == 0)
			return opencl->kernels[i];
	return NULL;
}

static int launch_kernel(struct smalti_device *device, const struct smalti_launch *launch,
			 const struct smalti_device_memory *const *buffers, int count, const void *arguments,
			 size_t argument_bytes, struct smalti_error *error)
{
	const struct smalti_opencl *opencl = (const struct smalti_opencl *)device;
	const size_t threads = (size_t)launch->threads, items = (size_t)launch->groups * threads;
	cl_kernel kernel = find_kernel(opencl, launch->kernel);
	cl_int status = kernel ? CL_SUCCESS : CL_INVALID_KERNEL_NAME;
	for (int i = 0; i < count && !status; i++) {
		cl_mem memory = buffers[i] ? buffers[i]->memory : NULL;
		status = clSetKernelArg(kernel, (cl_uint)i, sizeof(memory), &memory);
	}
	if (!status)
		status = clSetKernelArg(kernel, (cl_uint)count, argument_bytes, arguments);
	smalti_opencl_begin(opencl);
	if (!status)
		status =
		    clEnqueueNDRangeKernel(opencl->queue, kernel, 1, NULL, &items, &threads, 0, NULL, NULL);
	smalti_opencl_end(opencl);
	if (!status)
		return 0;
	return smalti_fail(error, SMALTI_ENODEV, "kernel '%s' of %lld x %d threads: OpenCL says '%s' (%d)",
			   launch->kernel, (long long)launch->groups, launch->threads,
			   starpu_opencl_error_string(status), status);
}

static int finish(struct smalti_device *device, struct smalti_error *error)
{
	const struct smalti_opencl *opencl = (const struct smalti_opencl *)device;
	smalti_opencl_begin(opencl);
	const cl_int status = clFinish(opencl->queue);
	smalti_opencl_end(opencl);
	if (!status)
		return 0;
	return smalti_fail(error, SMALTI_ENODEV, "the device's queue: OpenCL says '%s' (%d)",
			   starpu_opencl_error_string(status), status);
}

static void *allocate(struct smalti_device *device, int64_t bytes, struct smalti_error *error)
{
	const struct smalti_opencl *opencl = (const struct smalti_opencl *)device;
	cl_int status;
	cl_mem memory = clCreateBuffer(opencl->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &status);
	if (!memory)
		smalti_fail(error, SMALTI_ENOMEM,
			    "%lld bytes of scratch memory on a device: OpenCL says '%s' (%d)",
			    (long long)bytes, starpu_opencl_error_string(status), status);
	return memory;
}

static void release(struct smalti_device *device, void *memory)
{
	(void)device;
	clReleaseMemObject(memory);
}

/* Fails with the beginning of the compiler's log. */
static int fail_build(const struct smalti_opencl *opencl, const char *name, struct smalti_error *error)
{
	size_t bytes = 0;
	char *log = NULL;
	clGetProgramBuildInfo(opencl->program, opencl->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
	if (bytes)
		log = smalti_calloc((int64_t)bytes + 1, 1, NULL);
	if (log)
		clGetProgramBuildInfo(opencl->program, opencl->id, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
	smalti_fail(
	    error, SMALTI_EUNSUPPORTED,
	    "OpenCL device '%s' does not compile Smalti's kernels (update its driver, or leave it out "
	    "by STARPU_WORKERS_OPENCLID): %.300s",
	    name, log ? log : "it does not say why");
	free(log);
	return -1;
}

static int build(struct smalti_opencl *opencl, const char *name, struct smalti_error *error)
{
	const char *text = smalti_opencl_program;
	cl_int status;
	opencl->program = clCreateProgramWithSource(opencl->context, 1, &text, NULL, &status);
	if (!opencl->program || clBuildProgram(opencl->program, 1, &opencl->id, "-cl-std=CL1.2", NULL, NULL))
		return fail_build(opencl, name, error);
	cl_uint count = 0;
	clCreateKernelsInProgram(opencl->program, 0, NULL, &count);
	opencl->kernels = smalti_calloc(count, sizeof(*opencl->kernels), error);
	opencl->names = smalti_calloc(count, sizeof(*opencl->names), error);
	if (!opencl->kernels || !opencl->names)
		return -1;
	if (clCreateKernelsInProgram(opencl->program, count, opencl->kernels, NULL))
		return fail_build(opencl, name, error);
	opencl->kernel_count = count;
	for (cl_uint i = 0; i < count; i++)
		if (clGetKernelInfo(opencl->kernels[i], CL_KERNEL_FUNCTION_NAME, sizeof(opencl->names[i]) - 1,
				    opencl->names[i], NULL))
			return fail_build(opencl, name, error);
	return 0;
}

static void close_device(struct smalti_device *device)
{
	struct smalti_opencl *opencl = (struct smalti_opencl *)device;
	for (cl_uint i = 0; i < opencl->kernel_count; i++)
		clReleaseKernel(opencl->kernels[i]);
	free(opencl->kernels);
	free(opencl->names);
	if (opencl->program)
		clReleaseProgram(opencl->program);
	free(opencl);
}

/* Estimates f32 operations a second: a GPU's compute unit has 64 threads in step, a CPU's 8; each does a
 * multiply-add. */
static double speed_of(cl_device_id id)
{
	cl_uint units = 0, megahertz = 0;
	cl_device_type type = CL_DEVICE_TYPE_GPU;
	clGetDeviceInfo(id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, NULL);
	clGetDeviceInfo(id, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof(megahertz), &megahertz, NULL);
	clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof(type), &type, NULL);
	const int threads = type & CL_DEVICE_TYPE_CPU ? 8 : 64;
	return 1e6 * (megahertz ? megahertz : 1000) * (units ? units : 1) * 2 * threads;
}

static struct smalti_device *open_device(int worker, struct smalti_error *error)
{
	char name[128] = "", extensions[4096] = "";
	struct smalti_opencl *opencl = smalti_calloc(1, sizeof(*opencl), error);
	if (!opencl)
		return NULL;
	const int number = starpu_worker_get_devid(worker);
	starpu_opencl_get_context(number, &opencl->context);
	starpu_opencl_get_device(number, &opencl->id);
	starpu_opencl_get_queue(number, &opencl->queue);
	opencl->takes_turns = is_pocl(opencl->id);
	opencl->device.speed = speed_of(opencl->id);
	clGetDeviceInfo(opencl->id, CL_DEVICE_NAME, sizeof(name) - 1, name, NULL);
	clGetDeviceInfo(opencl->id, CL_DEVICE_EXTENSIONS, sizeof(extensions) - 1, extensions, NULL);
	int status = 0;
	if (!strstr(extensions, "cl_khr_fp64"))
		status = smalti_fail(error, SMALTI_EUNSUPPORTED,
				     "OpenCL device '%s' has no double precision (cl_khr_fp64): leave it out "
				     "by STARPU_WORKERS_OPENCLID",
				     name);
	if (status == 0 && build(opencl, name, error) == 0)
		return &opencl->device;
	close_device(&opencl->device);
	return NULL;
}

const struct smalti_device_driver smalti_opencl = {
    .worker = STARPU_OPENCL_WORKER,
    .operands = 1u << SMALTI_F32,
    .open = open_device,
    .close = close_device,
    .launch = launch_kernel,
    .finish = finish,
    .product = smalti_opencl_product,
    .allocate = allocate,
    .release = release,
};
