/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's runtime library, as far as StarPU and Smalti call it, without a GPU: kernels are their twins. */
#include "cuda/memory.h"
#include "cuda/streams.h"
#include "cuda/tensor_map.h"
#include "cuda/twins.h"

#include <cstring>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <map>
#include <utility>

#define TURN const std::lock_guard<std::recursive_mutex> turn(standin_turn)

/* Fails if the device is lost, as by a kernel's bad address: all calls fail from then on. */
#define RETURN_IF_LOST(what, device)                                                                         \
	do {                                                                                                 \
		if (standin_lost(what, device))                                                              \
			return result(cudaErrorIllegalAddress);                                              \
	} while (0)

namespace
{
thread_local int current;
thread_local cudaError_t last_error;

cudaError_t result(cudaError_t error)
{
	if (error != cudaSuccess && error != cudaErrorNotReady)
		last_error = error;
	return error;
}

/* Returns the device of the first address on one, else the current device. */
int device_of(const void *one, const void *other)
{
	const int device = standin_device_of(one) < 0 ? standin_device_of(other) : standin_device_of(one);
	return device < 0 ? current : device;
}

/* Returns NULL for the device's default stream. */
standin_stream *stream_of(cudaStream_t stream)
{
	return stream == cudaStreamLegacy ? nullptr : reinterpret_cast<standin_stream *>(stream);
}

standin_event_pointer &event_of(cudaEvent_t event)
{
	return *reinterpret_cast<standin_event_pointer *>(event);
}

/* Adds work to a stream; the default stream does it at once, after that of the streams that it waits for. */
template <typename step> cudaError_t enqueue(cudaStream_t stream, step work)
{
	if (stream_of(stream)) {
		standin_add_step(stream_of(stream), work);
	} else {
		standin_run_device(current, false);
		work();
	}
	return cudaSuccess;
}

/* Fails for calls that wait or take memory, and spoils the calling thread's recording. */
#define RETURN_IF_RECORDING                                                                                  \
	do {                                                                                                 \
		if (standin_recording()) {                                                                   \
			standin_recording()->spoiled = true;                                                 \
			return result(cudaErrorStreamCaptureUnsupported);                                    \
		}                                                                                            \
	} while (0)

enum side { HOST, DEVICE_SIDE, EITHER };

char *at(const void *address, size_t bytes, side wanted)
{
	const int device = standin_device_of(address);
	if ((wanted == HOST && device >= 0) || (wanted == DEVICE_SIDE && device < 0))
		standin_refuse("a copy has an address of the %s, %p, where it says otherwise",
			       device >= 0 ? "device" : "host", address);
	return device >= 0 ? standin_at(address, device, bytes, "a copy")
			   : static_cast<char *>(const_cast<void *>(address));
}

cudaError_t copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
	static const side sides[][2] = {{HOST, HOST},
					{DEVICE_SIDE, HOST},
					{HOST, DEVICE_SIDE},
					{DEVICE_SIDE, DEVICE_SIDE},
					{EITHER, EITHER}};
	const auto work = [=] {
		memcpy(at(to, bytes, sides[kind][0]), at(from, bytes, sides[kind][1]), bytes);
	};
	RETURN_IF_LOST("copy", device_of(to, from));
	at(to, bytes, sides[kind][0]);
	at(from, bytes, sides[kind][1]);
	return enqueue(stream, work);
}

cudaError_t copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
		      size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
	RETURN_IF_LOST("copy", device_of(to, from));
	for (size_t row = 0; row < height; row++)
		copy(static_cast<char *>(to) + row * to_pitch,
		     static_cast<const char *>(from) + row * from_pitch, width, kind, stream);
	return cudaSuccess;
}

cudaError_t copy_between(void *to, int to_device, const void *from, int from_device, size_t bytes,
			 cudaStream_t stream)
{
	const auto work = [=] {
		memcpy(standin_at(to, to_device, bytes, "a copy between devices"),
		       standin_at(from, from_device, bytes, "a copy between devices"), bytes);
	};
	RETURN_IF_LOST("copy", from_device);
	RETURN_IF_LOST("copy", to_device);
	return enqueue(stream, work);
}

std::map<const char *, size_t> &registered()
{
	static std::map<const char *, size_t> ranges;
	return ranges;
}
} // namespace

cudaError_t cudaGetDeviceCount(int *count)
{
	*count = standin_device_count();
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	if (device < 0 || device >= standin_device_count())
		return result(cudaErrorInvalidDevice);
	current = device;
	return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
	*device = current;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device)
{
	*properties = {};
	strcpy(properties->name, "stand-in");
	properties->totalGlobalMem = standin_memory_total();
	properties->major = 9;
	properties->multiProcessorCount = 1;
	properties->pciBusID = device + 1;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device)
{
	snprintf(text, size, "0000:%02x:00.0", device + 1);
	return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
	const char *const units = getenv("SMALTI_STANDIN_UNITS"), *const major =
								      getenv("SMALTI_STANDIN_MAJOR");
	*value = attribute == cudaDevAttrComputeCapabilityMajor ? atoi(major ? major : "9") : 0;
	if (attribute == cudaDevAttrMultiProcessorCount && units)
		*value = atoi(units);
	return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	*can = device != peer;
	return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned)
{
	return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize()
{
	TURN;
	RETURN_IF_LOST("wait", current);
	standin_run_device(current, true);
	return cudaSuccess;
}

cudaError_t cudaDeviceReset()
{
	return cudaDeviceSynchronize();
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	*version = CUDART_VERSION;
	return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
	return cudaRuntimeGetVersion(version);
}

cudaError_t cudaGetLastError()
{
	return std::exchange(last_error, cudaSuccess);
}

const char *cudaGetErrorString(cudaError_t error)
{
	switch (error) {
	case cudaSuccess:
		return "no error";
	case cudaErrorMemoryAllocation:
		return "out of memory";
	case cudaErrorDevicesUnavailable:
		return "CUDA-capable device(s) is/are busy or unavailable";
	case cudaErrorIllegalAddress:
		return "an illegal memory access was encountered";
	case cudaErrorLaunchOutOfResources:
		return "too many resources requested for launch";
	default:
		return "another error of the stand-in";
	}
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
	TURN;
	*memory = nullptr;
	RETURN_IF_RECORDING;
	RETURN_IF_LOST("malloc", current);
	*memory = standin_fails("malloc") ? nullptr : standin_allocate(current, bytes);
	return *memory ? cudaSuccess : result(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *memory)
{
	TURN;
	RETURN_IF_LOST("free", device_of(memory, nullptr));
	if (!memory) /* as StarPU opens a device */
		return standin_fails("busy") ? result(cudaErrorDevicesUnavailable) : cudaSuccess;
	standin_run_device(standin_device_of(memory), true);
	standin_release(memory);
	return cudaSuccess;
}

cudaError_t cudaMallocAsync(void **memory, size_t bytes, cudaStream_t)
{
	return cudaMalloc(memory, bytes);
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream)
{
	TURN;
	if (standin_recording())
		standin_refuse("%p is released while commands are recorded", memory);
	RETURN_IF_LOST("free", device_of(memory, nullptr));
	return enqueue(stream, [=] { standin_release(memory); });
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
	TURN;
	RETURN_IF_LOST("malloc", current);
	*available = standin_memory_free(current);
	*total = standin_memory_total();
	return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned)
{
	*memory = malloc(bytes);
	if (!*memory)
		return result(cudaErrorMemoryAllocation);
	memset(*memory, 0xff, bytes);
	return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
	free(memory);
	return cudaSuccess;
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned)
{
	TURN;
	const char *const begin = static_cast<char *>(memory);
	const auto next = registered().lower_bound(begin + bytes);
	if (next != registered().begin()) {
		const auto before = std::prev(next);
		if (before->first + before->second > begin)
			return result(cudaErrorHostMemoryAlreadyRegistered);
	}
	registered()[begin] = bytes;
	return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory)
{
	TURN;
	return registered().erase(static_cast<char *>(memory)) ? cudaSuccess
							       : result(cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaHostGetDevicePointer(void **, void *, unsigned)
{
	return result(cudaErrorNotSupported);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *address)
{
	*attributes = {};
	attributes->device = standin_device_of(address);
	attributes->type = attributes->device < 0 ? cudaMemoryTypeUnregistered : cudaMemoryTypeDevice;
	return cudaSuccess;
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
	TURN;
	return enqueue(nullptr, [=] { memset(at(memory, bytes, DEVICE_SIDE), value, bytes); });
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
	TURN;
	return enqueue(stream, [=] { memset(at(memory, bytes, DEVICE_SIDE), value, bytes); });
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
	TURN;
	return copy(to, from, bytes, kind, nullptr);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
			    cudaStream_t stream)
{
	TURN;
	return copy(to, from, bytes, kind, stream);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
			 size_t height, cudaMemcpyKind kind)
{
	TURN;
	return copy_rows(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
			      size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
	TURN;
	return copy_rows(to, to_pitch, from, from_pitch, width, height, kind, stream);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
	TURN;
	return copy_between(to, to_device, from, from_device, bytes, nullptr);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
				cudaStream_t stream)
{
	TURN;
	return copy_between(to, to_device, from, from_device, bytes, stream);
}

/* StarPU calls it, for data that Smalti does not have. */
cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms *)
{
	return result(cudaErrorNotSupported);
}

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms *, cudaStream_t)
{
	return result(cudaErrorNotSupported);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	TURN;
	*stream = reinterpret_cast<cudaStream_t>(standin_new_stream(current, flags != cudaStreamNonBlocking));
	return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	TURN;
	standin_free_stream(stream_of(stream));
	return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	TURN;
	RETURN_IF_LOST("query", stream_of(stream) ? stream_of(stream)->device : current);
	if (!stream_of(stream))
		return cudaSuccess;
	standin_run_step(stream_of(stream));
	return stream_of(stream)->steps.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	TURN;
	RETURN_IF_RECORDING;
	RETURN_IF_LOST("wait", stream_of(stream) ? stream_of(stream)->device : current);
	if (stream_of(stream))
		standin_run_all(stream_of(stream));
	else
		standin_run_device(current, false);
	return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
	TURN;
	standin_wait(stream_of(stream), event_of(event));
	return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
	*event = reinterpret_cast<cudaEvent_t>(new standin_event_pointer(new standin_event{}));
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	TURN;
	delete &event_of(event);
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	TURN;
	RETURN_IF_RECORDING;
	RETURN_IF_LOST("record", stream_of(stream) ? stream_of(stream)->device : current);
	if (stream_of(stream))
		standin_record(event_of(event), stream_of(stream));
	else
		standin_run_device(current, false);
	return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	TURN;
	RETURN_IF_LOST("query", event_of(event)->stream ? event_of(event)->stream->device : current);
	if (!standin_is_done(event_of(event)))
		standin_run_step(event_of(event)->stream);
	return standin_is_done(event_of(event)) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	while (cudaEventQuery(event) == cudaErrorNotReady)
		;
	return cudaSuccess;
}

/* Checks that this is a binary of kernels, as the build makes it; it does not run here. */
cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, cudaJitOption *, void **, unsigned,
				cudaLibraryOption *, void **, unsigned)
{
	const unsigned fatbin = 0xba55ed50;
	if (memcmp(code, &fatbin, sizeof(fatbin)) != 0)
		return result(cudaErrorInvalidKernelImage);
	*library = reinterpret_cast<cudaLibrary_t>(const_cast<void *>(code));
	return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t)
{
	return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t, const char *name)
{
	const standin_twin *twin = standin_find_twin(name);
	*kernel = reinterpret_cast<cudaKernel_t>(const_cast<standin_twin *>(twin));
	return twin ? cudaSuccess : result(cudaErrorSymbolNotFound);
}

namespace
{
/* Returns the bytes of local memory that launches of each kernel may ask for, where they were set. */
std::map<const void *, size_t> &local_bytes()
{
	static std::map<const void *, size_t> most;
	return most;
}

/* A launch with its own copy of the parameters. */
struct launch {
	const standin_twin *twin;
	int device;
	unsigned groups, threads;
	size_t shared;
	std::vector<std::vector<char>> parameters;

	void run()
	{
		std::vector<void *> addresses;
		for (size_t i = 0; i < parameters.size(); i++) {
			if (twin->parameters[i].is_pointer)
				strip(reinterpret_cast<void **>(parameters[i].data()));
			if (twin->parameters[i].is_map)
				strip(reinterpret_cast<standin_tensor_map *>(parameters[i].data()));
			addresses.push_back(parameters[i].data());
		}
		standin_run_twin(twin, groups, threads, addresses.data(), shared);
	}

	void strip(standin_tensor_map *map) const
	{
		map->base = standin_at(map->base, device, map->bytes(), twin->name);
	}

	void strip(void **address) const
	{
		if (*address)
			*address = standin_at(*address, device, 1, twin->name);
	}
};
} // namespace

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int)
{
	TURN;
	if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
	    value > STANDIN_MOST_SHARED)
		return result(cudaErrorInvalidValue);
	local_bytes()[kernel] = static_cast<size_t>(value);
	return cudaSuccess;
}

namespace
{
/* Tells whether a GPU of compute capability 9.0 takes the map, of three dimensions of two-byte elements. */
bool is_map(const void *base, const cuuint64_t *extents, const cuuint64_t *strides, const cuuint32_t *box,
	    const cuuint32_t *steps, CUtensorMapSwizzle swizzle)
{
	static const cuuint32_t most[] = {0, 32, 64, 128};
	bool good = reinterpret_cast<uintptr_t>(base) % 16 == 0 && swizzle >= CU_TENSOR_MAP_SWIZZLE_32B &&
		    swizzle <= CU_TENSOR_MAP_SWIZZLE_128B && 2 * box[0] == most[swizzle];
	for (int i = 0; i < 3; i++)
		good = good && extents[i] > 0 && extents[i] <= UINT64_C(1) << 32 && box[i] > 0 &&
		       box[i] <= 256 && steps[i] == 1;
	for (int i = 0; i < 2; i++)
		good = good && strides[i] % 16 == 0 && strides[i] < UINT64_C(1) << 40;
	return good;
}

CUresult encode_tiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *base,
		      const cuuint64_t *extents, const cuuint64_t *strides, const cuuint32_t *box,
		      const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
		      CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill)
{
	static const int mixtures[] = {0, 3, 2, 1};
	if (rank != 3 || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
	    fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ||
	    (type != CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type != CU_TENSOR_MAP_DATA_TYPE_BFLOAT16) ||
	    reinterpret_cast<uintptr_t>(map) % 64 != 0 ||
	    !is_map(base, extents, strides, box, steps, swizzle))
		return CUDA_ERROR_INVALID_VALUE;
	standin_tensor_map made = {};
	made.base = static_cast<const char *>(base);
	for (int i = 0; i < 3; i++) {
		made.extents[i] = static_cast<int64_t>(extents[i]);
		made.box[i] = static_cast<int>(box[i]);
		if (i < 2)
			made.strides[i] = static_cast<int64_t>(strides[i]);
	}
	made.mixture = mixtures[swizzle];
	memcpy(map, &made, sizeof(made));
	return CUDA_SUCCESS;
}
} // namespace

/* Finds the one function of the driver that Smalti asks for. */
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned,
					     unsigned long long, cudaDriverEntryPointQueryResult *found)
{
	const bool known = strcmp(symbol, "cuTensorMapEncodeTiled") == 0;
	*function = known ? reinterpret_cast<void *>(encode_tiled) : nullptr;
	*found = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
	return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **parameters, size_t shared,
			     cudaStream_t stream)
{
	TURN;
	const auto *twin = static_cast<const standin_twin *>(function);
	launch launch = {twin, current, grid.x, block.x, shared, {}};
	const auto most = local_bytes().find(function);
	if (grid.x == 0 || block.x == 0 || grid.y * grid.z * block.y * block.z != 1 ||
	    shared > (most == local_bytes().end() ? 48 << 10 : most->second))
		return result(cudaErrorInvalidConfiguration);
	RETURN_IF_LOST("launch", stream_of(stream) ? stream_of(stream)->device : current);
	if (block.x > 1024 || standin_fails("launch"))
		return result(cudaErrorLaunchOutOfResources);
	if (stream_of(stream) && stream_of(stream)->device != current)
		return result(cudaErrorInvalidResourceHandle);
	for (size_t i = 0; i < twin->parameters.size(); i++) {
		const char *value = static_cast<char *>(parameters[i]);
		launch.parameters.emplace_back(value, value + twin->parameters[i].bytes);
	}
	return enqueue(stream, [launch]() mutable { launch.run(); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
	TURN;
	RETURN_IF_LOST("launch", stream_of(stream)->device);
	if (!stream_of(stream) || standin_recording() || mode != cudaStreamCaptureModeThreadLocal)
		standin_refuse("a stream cannot be recorded");
	if (standin_fails("record"))
		return result(cudaErrorUnknown);
	standin_recording() = stream_of(stream);
	stream_of(stream)->records = new standin_graph{};
	stream_of(stream)->spoiled = false;
	return cudaSuccess;
}

/* Returns the last nodes; a node is its step's number, from 1. */
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status,
				     unsigned long long *, cudaGraph_t *, const cudaGraphNode_t **nodes,
				     const cudaGraphEdgeData **edges, size_t *count)
{
	TURN;
	static thread_local std::vector<cudaGraphNode_t> found;
	if (standin_recording() != stream_of(stream))
		standin_refuse("a stream that is not recorded");
	found.clear();
	for (const size_t step : stream_of(stream)->records->behind)
		found.push_back(reinterpret_cast<cudaGraphNode_t>(step + 1));
	*status = cudaStreamCaptureStatusActive;
	*nodes = found.data();
	*edges = nullptr;
	*count = found.size();
	return standin_fails("ends") ? result(cudaErrorUnknown) : cudaSuccess;
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes,
						const cudaGraphEdgeData *, size_t count, unsigned flags)
{
	TURN;
	if (standin_recording() != stream_of(stream) || flags != cudaStreamSetCaptureDependencies)
		standin_refuse("a stream that is not recorded");
	standin_graph &graph = *stream_of(stream)->records;
	graph.behind.clear();
	for (size_t i = 0; i < count; i++) {
		const size_t node = reinterpret_cast<size_t>(nodes[i]);
		if (node == 0 || node > graph.steps.size())
			standin_refuse("a node that is not recorded");
		graph.behind.push_back(node - 1);
	}
	return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	TURN;
	if (standin_recording() != stream_of(stream))
		standin_refuse("a stream that is not recorded");
	standin_recording() = nullptr;
	*graph = reinterpret_cast<cudaGraph_t>(std::exchange(stream_of(stream)->records, nullptr));
	if (!stream_of(stream)->spoiled)
		return cudaSuccess;
	cudaGraphDestroy(std::exchange(*graph, nullptr));
	return result(cudaErrorStreamCaptureInvalidated);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	delete reinterpret_cast<standin_graph *>(graph);
	return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long)
{
	TURN;
	if (standin_fails("instantiate"))
		return result(cudaErrorMemoryAllocation);
	*made =
	    reinterpret_cast<cudaGraphExec_t>(new standin_graph(*reinterpret_cast<standin_graph *>(graph)));
	return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
	TURN;
	RETURN_IF_LOST("launch", stream_of(stream)->device);
	if (standin_fails("replay"))
		return result(cudaErrorLaunchOutOfResources);
	standin_add_graph(stream_of(stream), *reinterpret_cast<standin_graph *>(graph));
	return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
	delete reinterpret_cast<standin_graph *>(graph);
	return cudaSuccess;
}
