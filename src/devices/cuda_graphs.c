/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and attention, by cuDNN. The plan chosen for a shape is kept for later ones. */
#include "devices/cuda_graphs.h"

#include "base/dtype.h"

#include <xxhash.h>

enum {
	KEPT = 256, /* shapes, one for each hash */
	/* cuDNN compiles for each length of keys: captions have many lengths, and are short. */
	MIN_KEYS = 512,
};

struct smalti_cuda_graph {
	struct smalti_cuda_shape shape;
	bool tried;
	struct smalti_cudnn_graph graph;
	cudnnBackendDescriptor_t configuration, plan; /* NULL: cuDNN has none for the shape */
};

struct smalti_cuda_graphs {
	cudnnHandle_t cudnn; /* NULL: cuDNN is not used */
	struct smalti_cuda_graph kept[KEPT];
};

/* Tells whether cuDNN computes the shape correctly by a configuration; keeps its plan then. */
static bool takes(struct smalti_cuda_device *cuda, struct smalti_cuda_graph *g,
		  cudnnBackendDescriptor_t configuration)
{
	cudnnBackendDescriptor_t plan =
	    smalti_cudnn_plan(&g->graph, configuration, smalti_cuda_workspace_bytes(cuda));
	if (plan && smalti_cuda_graph_is_right(cuda, cuda->graphs->cudnn, &g->shape, plan)) {
		g->plan = plan;
		g->configuration = configuration;
		return true;
	}
	smalti_cudnn_drop(plan);
	return false;
}

/* Chooses the first configuration that works, in the order of cuDNN's heuristics. It measures no times:
 * devices of one kind must choose equally, so that their results are equal. */
static void choose(struct smalti_cuda_device *cuda, struct smalti_cuda_graph *g)
{
	const struct smalti_cudnn_wish wish = {.exact = g->shape.dtype == SMALTI_F32 && !cuda->device.tf32,
					       .ready = g->shape.queries == 0};
	cudnnBackendDescriptor_t proposed[SMALTI_CUDNN_PROPOSED];
	const int count = smalti_cudnn_propose(&g->graph, wish, proposed);
	for (int i = 0; i < count; i++)
		if (g->plan || !takes(cuda, g, proposed[i]))
			smalti_cudnn_drop(proposed[i]);
}

static void forget(struct smalti_cuda_graph *g)
{
	smalti_cudnn_drop(g->plan);
	smalti_cudnn_drop(g->configuration);
	smalti_cudnn_graph_free(&g->graph);
	*g = (struct smalti_cuda_graph){.tried = false};
}

/* Asks cuDNN for a plan. Other kernels do what it refuses. */
static void ask(struct smalti_cuda_device *cuda, struct smalti_cuda_graph *g,
		const struct smalti_cuda_shape *s)
{
	const enum smalti_dtype dtype = (enum smalti_dtype)s->dtype;
	const struct smalti_device_sdpa sdpa = {s->queries,  s->keys, s->heads,
						s->head_dim, dtype,   s->biased != 0};
	const struct smalti_device_convolution convolution = {s->rows, s->width,  s->in,
							      s->out,  s->stride, dtype};
	const struct smalti_cudnn_target target = {.handle = cuda->graphs->cudnn};
	struct smalti_error refused = SMALTI_NO_ERROR;
	g->shape = *s;
	g->tried = true;
	if ((s->queries ? smalti_cudnn_sdpa_graph(&sdpa, target, &g->graph, &refused)
			: smalti_cudnn_convolution_graph(&convolution, target, &g->graph, &refused)) == 0)
		choose(cuda, g);
}

/* Returns a plan. NULL: there is none, or it is untried while commands are recorded. */
static cudnnBackendDescriptor_t find(struct smalti_cuda_device *cuda, const struct smalti_cuda_shape *shape)
{
	if (!cuda->graphs || !cuda->graphs->cudnn)
		return NULL;
	struct smalti_cuda_graph *place = &cuda->graphs->kept[XXH32(shape, sizeof(*shape), 0) % KEPT];
	const bool known = place->tried && memcmp(&place->shape, shape, sizeof(*shape)) == 0;
	if (!known && cuda->device.records) { /* a trial waits for its results */
		cuda->device.lacks = true;
		return NULL;
	}
	if (!known) {
		if (place->plan)
			cuda->device.releases++; /* recorded commands may use this plan */
		forget(place);
		ask(cuda, place, shape);
	}
	return place->plan;
}

static struct smalti_cuda_shape shape_of_convolution(const struct smalti_device_convolution *c)
{
	return (struct smalti_cuda_shape){.rows = c->rows,
					  .width = c->width,
					  .in = c->in,
					  .out = c->out,
					  .stride = c->stride,
					  .dtype = c->dtype};
}

static struct smalti_cuda_shape shape_of_sdpa(const struct smalti_device_sdpa *a)
{
	return (struct smalti_cuda_shape){.queries = a->queries,
					  .keys = a->keys,
					  .heads = a->heads,
					  .head_dim = a->head_dim,
					  .biased = a->biased,
					  .dtype = a->dtype};
}

bool smalti_cuda_has_convolution(struct smalti_device *device, const struct smalti_device_convolution *c)
{
	const struct smalti_cuda_shape shape = shape_of_convolution(c);
	return find((struct smalti_cuda_device *)device, &shape);
}

bool smalti_cuda_has_sdpa(struct smalti_device *device, const struct smalti_device_sdpa *sdpa)
{
	const struct smalti_cuda_shape shape = shape_of_sdpa(sdpa);
	return sdpa->dtype != SMALTI_F32 && (sdpa->biased || sdpa->keys >= MIN_KEYS) &&
	       sdpa->head_dim % 8 == 0 && sdpa->head_dim <= SMALTI_CUDA_MAX_HEAD &&
	       find((struct smalti_cuda_device *)device, &shape);
}

static int execute(struct smalti_cuda_device *cuda, const struct smalti_cuda_shape *shape,
		   const struct smalti_cudnn_tensors *tensors, const char *what, struct smalti_error *error)
{
	char said[256] = "";
	void *workspace = smalti_cuda_workspace(cuda, error);
	if (!workspace)
		return -1;
	const cudnnStatus_t status = smalti_cudnn_execute(cuda->graphs->cudnn, smalti_cuda_stream(cuda),
							  find(cuda, shape), tensors, workspace);
	if (!status)
		return 0;
	cudnnGetLastErrorString(said, sizeof(said));
	return smalti_fail(error, SMALTI_ENODEV, "%s: cuDNN says '%s' (%d) %s", what,
			   cudnnGetErrorString(status), (int)status, said);
}

int smalti_cuda_convolve(struct smalti_device *device, const struct smalti_device_convolution *c,
			 const struct smalti_device_memory *x, const struct smalti_device_memory *w,
			 const struct smalti_device_memory *y, struct smalti_error *error)
{
	const struct smalti_cuda_shape shape = shape_of_convolution(c);
	const struct smalti_cudnn_tensors tensors = {
	    {SMALTI_CUDNN_X, SMALTI_CUDNN_WEIGHT, SMALTI_CUDNN_Y}, {x->memory, w->memory, y->memory}, 3};
	return execute((struct smalti_cuda_device *)device, &shape, &tensors, "convolution", error);
}

int smalti_cuda_sdpa(struct smalti_device *device, const struct smalti_device_sdpa *a,
		     const struct smalti_device_memory *q, const struct smalti_device_memory *kv,
		     const struct smalti_device_memory *bias, float scale,
		     const struct smalti_device_memory *y, struct smalti_error *error)
{
	const struct smalti_cuda_shape shape = shape_of_sdpa(a);
	const int64_t row = a->heads * a->head_dim * smalti_dtype_bytes(a->dtype);
	const struct smalti_cudnn_tensors tensors = {
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
