/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/train_pass.h"

static enum smalti_dtype compute_of(const struct smalti_dit_pass *pass,
				    const struct smalti_train_linear *linear)
{
	return linear->exact ? SMALTI_F32 : pass->train->compute;
}

static struct smalti_tile *weight_of(const struct smalti_dit_pass *pass,
				     const struct smalti_train_linear *linear)
{
	struct smalti_tile *rounded = pass->train->rounded[linear->weight];
	return rounded ? rounded : smalti_train_parameter(pass, linear->weight);
}

static enum smalti_dtype weight_dtype(const struct smalti_dit_pass *pass,
				      const struct smalti_train_linear *linear)
{
	return pass->train->rounded[linear->weight] ? pass->train->compute : SMALTI_F32;
}

enum { DENSE_ROWS = 64 }; /* with fewer rows the library is slower than a product that streams the weights */

static void multiply(const struct smalti_dit_pass *pass, const struct smalti_train_linear *linear,
		     struct smalti_train_rows x, enum smalti_dtype result, enum smalti_epilogue epilogue,
		     struct smalti_tile *y)
{
	const enum smalti_dtype compute = compute_of(pass, linear);
	smalti_insert(matmul_raw, pass->task_group,
		      (.x = x.tile, .part0 = weight_of(pass, linear),
		       .bias = linear->bias < 0 ? NULL : smalti_train_parameter(pass, linear->bias), .y = y),
		      .matmul = {.rows = x.rows,
				 .in = linear->in,
				 .out = linear->out,
				 .x_dtype = x.dtype,
				 .compute = compute,
				 .result = result,
				 .epilogue = epilogue},
		      .dtype = {weight_dtype(pass, linear)}, .part_out = {linear->out},
		      .dense = x.rows >= DENSE_ROWS);
}

struct smalti_tile *smalti_train_linear(const struct smalti_dit_pass *pass,
					const struct smalti_train_linear *linear, struct smalti_train_rows x,
					enum smalti_dtype result)
{
	struct smalti_tile *y =
	    smalti_tile_new(pass->task_group, x.rows, linear->out * smalti_dtype_bytes(result));
	multiply(pass, linear, x, result, SMALTI_EPILOGUE_NONE, y);
	return y;
}

struct smalti_tile *smalti_train_linear_sum(const struct smalti_dit_pass *pass,
					    const struct smalti_train_linear *linear,
					    struct smalti_train_rows x, struct smalti_tile *sum)
{
	if (!sum)
		return smalti_train_linear(pass, linear, x, SMALTI_F32);
	multiply(pass, linear, x, SMALTI_F32, SMALTI_EPILOGUE_ADD, sum);
	return sum;
}

void smalti_train_linear_weight(const struct smalti_dit_pass *pass, const struct smalti_train_linear *linear,
				struct smalti_tile *gy, struct smalti_train_rows x, bool add)
{
	smalti_insert(linear_weight, pass->task_group,
		      (.gy = gy, .x = x.tile, .gweight = pass->here->gradients[linear->weight],
		       .gbias = linear->bias < 0 ? NULL : pass->here->gradients[linear->bias]),
		      .rows = x.rows, .in = linear->in, .out = linear->out, .stride = linear->out,
		      .dtype = x.dtype, .compute = compute_of(pass, linear), .add = add || pass->add);
}

void smalti_train_linear_input(const struct smalti_dit_pass *pass, const struct smalti_train_linear *linear,
			       struct smalti_tile *gy, int64_t rows, bool add, struct smalti_tile *gx)
{
	smalti_insert(linear_input, pass->task_group, (.gy = gy, .weight = weight_of(pass, linear), .gx = gx),
		      .rows = rows, .in = linear->in, .out = linear->out, .stride = linear->out,
		      .dtype = weight_dtype(pass, linear), .compute = compute_of(pass, linear), .add = add);
}

static struct smalti_train_rows activate(const struct smalti_dit_pass *pass,
					 const struct smalti_train_mlp *mlp, int64_t rows,
					 struct smalti_tile *hidden)
{
	const int64_t count = rows * mlp->second.in;
	const enum smalti_dtype dtype = mlp->gelu ? compute_of(pass, &mlp->second) : SMALTI_F32;
	struct smalti_tile *y =
	    smalti_tile_new(pass->task_group, rows, mlp->second.in * smalti_dtype_bytes(dtype));
	if (mlp->gelu)
		smalti_insert(gelu, pass->task_group, (.x = hidden, .y = y), .count = count, .dtype = dtype);
	else
		smalti_insert(silu, pass->task_group, (.x = hidden, .y = y), .count = count);
	return (struct smalti_train_rows){y, rows, dtype};
}

struct smalti_tile *smalti_train_mlp(const struct smalti_dit_pass *pass, const struct smalti_train_mlp *mlp,
				     struct smalti_train_rows x, struct smalti_tile **hidden,
				     struct smalti_tile *sum)
{
	*hidden = smalti_train_linear(pass, &mlp->first, x, SMALTI_F32);
	const struct smalti_train_rows activated = activate(pass, mlp, x.rows, *hidden);
	struct smalti_tile *y = smalti_train_linear_sum(pass, &mlp->second, activated, sum);
	smalti_tile_release(activated.tile);
	return y;
}

void smalti_train_mlp_backward(const struct smalti_dit_pass *pass, const struct smalti_train_mlp *mlp,
			       struct smalti_train_rows x, struct smalti_tile *hidden, struct smalti_tile *gy,
			       bool add, bool add_input, struct smalti_tile *gx)
{
	const int64_t count = x.rows * mlp->second.in;
	const struct smalti_train_rows activated = activate(pass, mlp, x.rows, hidden);
	struct smalti_tile *ghidden = smalti_train_tile(pass, x.rows, mlp->second.in);
	smalti_train_linear_weight(pass, &mlp->second, gy, activated, add);
	smalti_tile_release(activated.tile);
	smalti_train_linear_input(pass, &mlp->second, gy, x.rows, false, ghidden);
	if (mlp->gelu)
		smalti_insert(gelu_backward, pass->task_group, (.x = hidden, .g = ghidden), .count = count);
	else
		smalti_insert(silu_backward, pass->task_group, (.x = hidden, .g = ghidden), .count = count);
	smalti_train_linear_weight(pass, &mlp->first, ghidden, x, add);
	if (gx)
		smalti_train_linear_input(pass, &mlp->first, ghidden, x.rows, add_input, gx);
	smalti_tile_release(ghidden);
}
