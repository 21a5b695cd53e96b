/* SPDX-License-Identifier: Apache-2.0 */
/* Repeats work as a CUDA graph: one launch replaces all of its commands. */
#include "devices/cuda.h"

#if CUDART_VERSION < 13000 /* before 13.0 these functions have other names */
#define cudaStreamGetCaptureInfo            cudaStreamGetCaptureInfo_v3
#define cudaStreamUpdateCaptureDependencies cudaStreamUpdateCaptureDependencies_v2
#endif

enum { KEPT = 128, MAX_ENDS = 8 };

/* What is known of the work with a key. */
struct record {
	uint64_t key;
	int64_t used;          /* the count of uses then; 0: the slot is free */
	bool refused;          /* it cannot be recorded */
	int64_t releases;      /* of the device's memory, when it was recorded */
	cudaGraphExec_t graph; /* NULL: it was not recorded */
};

/* Nodes of the recorded graph: the last ones of an operation, or those that it follows if it has none. */
struct ends {
	cudaGraphNode_t node[MAX_ENDS];
	cudaGraphEdgeData edge[MAX_ENDS];
	size_t count;
};

struct smalti_cuda_records {
	int64_t uses;
	int steps; /* operations recorded so far */
	struct ends end[SMALTI_DEVICE_OPERATIONS];
	struct record record[KEPT];
};

/* Forgets the graph. CUDA frees a running graph when it ends. */
static void forget_graph(struct record *record)
{
	if (record->graph)
		cudaGraphExecDestroy(record->graph);
	record->graph = NULL;
}

/* Returns the key's record; a new one takes the least recently used slot. */
static struct record *find(struct smalti_cuda_records *records, uint64_t key)
{
	struct record *oldest = &records->record[0];
	for (int i = 0; i < KEPT; i++) {
		struct record *record = &records->record[i];
		if (record->used && record->key == key)
			return record;
		if (record->used < oldest->used)
			oldest = record;
	}
	forget_graph(oldest);
	*oldest = (struct record){.key = key};
	return oldest;
}

/* Returns the nodes that the next recorded command would follow. */
static cudaError_t get_ends(cudaStream_t stream, struct ends *ends)
{
	enum cudaStreamCaptureStatus status;
	const cudaGraphNode_t *nodes = NULL;
	const cudaGraphEdgeData *edges = NULL;
	size_t count = 0;
	const cudaError_t result =
	    cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, &nodes, &edges, &count);
	if (result || status != cudaStreamCaptureStatusActive || count > MAX_ENDS)
		return result ? result : cudaErrorUnknown;
	for (size_t i = 0; i < count; i++) {
		ends->node[i] = nodes[i];
		ends->edge[i] = edges ? edges[i] : (cudaGraphEdgeData){0};
	}
	ends->count = count;
	return cudaSuccess;
}

/* Adds the nodes that are missing. Returns false if there is no room. */
static bool add_ends(struct ends *sum, const struct ends *more)
{
	for (size_t i = 0; i < more->count; i++) {
		size_t known = 0;
		while (known < sum->count && sum->node[known] != more->node[i])
			known++;
		if (known == MAX_ENDS)
			return false;
		sum->node[known] = more->node[i];
		sum->edge[known] = more->edge[i];
		sum->count = smalti_max(sum->count, known + 1);
	}
	return true;
}

/* Records what an operation follows. The last one of a lane stands for all before it. Where that is not known
 * the graph lacks something. */
void smalti_cuda_follow(struct smalti_device *device, const int behind[SMALTI_DEVICE_LANES])
{
	struct smalti_cuda_device *cuda = (struct smalti_cuda_device *)device;
	struct smalti_cuda_records *records = cuda->records;
	cudaStream_t stream = smalti_cuda_stream(cuda);
	struct ends ends = {.count = 0};
	if (records->steps > 0 && get_ends(stream, &records->end[records->steps - 1]))
		device->lacks = true;
	for (int lane = 0; lane < SMALTI_DEVICE_LANES; lane++)
		if (behind[lane] >= 0 && !add_ends(&ends, &records->end[behind[lane]]))
			device->lacks = true;
	records->steps++;
	if (cudaStreamUpdateCaptureDependencies(stream, ends.node, ends.edge, ends.count,
						cudaStreamSetCaptureDependencies))
		device->lacks = true;
}

/* Records the commands of the work as a graph; NULL where the stream cannot record them. */
static cudaGraph_t capture(struct smalti_cuda_device *cuda, const struct smalti_device_work *work)
{
	cudaStream_t stream = smalti_cuda_stream(cuda);
	struct smalti_error refused = SMALTI_NO_ERROR;
	cudaGraph_t graph = NULL;
	if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal))
		return NULL;
	cuda->records->steps = 0;
	cuda->device.records = true;
	cuda->device.lacks = false;
	const int status = work->run(work->user, &refused);
	cuda->device.records = false;
	if (cudaStreamEndCapture(stream, &graph) == cudaSuccess && status == 0 && !cuda->device.lacks)
		return graph;
	if (graph)
		cudaGraphDestroy(graph);
	return NULL;
}

static void make_graph(struct smalti_cuda_device *cuda, struct record *record,
		       const struct smalti_device_work *work)
{
	cudaGraph_t graph = capture(cuda, work);
	if (graph && cudaGraphInstantiate(&record->graph, graph, 0))
		record->graph = NULL;
	if (graph)
		cudaGraphDestroy(graph);
	record->releases = cuda->device.releases;
	record->refused = !record->graph;
}

/* Launches the graph. A graph that cannot be launched is never tried again. */
static bool launch(struct smalti_cuda_device *cuda, struct record *record)
{
	if (record->graph && cudaGraphLaunch(record->graph, smalti_cuda_stream(cuda)) == cudaSuccess)
		return true;
	cudaGetLastError();
	forget_graph(record);
	record->refused = true;
	return false;
}

/* Runs the work itself the first time: it allocates memory then, and chooses algorithms. A graph holds
 * addresses, so it is void once memory was released. After a failure the work runs itself again, so that the
 * error names the command. */
int smalti_cuda_repeat(struct smalti_device *device, uint64_t key, const struct smalti_device_work *work,
		       struct smalti_error *error)
{
	struct smalti_cuda_device *cuda = (struct smalti_cuda_device *)device;
	if (!cuda->records && !(cuda->records = smalti_calloc(1, sizeof(*cuda->records), error)))
		return -1;
	struct record *record = find(cuda->records, key);
	const bool known = record->used > 0;
	record->used = ++cuda->records->uses;
	if (record->graph && record->releases != device->releases)
		forget_graph(record);
	else if (known && !record->graph && !record->refused)
		make_graph(cuda, record, work);
	if (record->graph && launch(cuda, record)) {
		device->repeats++;
		return 0;
	}
	return work->run(work->user, error);
}

void smalti_cuda_repeat_close(struct smalti_cuda_device *cuda)
{
	for (int i = 0; cuda->records && i < KEPT; i++)
		forget_graph(&cuda->records->record[i]);
	free(cuda->records);
}
