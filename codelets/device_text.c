/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/device_parts.h"

/* Prepares rows first … of a weight [*, in] as an operand of products. */
static int weight_rows(struct smalti_device *device, const struct smalti_device_memory *weight, int64_t first,
		       int64_t rows, int64_t in, enum smalti_dtype dtype, enum smalti_dtype compute,
		       struct smalti_device_matrix *matrix, struct smalti_error *error)
{
	const int64_t stride = smalti_raw_stride(dtype, in);
	const struct operand_arguments a = {rows, in, first * stride, stride, dtype, compute, compute};
	return smalti_device_operand(device, SMALTI_DEVICE_WEIGHT, weight, &a, matrix, error);
}

/* The use of a product: y is it, adds it, or is its GELU. */
enum ending { STORES, ADDS, STORES_GELU };

/* Computes columns first … of y = x·Wᵀ; rows of y are `stride` elements apart. */
static int multiply(struct smalti_device *device, int64_t rows, int64_t in, int64_t out,
		    const struct smalti_device_matrix *x, const struct smalti_device_matrix *w,
		    const struct smalti_device_matrix *y, enum ending ending, struct smalti_error *error)
{
	const struct smalti_device_product product = {.rows = rows,
						      .in = in,
						      .out = out,
						      .x_first = x->first,
						      .x_stride = x->stride,
						      .w_first = w->first,
						      .w_stride = w->stride,
						      .y_first = y->first,
						      .y_stride = y->stride,
						      .adds = ending == ADDS,
						      .gelu = ending == STORES_GELU,
						      .dtype = x->dtype,
						      .result = y->dtype};
	return smalti_device_product(device, &product, x->memory, w->memory, y->memory, error);
}

/* Products of x [rows, in] with rows first … of several matrices [*, in]. */
struct projection {
	int64_t rows, in, first, out;
	enum smalti_dtype compute;
	bool rounds_x;
	struct smalti_device_matrix x;          /* unless it is rounded */
	struct smalti_device_integers integers; /* x rounded */
};

/* Prepares x, once for all matrices. */
static int prepare(struct smalti_device *device, const struct smalti_device_memory *x, struct projection *p,
		   struct smalti_error *error)
{
	const struct operand_arguments operand = {p->rows,    p->in,      0,         p->in,
						  p->compute, p->compute, p->compute};
	const struct integer_product_arguments rounding = {.rows = p->rows, .in = p->in, .dtype = p->compute};
	return p->rounds_x ? smalti_device_round_rows(device, &rounding, x, &p->integers, error)
			   : smalti_device_operand(device, SMALTI_DEVICE_X, x, &operand, &p->x, error);
}

/* Computes y = x·Wᵀ, or its GELU; of integers only the first, in f32. */
static int project(struct smalti_device *device, const struct projection *p,
		   const struct smalti_device_memory *weight, enum smalti_dtype dtype,
		   const struct smalti_device_matrix *y, enum ending ending, struct smalti_error *error)
{
	const struct integer_product_arguments product = {.rows = p->rows,
							  .in = p->in,
							  .out = p->out,
							  .w_row = p->first,
							  .z_first = y->first,
							  .z_stride = y->stride};
	struct smalti_device_matrix w;
	if (p->rounds_x)
		return smalti_device_integer_product(device, &product, &p->integers, weight, y->memory,
						     error);
	return weight_rows(device, weight, p->first, p->out, p->in, dtype, p->compute, &w, error) < 0
		   ? -1
		   : multiply(device, p->rows, p->in, p->out, &p->x, &w, y, ending, error);
}

/* Computes queries, keys and values. */
static int project_heads(struct smalti_device *device, const struct attend_heads_memories *data,
			 const struct attend_heads_arguments *a, const struct smalti_device_matrix to[3],
			 struct smalti_error *error)
{
	const struct smalti_device_memory *const matrices[3] = {data->q, data->k, data->v};
	struct projection p = {.rows = a->tokens,
			       .in = a->in,
			       .first = (a->first_head - a->held) * a->head_dim,
			       .out = a->heads * a->head_dim,
			       .compute = a->compute,
			       .rounds_x = a->rounds_x};
	int status = prepare(device, data->x, &p, error);
	for (int i = 0; i < 3 && status == 0; i++)
		status = project(device, &p, matrices[i], a->dtype[i], &to[i], STORES, error);
	return status;
}

/* Attention by a library, with the bias as a matrix, for multiples of FUSED_STEP tokens, as each shape is
 * compiled at its first use. Below FUSED_MIN tokens the general kernel takes no longer. */
enum { FUSED_STEP = 64, FUSED_MIN = 512 };

static struct smalti_device_sdpa fused_of(const struct attend_heads_arguments *a)
{
	const int64_t padded = (a->tokens + FUSED_STEP - 1) / FUSED_STEP * FUSED_STEP;
	return (struct smalti_device_sdpa){padded, padded, a->heads, a->head_dim, a->compute, true};
}

static int64_t bias_bytes(const struct smalti_device_sdpa *sdpa)
{
	return sdpa->heads * sdpa->queries * sdpa->keys * smalti_dtype_bytes(sdpa->dtype);
}

/* Tells whether products make queries, keys and values in the dtype in which attention is computed. */
static bool makes_heads(const struct smalti_device *device, const struct attend_heads_arguments *a)
{
	const struct smalti_device_product product = {.rows = a->tokens,
						      .in = a->in,
						      .out = a->heads * a->head_dim,
						      .dtype = a->compute,
						      .result = a->compute};
	return !a->rounds_x && a->compute != SMALTI_F32 &&
	       smalti_device_operands(device, a->compute) == a->compute &&
	       smalti_device_makes(device, &product);
}

/* Tells whether the library's attention is possible and pays. It computes all pairs of tokens, also of
 * different captions, and does not support padding. */
static bool fuses(struct smalti_device *device, const struct attend_heads_arguments *a)
{
	const struct smalti_device_sdpa sdpa = fused_of(a);
	return a->tokens >= FUSED_MIN && !a->padding && 4 * a->pairs >= a->tokens * a->tokens &&
	       bias_bytes(&sdpa) <= smalti_device_room(device) && makes_heads(device, a) &&
	       smalti_device_has_sdpa(device, &sdpa);
}

static const struct smalti_device_memory *spread_bias(struct smalti_device *device,
						      const struct attend_heads_memories *data,
						      const struct attend_heads_arguments *a,
						      const struct smalti_device_sdpa *sdpa,
						      struct smalti_error *error)
{
	const struct spread_bias_arguments spread = {.tokens = a->tokens,
						     .padded = sdpa->queries,
						     .heads = a->heads,
						     .captions = a->captions,
						     .bias_first = a->first_head,
						     .bias_length = 2 * a->bias_reach - 1,
						     .bias_origin = a->bias_reach - 1,
						     .dtype = a->compute};
	const struct smalti_device_memory *bias =
	    smalti_device_scratch(device, SMALTI_DEVICE_COEFFICIENTS, bias_bytes(sdpa), error);
	const struct smalti_device_memory *const buffers[] = {data->bias, data->starts, bias};
	if (!bias || smalti_device_elements(device, SMALTI_DEVICE_FORM("spread_bias", a->compute),
					    a->heads * sdpa->queries * sdpa->keys / SMALTI_EIGHT, buffers,
					    &spread, error) < 0)
		return NULL;
	return bias;
}

/* Returns keys and values of `bytes` bytes. Those beyond the tokens are 0: a weight of 0 does not cancel
 * NaN. */
static const struct smalti_device_memory *clear_keys(struct smalti_device *device, int64_t bytes,
						     struct smalti_error *error)
{
	const struct clear_arguments clear = {bytes};
	const struct smalti_device_memory *kv =
	    smalti_device_scratch(device, SMALTI_DEVICE_FACTOR, bytes, error);
	const struct smalti_device_memory *const buffers[] = {kv};
	if (!kv || smalti_device_elements(device, "clear", bytes / 4, buffers, &clear, error) < 0)
		return NULL;
	return kv;
}

static int attend_fused(struct smalti_device *device, const struct attend_heads_memories *data,
			const struct attend_heads_arguments *a, struct smalti_error *error)
{
	const struct smalti_device_sdpa sdpa = fused_of(a);
	const int64_t columns = a->heads * a->head_dim, row = columns * smalti_dtype_bytes(a->compute);
	const struct copy_arguments made = {a->tokens * row};
	const struct smalti_device_memory *kv = clear_keys(device, 2 * sdpa.keys * row, error);
	const struct smalti_device_memory *q =
	    kv ? smalti_device_scratch(device, SMALTI_DEVICE_PRODUCT, sdpa.queries * row, error) : NULL;
	const struct smalti_device_matrix to[3] = {{q, 0, columns, a->compute},
						   {kv, 0, 2 * columns, a->compute},
						   {kv, columns, 2 * columns, a->compute}};
	if (!q || project_heads(device, data, a, to, error) < 0)
		return -1;
	const struct smalti_device_memory *bias = spread_bias(device, data, a, &sdpa, error);
	const struct smalti_device_memory *y =
	    bias ? smalti_device_scratch(device, SMALTI_DEVICE_X, sdpa.queries * row, error) : NULL;
	const struct smalti_device_memory *const buffers[] = {y, data->y};
	if (!y || smalti_device_sdpa(device, &sdpa, q, kv, bias, 1, y, error) < 0)
		return -1;
	return smalti_device_elements(device, "copy", made.bytes / 4, buffers, &made, error);
}

int smalti_device_attend_heads(struct smalti_device *device, const struct attend_heads_memories *data,
			       const struct attend_heads_arguments *a, struct smalti_error *error)
{
	const int64_t columns = a->heads * a->head_dim;
	if (fuses(device, a))
		return attend_fused(device, data, a, error);
	const enum smalti_dtype dtype = makes_heads(device, a) ? a->compute : SMALTI_F32;
	const struct smalti_device_memory *all = smalti_device_scratch(
	    device, SMALTI_DEVICE_PRODUCT, 3 * a->tokens * columns * smalti_dtype_bytes(dtype), error);
	const struct smalti_device_matrix to[3] = {{all, 0, 3 * columns, dtype},
						   {all, columns, 3 * columns, dtype},
						   {all, 2 * columns, 3 * columns, dtype}};
	if (!all || project_heads(device, data, a, to, error) < 0)
		return -1;
	const struct attend_arguments attend = {
	    .queries = a->tokens,
	    .heads = a->heads,
	    .head_dim = a->head_dim,
	    .q_stride = 3 * columns,
	    .kv_stride = 3 * columns,
	    .k_first = columns,
	    .v_first = 2 * columns,
	    .keys = {data->starts ? 0 : a->tokens - a->padding},
	    .captions = data->starts ? a->captions : 0,
	    .bias_first = a->first_head,
	    .bias_length = 2 * a->bias_reach - 1,
	    .bias_origin = a->bias_reach - 1,
	    .dtype = dtype,
	    .y_dtype = a->compute,
	    .scale = 1,
	    .first = true,
	    .last = true,
	};
	const struct smalti_attend_buffers buffers = {
	    .q = all, .kv = {all}, .bias = data->bias, .y = data->y, .starts = data->starts};
	return smalti_device_attend(device, &attend, &buffers, error);
}

/* Tells whether products make both factors in the result's 16 bits, and the gate's GELU. */
static bool makes_factors(const struct smalti_device *device, const struct geglu_arguments *a,
			  enum smalti_dtype operands)
{
	const struct smalti_device_product product = {.rows = a->rows,
						      .in = a->in,
						      .out = a->columns,
						      .gelu = true,
						      .dtype = operands,
						      .result = a->result};
	return !a->rounds_x && a->result != SMALTI_F32 && smalti_device_makes(device, &product);
}

int smalti_device_geglu(struct smalti_device *device, const struct geglu_memories *data,
			const struct geglu_arguments *a, struct smalti_error *error)
{
	struct projection p = {.rows = a->rows,
			       .in = a->in,
			       .first = a->first,
			       .out = a->columns,
			       .compute = a->compute,
			       .rounds_x = a->rounds_x};
	if (prepare(device, data->x, &p, error) < 0)
		return -1;
	const bool made = makes_factors(device, a, p.x.dtype);
	const enum smalti_dtype result = made ? a->result : SMALTI_F32;
	const int64_t bytes = a->rows * a->columns * smalti_dtype_bytes(result);
	const struct smalti_device_memory *gate =
	    smalti_device_scratch(device, SMALTI_DEVICE_FACTOR, bytes, error);
	const struct smalti_device_memory *z =
	    made ? data->y : smalti_device_scratch(device, SMALTI_DEVICE_PRODUCT, bytes, error);
	const struct smalti_device_matrix to[2] = {{gate, 0, a->columns, result}, {z, 0, a->columns, result}};
	if (!gate || !z ||
	    project(device, &p, data->gate, a->dtype[0], &to[0], made ? STORES_GELU : STORES, error) < 0 ||
	    project(device, &p, data->weight, a->dtype[1], &to[1], STORES, error) < 0)
		return -1;
	const struct smalti_device_memory *const buffers[] = {gate, z, data->y}, *const factors[] = {gate, z};
	if (made)
		return smalti_device_values(device, "multiply", SMALTI_DEVICE_FORM("multiply", a->result), 1,
					    a->rows * a->columns, factors, a, error);
	return smalti_device_values(device, "gelu_multiply", SMALTI_DEVICE_FORM("gelu_multiply", a->result),
				    1, a->rows * a->columns, buffers, a, error);
}

int smalti_device_sum_shards(struct smalti_device *device, const struct sum_shards_memories *data,
			     const struct sum_shards_arguments *a, struct smalti_error *error)
{
	const struct smalti_device_matrix y = {data->y, 0, a->columns, SMALTI_F32};
	struct smalti_device_matrix x, w;
	if (weight_rows(device, data->weight, a->first, a->columns, a->in, a->dtype, a->compute, &w, error) <
	    0)
		return -1;
	for (int i = 0; i < SMALTI_MANY && data->x[i]; w.first += a->x_columns[i++]) {
		const int64_t in = a->x_columns[i];
		const struct operand_arguments operand = {a->rows,    in,         0,         in,
							  a->compute, a->compute, a->compute};
		if (smalti_device_operand(device, SMALTI_DEVICE_X, data->x[i], &operand, &x, error) < 0 ||
		    multiply(device, a->rows, in, a->columns, &x, &w, &y, ADDS, error) < 0)
			return -1;
	}
	return 0;
}
