/* SPDX-License-Identifier: Apache-2.0 */
/* Work that comes again as a CUDA graph: one launch in the place of each of its commands. */
#include "rt/cuda.h"

enum { KEPT = 128 };

/* Keeps what is known of the work with a key. */
struct record {
	uint64_t key;
	int64_t used;          /* by the count of all uses; 0: the place is free */
	bool refused;          /* it cannot be recorded */
	int64_t releases;      /* of the device's memory, when it was recorded */
	cudaGraphExec_t graph; /* NULL: it was not recorded */
};

struct smalti_cuda_records {
	int64_t uses;
	struct record record[KEPT];
};

/* CUDA frees a graph that still runs when it has ended. */
static void forget_graph(struct record *record)
{
	if (record->graph)
		cudaGraphExecDestroy(record->graph);
	record->graph = NULL;
}

/* Returns the key's record; a new one takes the place that was not used for longest. */
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

/* Returns the commands of the work as a graph; NULL where the stream cannot record them. */
static cudaGraph_t capture(struct smalti_cuda_device *cuda, const struct smalti_device_work *work)
{
	cudaStream_t stream = smalti_cuda_stream(cuda);
	struct smalti_error refused = SMALTI_NO_ERROR;
	cudaGraph_t graph = NULL;
	if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal))
		return NULL;
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

/* Launches the graph; what cannot be launched is never tried again. */
static bool launch(struct smalti_cuda_device *cuda, struct record *record)
{
	if (record->graph && cudaGraphLaunch(record->graph, smalti_cuda_stream(cuda)) == cudaSuccess)
		return true;
	cudaGetLastError();
	forget_graph(record);
	record->refused = true;
	return false;
}

/* The first time the work gives its commands itself: it takes memory then, and chooses algorithms. A graph
 * holds addresses, so it is void when memory was released. Where anything fails the work gives its commands
 * itself again, so that the error names the command. */
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
