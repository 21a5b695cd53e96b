/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Plain data that are tasks' arguments. Device kernels include it, too; the including file defines
 * int64_t. */

struct smalti_adamw {
	double lr, betas[2], epsilon, weight_decay;
	double gradient_scale;
	int64_t step; /* from 1 on */
};

/* The factors of one update. */
struct smalti_adamw_factors {
	float gradient, decay, rate, root, epsilon;
	float new_mean, old_square, new_square; /* 1 − β₁, β₂, 1 − β₂ */
};

struct smalti_came {
	double lr, betas[3], epsilons[2], limit, weight_decay;
	double gradient_scale;
};

enum { SMALTI_CAME_PARTS = 3 };

/* One parameter, or several of equal shape that are stacked along their rows. `factored`: each is `batch`
 * matrices [rows, columns], whose second moments are kept as means over rows and columns; batch is 1 with
 * several parts. Otherwise second moments are kept for every element. */
struct smalti_came_shape {
	int parts;
	bool factored;
	int64_t batch, rows, columns;
};
