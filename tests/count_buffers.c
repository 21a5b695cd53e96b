/* SPDX-License-Identifier: Apache-2.0
 *
 * A library for LD_PRELOAD that counts the bytes of OpenCL's buffers, whoever makes them. At the end the file
 * SMALTI_BUFFERS has a line for each device, in the order of their first buffers: the most bytes at a time.
 * With SMALTI_COPIES, CLBlast copies the matrices of all products, not of large ones alone.
 */
#pragma GCC visibility push(default)

#include <CL/cl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* StarPU has a context for each device. */
enum { MAX_DEVICES = 8 };
static struct device {
	cl_context context;
	size_t bytes, most;
} devices[MAX_DEVICES];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

struct buffer {
	struct device *device;
	size_t bytes;
};

static void copy_always(cl_context context)
{
	enum { SINGLE = 32 };
	int (*override)(cl_device_id, const char *, int, size_t, const char **, const size_t *);
	const char *name = "XGEMM_MIN_INDIRECT_SIZE";
	cl_device_id device = NULL;
	*(void **)&override = dlsym(RTLD_DEFAULT, "CLBlastOverrideParameters");
	clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(device), &device, NULL);
	if (!override || override(device, "GemmRoutine", SINGLE, 1, &name, &(size_t){0}))
		abort();
}

static struct device *device_of(cl_context context)
{
	int i = 0;
	while (devices[i].context && devices[i].context != context)
		if (++i == MAX_DEVICES)
			abort();
	if (!devices[i].context && getenv("SMALTI_COPIES"))
		copy_always(context);
	devices[i].context = context;
	return &devices[i];
}

static void CL_CALLBACK is_freed(cl_mem memory, void *user)
{
	struct buffer *buffer = user;
	(void)memory;
	pthread_mutex_lock(&mutex);
	buffer->device->bytes -= buffer->bytes;
	pthread_mutex_unlock(&mutex);
	free(buffer);
}

static void count(cl_context context, cl_mem memory, size_t bytes)
{
	struct buffer *buffer = malloc(sizeof(*buffer));
	if (!buffer || clSetMemObjectDestructorCallback(memory, is_freed, buffer))
		abort();
	pthread_mutex_lock(&mutex);
	struct device *device = device_of(context);
	*buffer = (struct buffer){device, bytes};
	device->bytes += bytes;
	if (device->bytes > device->most)
		device->most = device->bytes;
	pthread_mutex_unlock(&mutex);
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *memory, cl_int *status)
{
	static cl_mem (*real)(cl_context, cl_mem_flags, size_t, void *, cl_int *);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "clCreateBuffer");
	cl_mem made = real(context, flags, bytes, memory, status);
	if (made)
		count(context, made, bytes);
	return made;
}

__attribute__((destructor)) static void tell_most(void)
{
	const char *path = getenv("SMALTI_BUFFERS");
	FILE *file = path && devices[0].context ? fopen(path, "we") : NULL;
	if (!file)
		return;
	for (int i = 0; i < MAX_DEVICES && devices[i].context; i++)
		fprintf(file, "%zu\n", devices[i].most);
	fclose(file);
}
