/* SPDX-License-Identifier: Apache-2.0
 *
 * What operations compute on a device, against the same on a CPU: the smaller cases of
 * bench/cases.def.
 */
#include "bench/cases.h"
#include "device_session.h"
#include "graphs/weight_forms.h"
#include "kernels/isa.h"
#include "rt/op.h"
#include "rt/task.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <starpu.h>

static const double max_flops = 1e7, max_bytes = 1e6; /* of the cases that are tried */

enum { WEIGHTS = 2 }; /* of a case, at most */

/* One case: its buffers as a CPU has them, and the tiles that the device is given. */
struct trial {
	const struct smalti_bench_case *bench;
	const struct smalti_op *op;
	enum smalti_dtype precision;
	struct smalti_bench_buffer buffers[SMALTI_MAX_BUFFERS];
	void *data[SMALTI_MAX_BUFFERS];
	struct smalti_tile *tiles[SMALTI_MAX_BUFFERS];
	int absent; /* the index of a buffer that is not given; -1: none */
	int weights;
	void *plain[WEIGHTS]; /* their tensors */
	struct smalti_weight_source source[WEIGHTS];
};

struct trials {
	struct smalti_session *session;
	enum smalti_dtype precision;
	int count;
	bool (*wanted)(enum smalti_op_number op);
	bool
	    smallest; /* of each operation its smallest case alone, of this cost: where a run takes minutes */
	double min[SMALTI_OPS];
};

/* What a device has other ways for: cuDNN's, or kernels of its generation. */
static bool has_other_ways(enum smalti_op_number op)
{
	return op == SMALTI_OP_conv || op == SMALTI_OP_attention || op == SMALTI_OP_attend_heads;
}

static bool has_one_way(enum smalti_op_number op)
{
	return !has_other_ways(op);
}

static double cost(const struct smalti_bench_case *c)
{
	const struct smalti_op *op = &smalti_ops[c->op];
	return op->flops(c->arguments) + op->bytes(c->arguments);
}

static int keep_min(void *user, const struct smalti_bench_case *c)
{
	struct trials *trials = user;
	trials->min[c->op] = fmin(trials->min[c->op], cost(c));
	return 0;
}

/* Copies, and searches where CPUs round a product with its sum once. */
static bool is_exact(enum smalti_op_number op)
{
	return smalti_ops[op].work == SMALTI_COPIES ||
	       (op == SMALTI_OP_search_rows && smalti_isa() > SMALTI_ISA_GENERIC);
}

static void describe_matrix(struct smalti_weight_source *source, int64_t in, int64_t out,
			    enum smalti_dtype compute)
{
	*source = (struct smalti_weight_source){
	    .kind = SMALTI_WEIGHT_MATRIX, .compute = compute, .in = in, .out = out};
}

/* Tells whether the buffer is a bias that devices have in a form of their own, and which. */
static bool describe_bias(const struct smalti_bench_case *c, const char *buffer,
			  struct smalti_weight_source *source)
{
	const struct matmul_arguments *matmul = c->arguments;
	const struct matmul_raw_arguments *raw = c->arguments;
	if (strcmp(buffer, "bias") != 0 || (c->op != SMALTI_OP_matmul && c->op != SMALTI_OP_matmul_raw))
		return false;
	if (c->op == SMALTI_OP_matmul_raw)
		matmul = &raw->matmul;
	*source = (struct smalti_weight_source){
	    .kind = SMALTI_WEIGHT_VECTOR, .compute = matmul->compute, .in = 1, .out = matmul->out};
	return true;
}

/* Tells the same of any weight. */
static bool describe_weight(const struct smalti_bench_case *c, const char *buffer,
			    struct smalti_weight_source *source)
{
	const struct matmul_arguments *matmul = c->arguments;
	const struct patch_embed_arguments *embed = c->arguments;
	const struct conv_arguments *conv = c->arguments;
	if (describe_bias(c, buffer, source))
		return true;
	if (strcmp(buffer, "weight") != 0)
		return false;
	if (c->op == SMALTI_OP_matmul)
		describe_matrix(source, matmul->in, matmul->out, matmul->compute);
	else if (c->op == SMALTI_OP_patch_embed)
		describe_matrix(source, embed->in, embed->out, SMALTI_F32);
	else if (c->op == SMALTI_OP_conv)
		*source = (struct smalti_weight_source){.kind = SMALTI_WEIGHT_KERNEL,
							.compute = conv->compute,
							.in = conv->in,
							.out = conv->out,
							.stride = conv->stride};
	else
		return false;
	return true;
}

static void *fresh(int64_t bytes)
{
	void *memory = NULL;
	if (posix_memalign(&memory, 64, (size_t)bytes + 1))
		abort();
	return memory;
}

/* From a tensor of random numbers. */
static void make_weight(struct trial *t, int index, struct smalti_task_group *task_group, uint32_t *state)
{
	const int weight = t->weights++;
	struct smalti_weight_source *source = &t->source[weight];
	struct smalti_tile_forms forms;
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t count = source->in * source->out * (source->kind == SMALTI_WEIGHT_KERNEL ? 9 : 1);
	t->plain[weight] = fresh(count * 4);
	smalti_bench_fill(SMALTI_BENCH_F32, count, state, t->plain[weight]);
	source->parts = 1;
	source->part[0] = (struct smalti_tensor_view){
	    .data = t->plain[weight], .dtype = SMALTI_F32, .rank = 1, .shape = {count}, .bytes = count * 4};
	SUCCEEDS(smalti_weight_forms(source, &forms, &error), &error, t->bench->name);
	t->data[index] = fresh(forms.bytes[SMALTI_DEVICE_CPU]);
	SUCCEEDS(
	    forms.make(source, SMALTI_DEVICE_CPU, t->data[index], forms.bytes[SMALTI_DEVICE_CPU], &error),
	    &error, t->bench->name);
	t->tiles[index] = smalti_tile_of_forms(task_group, &forms);
}

/* Tells whether the buffer is an attention's running state. */
static bool is_state(const char *buffer)
{
	return strcmp(buffer, "state") == 0;
}

/* Sums of weights are positive: their logarithm is taken. */
static void make_sums_positive(const struct attention_arguments *a, float *state)
{
	for (int64_t head = 0; head < a->heads; head++, state += (2 + a->head_dim) * a->queries)
		for (int64_t query = 0; query < a->queries; query++)
			state[a->queries + query] = fabsf(state[a->queries + query]) + 0.5f;
}

static void make_buffer(struct trial *t, int kind, int index, struct smalti_task_group *task_group,
			uint32_t *state)
{
	const struct smalti_bench_buffer *buffer = &t->buffers[index];
	const int64_t bytes = smalti_bench_bytes(buffer);
	if (buffer->kind == SMALTI_BENCH_ABSENT || index == t->absent)
		return;
	if (describe_weight(t->bench, t->op->buffers[kind].name, &t->source[t->weights])) {
		make_weight(t, index, task_group, state);
		return;
	}
	t->data[index] = fresh(bytes);
	smalti_bench_fill(buffer->kind, buffer->count, state, t->data[index]);
	if (is_state(t->op->buffers[kind].name))
		make_sums_positive(t->bench->arguments, t->data[index]);
	if (smalti_op_access(t->op, kind, t->bench->arguments) == SMALTI_WRITE) {
		memset(t->data[index], 0xff, (size_t)bytes); /* NaN */
		t->tiles[index] = smalti_tile_new(task_group, 1, bytes);
	} else {
		t->tiles[index] = smalti_tile_upload(task_group, 1, bytes, t->data[index]);
	}
}

static double value(enum smalti_bench_kind kind, const void *data, int64_t i)
{
	if (kind == SMALTI_BENCH_F16)
		return (double)smalti_f16_to_f32(((const uint16_t *)data)[i]);
	if (kind == SMALTI_BENCH_BF16)
		return (double)smalti_bf16_to_f32(((const uint16_t *)data)[i]);
	if (kind == SMALTI_BENCH_MATCHES)
		return (double)((const struct smalti_match *)data)[i].score;
	if (kind == SMALTI_BENCH_MOMENTS || kind == SMALTI_BENCH_F64)
		return ((const double *)data)[i];
	return (double)((const float *)data)[i];
}

/* Of the buffer that moved values are in: a case's buffers are of whole floats. */
static int64_t moved_bytes(const struct smalti_bench_case *c, const struct smalti_bench_buffer *buffer)
{
	const struct copy_arguments *copy = c->arguments;
	const struct clear_arguments *clear = c->arguments;
	const struct convert_arguments *convert = c->arguments;
	if (c->op == SMALTI_OP_convert)
		return convert->count * smalti_dtype_bytes(convert->to);
	return c->op == SMALTI_OP_copy    ? copy->bytes
	       : c->op == SMALTI_OP_clear ? clear->bytes
					  : smalti_bench_bytes(buffer);
}

/* The origin of the exponents in attention's running state is free: here that where the sums are 1. */
static void settle_origins(const struct attention_arguments *a, float *state)
{
	for (int64_t head = 0; head < a->heads; head++, state += (2 + a->head_dim) * a->queries)
		for (int64_t query = 0; query < a->queries; query++) {
			float *origin = state + query, *sum = origin + a->queries;
			*origin += log2f(fabsf(*sum));
			for (int64_t d = 0; d < a->head_dim; d++)
				sum[(1 + d) * a->queries] /= *sum;
			*sum = 1;
		}
}

static void compare(const struct trial *t, const char *name, const struct smalti_bench_buffer *buffer,
		    const void *found, const void *expected)
{
	const int64_t count = buffer->count * (buffer->kind == SMALTI_BENCH_MOMENTS ? 3 : 1);
	const bool bf16 = buffer->kind == SMALTI_BENCH_BF16 || t->precision == SMALTI_BF16;
	const bool f16 = buffer->kind == SMALTI_BENCH_F16 || t->precision == SMALTI_F16;
	const double tolerance = bf16 ? 2e-2 : f16 ? 2e-2 / 8 : 2e-5;
	double worst = 0, largest = 0;
	char what[200];
	snprintf(what, sizeof(what), "%s, %s: %s", t->bench->name, smalti_dtype_name(t->precision), name);
	if (is_exact(t->bench->op)) {
		CHECK(memcmp(found, expected, (size_t)moved_bytes(t->bench, buffer)) == 0, what);
		return;
	}
	for (int64_t i = 0; i < count; i++) {
		const double a = value(buffer->kind, found, i), b = value(buffer->kind, expected, i);
		if (a == b || isnan(worst))
			continue;
		worst = !(fabs(a - b) <= worst) ? fabs(a - b) : worst;
		largest = fabs(b) > largest ? fabs(b) : largest;
	}
	CHECK(worst <= tolerance * largest, what);
	if (!(worst <= tolerance * largest))
		printf("\n    %s: off by %g where the largest is %g", what, worst, largest);
}

static void compare_outputs(struct trial *t)
{
	for (int kind = 0, index = 0; kind < t->op->buffer_kinds; index += t->op->buffers[kind++].count) {
		if (t->op->buffers[kind].access == SMALTI_READ || !t->tiles[index])
			continue;
		starpu_data_handle_t handle = smalti_tile_handle(t->tiles[index]);
		CHECK(starpu_data_acquire(handle, STARPU_RW) == 0, t->bench->name);
		if (is_state(t->op->buffers[kind].name)) {
			settle_origins(t->bench->arguments, starpu_data_get_local_ptr(handle));
			settle_origins(t->bench->arguments, t->data[index]);
		}
		compare(t, t->op->buffers[kind].name, &t->buffers[index], starpu_data_get_local_ptr(handle),
			t->data[index]);
		starpu_data_release(handle);
	}
}

static void run(struct trial *t, struct smalti_task_group *task_group)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	uint32_t state = 1;
	smalti_bench_buffers(t->bench, t->buffers);
	for (int kind = 0, index = 0; kind < t->op->buffer_kinds; kind++)
		for (int i = 0; i < t->op->buffers[kind].count; i++, index++)
			make_buffer(t, kind, index, task_group, &state);
	SUCCEEDS(t->op->run(t->data, t->bench->arguments, &error), &error, t->bench->name);
	smalti_task_insert(task_group, t->op, t->tiles, t->bench->arguments);
	smalti_task_group_wait(task_group);
	const int status = smalti_task_group_status(task_group, &error);
	SUCCEEDS(status, &error, t->bench->name);
	if (status == 0)
		compare_outputs(t);
}

static void try_without(struct trials *trials, const struct smalti_bench_case *c, int absent)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct trial t = {
	    .bench = c, .op = &smalti_ops[c->op], .precision = trials->precision, .absent = absent};
	struct smalti_task_group *task_group = smalti_task_group_new(trials->session, c->name, 0, &error);
	run(&t, task_group);
	for (int i = 0; i < SMALTI_MAX_BUFFERS; i++) {
		smalti_tile_release(t.tiles[i]);
		free(t.data[i]);
	}
	smalti_task_group_free(task_group);
	starpu_task_wait_for_all();
	for (int i = 0; i < t.weights; i++)
		free(t.plain[i]);
	trials->count++;
}

/* Where a buffer is among the op's, one that may be left out whatever the arguments are; -1 elsewhere. */
static int find_spare(enum smalti_op_number op, const char *name)
{
	static const struct {
		enum smalti_op_number op;
		const char *buffer;
	} spares[] = {
	    {SMALTI_OP_attention, "bias"},
	    {SMALTI_OP_attention, "lse"},
	    {SMALTI_OP_conv, "above"},
	    {SMALTI_OP_conv, "below"},
	    {SMALTI_OP_conv, "moments"},
	    {SMALTI_OP_conv, "top"},
	    {SMALTI_OP_conv, "bottom"},
	    {SMALTI_OP_conv, "y_moments"},
	    {SMALTI_OP_edges, "top"},
	    {SMALTI_OP_edges, "bottom"},
	    {SMALTI_OP_edges, "moments"},
	    {SMALTI_OP_linear_weight, "gbias"},
	    {SMALTI_OP_gated_sum, "modulation"},
	};
	bool spare = false;
	for (int i = 0; i < COUNT(spares); i++)
		spare = spare || (spares[i].op == op && strcmp(spares[i].buffer, name) == 0);
	int index = 0;
	for (int kind = 0; spare && kind < smalti_ops[op].buffer_kinds; kind++) {
		if (strcmp(smalti_ops[op].buffers[kind].name, name) == 0)
			return index;
		index += smalti_ops[op].buffers[kind].count;
	}
	return -1;
}

/* With all its buffers, then without one each time. */
static int try_case(void *user, const struct smalti_bench_case *c)
{
	struct trials *trials = user;
	const struct smalti_op *op = &smalti_ops[c->op];
	struct smalti_bench_buffer buffers[SMALTI_MAX_BUFFERS];
	if (!smalti_op_device(op) || !trials->wanted(c->op) || op->flops(c->arguments) > max_flops ||
	    op->bytes(c->arguments) > max_bytes || (trials->smallest && cost(c) > trials->min[c->op]))
		return 0;
	smalti_bench_buffers(c, buffers);
	try_without(trials, c, -1);
	for (int kind = 0; kind < op->buffer_kinds; kind++) {
		const int index = find_spare(c->op, op->buffers[kind].name);
		if (index >= 0 && buffers[index].kind != SMALTI_BENCH_ABSENT)
			try_without(trials, c, index);
	}
	return 0;
}

/* Devices alone: whatever has a form for them runs there. */
static void try_operations(bool (*wanted)(enum smalti_op_number op))
{
	static const enum smalti_dtype precisions[] = {SMALTI_F32, SMALTI_BF16, SMALTI_F16};
	struct trials trials = {.session = test_open_devices("operations", "0", 1, NULL, NULL),
				.wanted = wanted};
	if (!trials.session)
		return;
	trials.smallest = getenv("SMALTI_TEST_SMALLEST") != NULL;
	for (int i = 0; i < COUNT(precisions); i++) {
		trials.precision = precisions[i];
		for (int op = 0; op < SMALTI_OPS; op++)
			trials.min[op] = (double)INFINITY;
		smalti_bench_each(precisions[i], keep_min, &trials);
		smalti_bench_each(precisions[i], try_case, &trials);
	}
	CHECK(trials.count > 0, "cases");
	printf("\n    %d cases", trials.count);
	test_close_devices(trials.session);
}

static void convolutions_and_attention(void)
{
	try_operations(has_other_ways);
}

static void others(void)
{
	try_operations(has_one_way);
}

static void too_few(void)
{
	struct smalti_session_options options = {.cpus = 1};
	struct smalti_error error = SMALTI_NO_ERROR;
	test_ask_for(&options, 8);
	struct smalti_session *session = smalti_session_open(&options, &error);
	FAILS(session ? 0 : -1, &error, SMALTI_ENODEV, "eight devices", test_cuda() ? "CUDA" : "OpenCL");
	if (session)
		test_close_devices(session);
}

static const struct test tests[] = {
    {"operations on devices: convolutions and attention", convolutions_and_attention},
    {"operations on devices: others", others},
    {"too few", too_few},
};

TEST_PROGRAM()
{
	return test_main("devices", tests, COUNT(tests));
}
