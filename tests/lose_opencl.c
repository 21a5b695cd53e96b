/* SPDX-License-Identifier: Apache-2.0
 *
 * A library for LD_PRELOAD that loses an OpenCL device: SMALTI_LOSE is CALL:N, and the Nth call of that kind
 * fails, with CL_DEVICE_NOT_AVAILABLE, as does every later call on its device. */
#pragma GCC visibility push(default)

#include <CL/cl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The function behind this one. */
#define REAL(function) ((__typeof__(&function))next(#function))

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* Whether this call fails. */
static bool is_lost(const char *call, cl_device_id device)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static cl_device_id lost;
	static long seen;
	const char *wanted = getenv("SMALTI_LOSE"), *number = wanted ? strchr(wanted, ':') : NULL;
	if (!number)
		return false;
	pthread_mutex_lock(&mutex);
	const size_t length = (size_t)(number - wanted);
	if (!lost &&
	    (strncmp(wanted, "any", length) == 0 ||
	     (strlen(call) == length && strncmp(wanted, call, length) == 0)) &&
	    ++seen == atol(number + 1))
		lost = device;
	const bool fails = lost == device;
	pthread_mutex_unlock(&mutex);
	return fails;
}

static cl_device_id device_of(cl_command_queue queue)
{
	cl_device_id device = NULL;
	clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device), &device, NULL);
	return device;
}

static cl_device_id device_of_event(cl_event event)
{
	cl_command_queue queue = NULL;
	REAL(clGetEventInfo)(event, CL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue, NULL);
	return device_of(queue);
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *memory, cl_int *status)
{
	cl_device_id device = NULL;
	clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(device), &device, NULL);
	if (!is_lost("buffer", device))
		return REAL(clCreateBuffer)(context, flags, bytes, memory, status);
	if (status)
		*status = CL_DEVICE_NOT_AVAILABLE;
	return NULL;
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem to, cl_bool waits, size_t first, size_t bytes,
			    const void *from, cl_uint count, const cl_event *events, cl_event *event)
{
	if (is_lost("write", device_of(queue)))
		return CL_DEVICE_NOT_AVAILABLE;
	return REAL(clEnqueueWriteBuffer)(queue, to, waits, first, bytes, from, count, events, event);
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem from, cl_bool waits, size_t first, size_t bytes,
			   void *to, cl_uint count, const cl_event *events, cl_event *event)
{
	if (is_lost("read", device_of(queue)))
		return CL_DEVICE_NOT_AVAILABLE;
	return REAL(clEnqueueReadBuffer)(queue, from, waits, first, bytes, to, count, events, event);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
			      const size_t *offset, const size_t *items, const size_t *threads, cl_uint count,
			      const cl_event *events, cl_event *event)
{
	if (is_lost("launch", device_of(queue)))
		return CL_DEVICE_NOT_AVAILABLE;
	return REAL(clEnqueueNDRangeKernel)(queue, kernel, dimensions, offset, items, threads, count, events,
					    event);
}

cl_int clEnqueueMarker(cl_command_queue queue, cl_event *event)
{
	return is_lost("marker", device_of(queue)) ? CL_DEVICE_NOT_AVAILABLE
						   : REAL(clEnqueueMarker)(queue, event);
}

cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t bytes, void *value, size_t *length)
{
	const cl_int status = REAL(clGetEventInfo)(event, what, bytes, value, length);
	if (what == CL_EVENT_COMMAND_EXECUTION_STATUS && !status && is_lost("query", device_of_event(event)))
		*(cl_int *)value = CL_DEVICE_NOT_AVAILABLE;
	return status;
}

cl_int clWaitForEvents(cl_uint count, const cl_event *events)
{
	return is_lost("wait", device_of_event(events[0])) ? CL_DEVICE_NOT_AVAILABLE
							   : REAL(clWaitForEvents)(count, events);
}

cl_int clFinish(cl_command_queue queue)
{
	return is_lost("finish", device_of(queue)) ? CL_DEVICE_NOT_AVAILABLE : REAL(clFinish)(queue);
}
