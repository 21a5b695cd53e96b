/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cases.h"
#include "rt/op.h"

static int drop_rows(void *user, int64_t first, int64_t rows, int64_t width, const float *pixels,
		     struct smalti_error *error)
{
	(void)user, (void)first, (void)rows, (void)width, (void)pixels, (void)error;
	return 0;
}

static int no_rows(void *user, int64_t first, int64_t rows, int64_t width, float *pixels,
		   struct smalti_error *error)
{
	(void)user, (void)first, (void)rows, (void)width, (void)pixels, (void)error;
	return 0;
}

static int write_nothing(void *user, int64_t offset, int64_t bytes, const void *data,
			 struct smalti_error *error)
{
	(void)user, (void)offset, (void)bytes, (void)data, (void)error;
	return 0;
}

static int read_nothing(void *user, int64_t offset, int64_t bytes, bool last, void *data,
			struct smalti_error *error)
{
	(void)user, (void)offset, (void)bytes, (void)last, (void)data, (void)error;
	return 0;
}

static int drop_floats(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	(void)user, (void)count, (void)values, (void)error;
	return 0;
}

/* Returns the dtype of an operation's products; what computes no products computes in f32. */
static enum smalti_dtype dtype_of(enum smalti_op_number number, const void *arguments)
{
	const struct smalti_op *op = &smalti_ops[number];
	return op->work < SMALTI_WORKS ? op->dtype(arguments) : SMALTI_F32;
}

int smalti_bench_each(enum smalti_dtype precision,
		      int (*visit)(void *user, const struct smalti_bench_case *c), void *user)
{
	const enum smalti_dtype T = precision, WIDE = T == SMALTI_F16 ? SMALTI_F32 : T; /* graphs/t5/t5.c */
	int status;
#define CASE(codelet, text, ...)                                                                             \
	do {                                                                                                 \
		const struct codelet##_arguments arguments = {__VA_ARGS__};                                  \
		const struct smalti_bench_case c = {                                                         \
		    .op = SMALTI_OP_##codelet,                                                               \
		    .label = (text),                                                                         \
		    .name = #codelet " " text,                                                               \
		    .compute = dtype_of(SMALTI_OP_##codelet, &arguments),                                    \
		    .direct = smalti_ops[SMALTI_OP_##codelet].work == SMALTI_CONVOLUTIONS,                   \
		    .arguments = &arguments,                                                                 \
		};                                                                                           \
		if ((status = visit(user, &c)))                                                              \
			return status;                                                                       \
	} while (0);
#include "bench/cases.def"
	return 0;
}
