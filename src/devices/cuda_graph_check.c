/* SPDX-License-Identifier: Apache-2.0 */
/* Tells whether a plan of cuDNN computes correctly: compares a few results with those of the host, in
 * double. */
#include "devices/cuda_graphs.h"

#include "base/dtype.h"

#include <math.h>

enum {
	PATTERN = 65521, /* numbers that all tensors repeat, each from its own start; a prime */
	APART = 7919,
	ALIGNED = 256,
	SAMPLES = 6,
};

/* A tensor and its number of elements. */
struct part {
	enum smalti_cudnn_tensor number;
	int64_t count;
};

struct trial {
	const struct smalti_cuda_shape *shape;
	enum smalti_dtype dtype;
	float scale; /* attention's */
	struct part parts[SMALTI_CUDNN_TENSORS];
	struct smalti_cudnn_tensors tensors;
	float *numbers; /* the pattern in the dtype */
};

/* Lists the tensors in memory, the results first; returns how many. */
static int list_parts(const struct smalti_cuda_shape *s, struct part *parts)
{
	const int64_t row = s->heads * s->head_dim, rows = s->rows + (s->stride == 2 ? 1 : 2),
		      results = s->stride ? s->rows / s->stride * (s->width / s->stride) * s->out : 0;
	const struct part attention[] = {{SMALTI_CUDNN_Y, s->queries * row},
					 {SMALTI_CUDNN_Q, s->queries * row},
					 {SMALTI_CUDNN_K, 2 * s->keys * row}, /* V is in the same memory */
					 {SMALTI_CUDNN_BIAS, s->heads * s->queries * s->keys}},
			  convolution[] = {{SMALTI_CUDNN_Y, results},
					   {SMALTI_CUDNN_X, rows * s->width * s->in},
					   {SMALTI_CUDNN_WEIGHT, s->out * 9 * s->in}};
	const int count = s->queries ? 3 + (s->biased != 0) : 3;
	memcpy(parts, s->queries ? attention : convolution, (size_t)count * sizeof(*parts));
	return count;
}

/* Returns the number at `place` in a tensor. */
static double at(const struct trial *trial, enum smalti_cudnn_tensor tensor, int64_t place)
{
	return (double)trial->numbers[(place + (int64_t)tensor * APART) % PATTERN];
}

/* Computes the results of one query and head. */
static void attend(const struct trial *t, int64_t query, int64_t head, double *y)
{
	const struct smalti_cuda_shape *s = t->shape;
	const int64_t d = s->head_dim, row = s->heads * d;
	double max = -(double)INFINITY, sum = 0;
	for (int64_t c = 0; c < d; c++)
		y[c] = 0;
	for (int64_t key = 0; key < s->keys; key++) {
		double score = 0;
		for (int64_t c = 0; c < d; c++)
			score += at(t, SMALTI_CUDNN_Q, query * row + head * d + c) *
				 at(t, SMALTI_CUDNN_K, 2 * key * row + head * d + c);
		score *= (double)t->scale;
		if (s->biased)
			score += at(t, SMALTI_CUDNN_BIAS, (head * s->queries + query) * s->keys + key);
		const double larger = fmax(max, score), fade = exp(max - larger),
			     weight = exp(score - larger);
		max = larger;
		sum = sum * fade + weight;
		for (int64_t c = 0; c < d; c++)
			y[c] =
			    y[c] * fade + weight * at(t, SMALTI_CUDNN_K, (2 * key + 1) * row + head * d + c);
	}
	for (int64_t c = 0; c < d; c++)
		y[c] /= sum;
}

/* Computes one result. */
static void convolve(const struct trial *t, int64_t row, int64_t column, int64_t channel, double *y)
{
	const struct smalti_cuda_shape *s = t->shape;
	const int64_t before = s->stride == 2 ? 0 : 1;
	*y = 0;
	for (int64_t tap = 0; tap < 9; tap++) {
		const int64_t from_row = row * s->stride + tap / 3,
			      from = column * s->stride + tap % 3 - before;
		for (int64_t i = 0; from >= 0 && from < s->width && i < s->in; i++)
			*y += at(t, SMALTI_CUDNN_X, (from_row * s->width + from) * s->in + i) *
			      at(t, SMALTI_CUDNN_WEIGHT, (channel * 9 + tap) * s->in + i);
	}
}

/* Computes a sample of the results, at borders and between them. Returns where in the results it begins; its
 * length is in *count. */
static int64_t compute(const struct trial *t, int sample, int64_t *count, double *y)
{
	const struct smalti_cuda_shape *s = t->shape;
	const double share = (double)sample / (SAMPLES - 1);
	if (s->queries) {
		const int64_t query = (int64_t)(share * (double)(s->queries - 1)), head = sample % s->heads;
		*count = s->head_dim;
		attend(t, query, head, y);
		return (query * s->heads + head) * s->head_dim;
	}
	const int64_t rows = s->rows / s->stride, width = s->width / s->stride,
		      row = (int64_t)(share * (double)(rows - 1)),
		      column = sample % 2 ? width - 1 : (int64_t)(share * (double)(width - 1)),
		      channel = s->out - 1 - (int64_t)(share * (double)(s->out - 1));
	*count = 1;
	convolve(t, row, column, channel, y);
	return (row * width + column) * s->out + channel;
}

/* Repeats the numbers in a tensor on the device: copies what is there behind itself. */
static bool fill(const struct trial *trial, const struct part *part, char *to, cudaStream_t stream)
{
	const int64_t element = smalti_dtype_bytes(trial->dtype);
	SCOPED(free) char *twice = smalti_aligned_alloc(2 * PATTERN, element, NULL);
	if (!twice)
		return false;
	for (int half = 0; half < 2; half++)
		smalti_narrow(trial->dtype, trial->numbers, PATTERN, twice + half * PATTERN * element);
	int64_t done = smalti_min(PATTERN, part->count);
	cudaError_t status = cudaMemcpyAsync(to, twice + (int64_t)part->number * APART % PATTERN * element,
					     (size_t)(done * element), cudaMemcpyHostToDevice, stream);
	for (int64_t more; !status && done < part->count; done += more) {
		more = smalti_min(done, part->count - done);
		status = cudaMemcpyAsync(to + done * element, to, (size_t)(more * element),
					 cudaMemcpyDeviceToDevice, stream);
	}
	return !status && !cudaStreamSynchronize(stream); /* `twice` is freed next */
}

/* Lays the tensors out before their memory is allocated; returns its bytes. */
static int64_t lay_out(struct trial *trial)
{
	int64_t bytes = 0;
	trial->tensors.count = list_parts(trial->shape, trial->parts);
	for (int i = 0; i < trial->tensors.count; i++) {
		trial->tensors.numbers[i] = trial->parts[i].number;
		trial->tensors.at[i] = (const void *)(uintptr_t)bytes;
		bytes += smalti_round_up(trial->parts[i].count * smalti_dtype_bytes(trial->dtype), ALIGNED);
	}
	return bytes;
}

static void add_tensor(struct smalti_cudnn_tensors *tensors, enum smalti_cudnn_tensor number, const void *at)
{
	tensors->numbers[tensors->count] = number;
	tensors->at[tensors->count++] = at;
}

static bool prepare(struct trial *trial, char *memory, cudaStream_t stream)
{
	struct smalti_cudnn_tensors *tensors = &trial->tensors;
	const struct smalti_cuda_shape *s = trial->shape;
	const char *keys = NULL;
	for (int i = 0; i < tensors->count; i++) {
		tensors->at[i] = memory + (uintptr_t)tensors->at[i];
		if (!fill(trial, &trial->parts[i], (char *)(uintptr_t)tensors->at[i], stream))
			return false;
		keys = trial->parts[i].number == SMALTI_CUDNN_K ? tensors->at[i] : keys;
	}
	if (s->queries) {
		add_tensor(tensors, SMALTI_CUDNN_V,
			   keys + s->heads * s->head_dim * smalti_dtype_bytes(trial->dtype));
		add_tensor(tensors, SMALTI_CUDNN_SCALE, &trial->scale);
	}
	return true;
}

/* Raises *difference to the largest deviation of a sample's results, and *largest to the largest expected
 * value. */
static bool compare(const struct trial *trial, int sample, cudaStream_t stream, double *difference,
		    double *largest)
{
	double expected[SMALTI_CUDA_MAX_HEAD];
	float bytes[SMALTI_CUDA_MAX_HEAD], found[SMALTI_CUDA_MAX_HEAD];
	int64_t count = 0;
	const int64_t first = compute(trial, sample, &count, expected);
	const int64_t element = smalti_dtype_bytes(trial->dtype);
	if (cudaMemcpyAsync(bytes, (const char *)trial->tensors.at[0] + first * element,
			    (size_t)(count * element), cudaMemcpyDeviceToHost, stream) ||
	    cudaStreamSynchronize(stream))
		return false;
	smalti_widen(trial->dtype, bytes, count, found);
	for (int64_t i = 0; i < count; i++) {
		if (!isfinite(found[i]))
			return false;
		*difference = fmax(*difference, fabs((double)found[i] - expected[i]));
		*largest = fmax(*largest, fabs(expected[i]));
	}
	return true;
}

static bool is_near(const struct trial *trial, cudaStream_t stream)
{
	static const double tolerances[] = {[SMALTI_F32] = 5e-3, [SMALTI_F16] = 1e-2, [SMALTI_BF16] = 3e-2};
	double difference = 0, largest = 0;
	for (int sample = 0; sample < SAMPLES; sample++)
		if (!compare(trial, sample, stream, &difference, &largest))
			return false;
	return difference <= tolerances[trial->dtype] * largest;
}

/* Makes the numbers, from -1 to 1, always the same ones. */
static bool make_numbers(struct trial *trial)
{
	uint64_t state = 1;
	trial->numbers = smalti_calloc(PATTERN, sizeof(float), NULL);
	for (int i = 0; trial->numbers && i < PATTERN; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		trial->numbers[i] = smalti_round(trial->dtype, (float)(state >> 40) * 0x1p-23f - 1);
	}
	return trial->numbers;
}

static bool run(struct smalti_cuda_device *cuda, cudnnHandle_t cudnn, cudnnBackendDescriptor_t plan,
		struct trial *trial)
{
	struct smalti_error refused = SMALTI_NO_ERROR;
	struct smalti_device_memory memory = {NULL, 0};
	void *workspace = smalti_cuda_workspace(cuda, &refused);
	if (!workspace || smalti_device_allocate(&cuda->device, &memory, lay_out(trial), &refused) < 0)
		return false;
	cudaStream_t stream = smalti_cuda_stream(cuda);
	const bool right = prepare(trial, memory.memory, stream) &&
			   !smalti_cudnn_execute(cudnn, stream, plan, &trial->tensors, workspace) &&
			   is_near(trial, stream);
	smalti_device_release(&cuda->device, &memory);
	return right;
}

bool smalti_cuda_graph_is_right(struct smalti_cuda_device *cuda, cudnnHandle_t cudnn,
				const struct smalti_cuda_shape *shape, cudnnBackendDescriptor_t plan)
{
	struct trial trial = {.shape = shape,
			      .dtype = (enum smalti_dtype)shape->dtype,
			      .scale = shape->queries ? 4 / sqrtf((float)shape->head_dim) : 0};
	const bool right = make_numbers(&trial) && run(cuda, cudnn, plan, &trial);
	if (!right)
		cudaGetLastError(); /* CUDA would report the error to the next caller */
	free(trial.numbers);
	return right;
}
