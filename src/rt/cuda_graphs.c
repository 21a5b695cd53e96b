/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and attention, by cuDNN: the plan that it makes for a shape is kept for the next like it. */
#include "rt/cuda.h"

#include "base/dtype.h"
#include "rt/cudnn_graph.h"

#include <cudnn.h>
#include <xxhash.h>

enum {
	KEPT = 256,   /* shapes, a place for each hash */
	PROPOSED = 8, /* configurations of engines that are tried for a shape */
	MOST_TENSORS = 6,
};

/* Of a convolution, or with queries. */
struct shape {
	int64_t rows, width, in, out, stride, adds;
	int64_t queries, keys, heads, head_dim, biased;
	int64_t dtype;
};

struct smalti_cuda_graph {
	struct shape shape;
	bool tried;
	struct smalti_cudnn_graph graph;
	cudnnBackendDescriptor_t configuration, plan; /* NULL: cuDNN has none for the shape */
};

struct smalti_cuda_graphs {
	cudnnHandle_t cudnn;
	struct smalti_cuda_graph kept[KEPT];
};

static cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type)
{
	cudnnBackendDescriptor_t made = NULL;
	return cudnnBackendCreateDescriptor(type, &made) ? NULL : made;
}

static void drop(cudnnBackendDescriptor_t descriptor)
{
	if (descriptor)
		cudnnBackendDestroyDescriptor(descriptor);
}

static bool set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
		cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
	return descriptor && !cudnnBackendSetAttribute(descriptor, name, type, count, values);
}

static bool finish(cudnnBackendDescriptor_t descriptor)
{
	return !cudnnBackendFinalize(descriptor);
}

/* Whether its engine gives the same bits again and, if that is asked for, multiplies f32 as they are. */
static bool suits(cudnnBackendDescriptor_t configuration, bool exact)
{
	cudnnBackendDescriptor_t engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
	cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
	int64_t count = 0;
	bool suited =
	    engine &&
	    !cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE,
				      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine) &&
	    !cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
				      CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes);
	for (int64_t i = 0; suited && i < count; i++)
		suited = notes[i] != CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC &&
			 (!exact || (notes[i] != CUDNN_NUMERICAL_NOTE_TENSOR_CORE &&
				     notes[i] != CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
	drop(engine);
	return suited;
}

/* A graph's tensors: their numbers and where they are. */
struct tensors {
	int64_t numbers[MOST_TENSORS];
	const void *at[MOST_TENSORS];
	int count;
};

static cudnnStatus_t run(struct smalti_cuda_device *cuda, cudnnBackendDescriptor_t plan,
			 const struct tensors *tensors, void *workspace)
{
	cudnnBackendDescriptor_t pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
	cudnnStatus_t status = CUDNN_STATUS_INTERNAL_ERROR;
	if (set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, tensors->count,
		tensors->numbers) &&
	    set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, tensors->count,
		tensors->at) &&
	    set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace) && finish(pack))
		status = cudnnSetStream(cuda->graphs->cudnn, smalti_cuda_stream(cuda));
	if (!status)
		status = cudnnBackendExecute(cuda->graphs->cudnn, plan, pack);
	drop(pack);
	return status;
}

/* The tensors of a shape, one behind the other in memory that there is not yet; returns its bytes. */
static int64_t lay_out(const struct shape *s, struct tensors *tensors)
{
	enum { ALIGNED = 256 };
	const int64_t element = smalti_dtype_bytes((enum smalti_dtype)s->dtype);
	const int64_t row = s->heads * s->head_dim * element, pixels = s->rows * s->width;
	const struct {
		enum smalti_cudnn_tensor number;
		int64_t bytes;
	} attention[] = {{SMALTI_CUDNN_Q, s->queries * row},
			 {SMALTI_CUDNN_K, 2 * s->keys * row},
			 {SMALTI_CUDNN_V, 2 * s->keys * row},
			 {SMALTI_CUDNN_Y, s->queries * row},
			 {SMALTI_CUDNN_SCALE, ALIGNED},
			 {SMALTI_CUDNN_BIAS, s->heads * s->queries * s->keys * element}},
	  convolution[] = {{SMALTI_CUDNN_X, (pixels + 2 * s->width) * s->in * element},
			   {SMALTI_CUDNN_WEIGHT, s->out * 9 * s->in * element},
			   {SMALTI_CUDNN_BIAS, s->out * (int64_t)sizeof(float)},
			   {SMALTI_CUDNN_Y, pixels * s->out * (int64_t)sizeof(float)},
			   {SMALTI_CUDNN_RESIDUAL, pixels * s->out * (int64_t)sizeof(float)}};
	int64_t bytes = 0;
	tensors->count = s->queries ? 5 + (s->biased != 0) : 4 + (s->adds != 0);
	for (int i = 0; i < tensors->count; i++) {
		const int64_t size = s->queries ? attention[i].bytes : convolution[i].bytes;
		tensors->numbers[i] = s->queries ? attention[i].number : convolution[i].number;
		tensors->at[i] = (const void *)(uintptr_t)bytes;
		bytes += (size + ALIGNED - 1) / ALIGNED * ALIGNED;
	}
	return bytes;
}

/* Whether the plan is executed here: of some cuDNN finds that out no earlier. On whatever is in memory. */
static bool runs(struct smalti_cuda_device *cuda, const struct shape *shape, cudnnBackendDescriptor_t plan)
{
	const float scale = 1;
	struct smalti_error refused = SMALTI_NO_ERROR;
	struct smalti_device_memory memory = {NULL, 0};
	struct tensors tensors;
	void *workspace = smalti_cuda_workspace(cuda, &refused);
	if (!workspace ||
	    smalti_device_allocate(&cuda->device, &memory, lay_out(shape, &tensors), &refused) < 0)
		return false;
	for (int i = 0; i < tensors.count; i++)
		tensors.at[i] = tensors.numbers[i] == SMALTI_CUDNN_SCALE
				    ? (const void *)&scale
				    : (const char *)memory.memory + (uintptr_t)tensors.at[i];
	const bool ran = !run(cuda, plan, &tensors, workspace);
	smalti_device_release(&cuda->device, &memory);
	return ran;
}

/* NULL: the engine does not run this here, or not in the workspace. */
static cudnnBackendDescriptor_t plan_of(struct smalti_cuda_device *cuda, const struct shape *shape,
					cudnnBackendDescriptor_t configuration)
{
	cudnnBackendDescriptor_t plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	int64_t count = 0, bytes = 0;
	if (set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
		&configuration) &&
	    finish(plan) &&
	    !cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
				      &count, &bytes) &&
	    bytes <= smalti_cuda_workspace_bytes(cuda) && runs(cuda, shape, plan))
		return plan;
	drop(plan);
	return NULL;
}

/* Takes the first configuration that suits, as cuDNN's heuristic orders them. */
static void choose(struct smalti_cuda_device *cuda, struct smalti_cuda_graph *g, bool exact)
{
	const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
	cudnnBackendDescriptor_t heuristic = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	cudnnBackendDescriptor_t proposed[PROPOSED];
	int64_t count = 0;
	for (int i = 0; i < PROPOSED; i++)
		proposed[i] = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	const bool asked =
	    set(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
		&g->graph.whole) &&
	    set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode) && finish(heuristic) &&
	    !cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
				      PROPOSED, &count, proposed);
	for (int i = 0; i < PROPOSED; i++) {
		if (asked && i < count && !g->plan && suits(proposed[i], exact))
			g->plan = plan_of(cuda, &g->shape, proposed[i]);
		if (g->plan && !g->configuration)
			g->configuration = proposed[i];
		else
			drop(proposed[i]);
	}
	drop(heuristic);
}

static void forget(struct smalti_cuda_graph *g)
{
	drop(g->plan);
	drop(g->configuration);
	smalti_cudnn_graph_free(&g->graph);
	*g = (struct smalti_cuda_graph){.tried = false};
}

/* What cuDNN refuses other kernels compute. */
static void ask(struct smalti_cuda_device *cuda, struct smalti_cuda_graph *g, const struct shape *s)
{
	const enum smalti_dtype dtype = (enum smalti_dtype)s->dtype;
	const struct smalti_device_sdpa sdpa = {s->queries,  s->keys, s->heads,
						s->head_dim, dtype,   s->biased != 0};
	const struct smalti_device_convolution convolution = {s->rows,   s->width, s->in,       s->out,
							      s->stride, dtype,    s->adds != 0};
	struct smalti_error refused = SMALTI_NO_ERROR;
	g->shape = *s;
	g->tried = true;
	if ((s->queries ? smalti_cudnn_sdpa_graph(&sdpa, &g->graph, &refused)
			: smalti_cudnn_convolution_graph(&convolution, &g->graph, &refused)) == 0)
		choose(cuda, g, dtype == SMALTI_F32 && !cuda->device.tf32);
}

/* NULL: there is none. */
static cudnnBackendDescriptor_t find(struct smalti_cuda_device *cuda, const struct shape *shape)
{
	if (!cuda->graphs || !cuda->graphs->cudnn)
		return NULL;
	struct smalti_cuda_graph *place = &cuda->graphs->kept[XXH32(shape, sizeof(*shape), 0) % KEPT];
	if (!place->tried || memcmp(&place->shape, shape, sizeof(*shape)) != 0) {
		forget(place);
		ask(cuda, place, shape);
	}
	return place->plan;
}

static struct shape shape_of_convolution(const struct smalti_device_convolution *c)
{
	return (struct shape){.rows = c->rows,
			      .width = c->width,
			      .in = c->in,
			      .out = c->out,
			      .stride = c->stride,
			      .adds = c->adds,
			      .dtype = c->dtype};
}

static struct shape shape_of_sdpa(const struct smalti_device_sdpa *a)
{
	return (struct shape){.queries = a->queries,
			      .keys = a->keys,
			      .heads = a->heads,
			      .head_dim = a->head_dim,
			      .biased = a->biased,
			      .dtype = a->dtype};
}

bool smalti_cuda_has_convolution(struct smalti_device *device, const struct smalti_device_convolution *c)
{
	const struct shape shape = shape_of_convolution(c);
	return find((struct smalti_cuda_device *)device, &shape);
}

bool smalti_cuda_has_sdpa(struct smalti_device *device, const struct smalti_device_sdpa *sdpa)
{
	const struct shape shape = shape_of_sdpa(sdpa);
	return sdpa->dtype != SMALTI_F32 && sdpa->head_dim % 8 == 0 && sdpa->head_dim <= 256 &&
	       find((struct smalti_cuda_device *)device, &shape);
}

static int execute(struct smalti_cuda_device *cuda, const struct shape *shape, const struct tensors *tensors,
		   const char *what, struct smalti_error *error)
{
	char said[256] = "";
	void *workspace = smalti_cuda_workspace(cuda, error);
	if (!workspace)
		return -1;
	const cudnnStatus_t status = run(cuda, find(cuda, shape), tensors, workspace);
	if (!status)
		return 0;
	cudnnGetLastErrorString(said, sizeof(said));
	return smalti_fail(error, SMALTI_ENODEV, "%s: cuDNN says '%s' (%d) %s", what,
			   cudnnGetErrorString(status), (int)status, said);
}

int smalti_cuda_convolve(struct smalti_device *device, const struct smalti_device_convolution *c,
			 const struct smalti_device_memory *x, const struct smalti_device_memory *w,
			 const struct smalti_device_memory *bias, const struct smalti_device_memory *y,
			 int64_t y_first, struct smalti_error *error)
{
	const struct shape shape = shape_of_convolution(c);
	float *to = (float *)y->memory + y_first;
	const struct tensors tensors = {
	    {SMALTI_CUDNN_X, SMALTI_CUDNN_WEIGHT, SMALTI_CUDNN_BIAS, SMALTI_CUDNN_Y, SMALTI_CUDNN_RESIDUAL},
	    {x->memory, w->memory, bias->memory, to, to},
	    c->adds ? 5 : 4};
	return execute((struct smalti_cuda_device *)device, &shape, &tensors, "convolution", error);
}

int smalti_cuda_sdpa(struct smalti_device *device, const struct smalti_device_sdpa *a,
		     const struct smalti_device_memory *q, const struct smalti_device_memory *kv,
		     const struct smalti_device_memory *bias, float scale,
		     const struct smalti_device_memory *y, struct smalti_error *error)
{
	const struct shape shape = shape_of_sdpa(a);
	const int64_t row = a->heads * a->head_dim * smalti_dtype_bytes(a->dtype);
	const struct tensors tensors = {
	    {SMALTI_CUDNN_Q, SMALTI_CUDNN_K, SMALTI_CUDNN_V, SMALTI_CUDNN_SCALE, SMALTI_CUDNN_Y,
	     SMALTI_CUDNN_BIAS},
	    {q->memory, kv->memory, (char *)kv->memory + row, &scale, y->memory, bias ? bias->memory : NULL},
	    a->biased ? 6 : 5};
	return execute((struct smalti_cuda_device *)device, &shape, &tensors, "attention", error);
}

void smalti_cuda_graphs_open(struct smalti_cuda_device *cuda)
{
	struct smalti_error lacking = SMALTI_NO_ERROR;
	cuda->graphs = smalti_calloc(1, sizeof(*cuda->graphs), &lacking);
	if (cuda->graphs && cudnnCreate(&cuda->graphs->cudnn))
		cuda->graphs->cudnn = NULL;
}

void smalti_cuda_graphs_close(struct smalti_cuda_device *cuda)
{
	for (int i = 0; cuda->graphs && i < KEPT; i++)
		forget(&cuda->graphs->kept[i]);
	if (cuda->graphs && cuda->graphs->cudnn)
		cudnnDestroy(cuda->graphs->cudnn);
	free(cuda->graphs);
}
