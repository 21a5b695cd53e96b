/* SPDX-License-Identifier: Apache-2.0
 *
 * The device kernels, compiled for the CPU. */
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

struct standin_parameter {
	size_t bytes;
	bool is_pointer, is_map; /* standin_tensor_map */
};

struct standin_twin {
	const char *name;
	std::vector<standin_parameter> parameters;
	std::function<void(void *const *)> run_thread; /* with the addresses of the parameters */
};

/* NULL: none of that name. */
const standin_twin *standin_find_twin(const char *name);

/* Of a group's local memory, at most; and of that of the group that runs, what its launch asked for. @{ */
enum { STANDIN_MOST_SHARED = 227 << 10 };
extern size_t standin_shared_bytes;
/* @} */

/* One call at a time. */
void standin_run_twin(const standin_twin *twin, unsigned groups, unsigned threads, void *const *parameters,
		      size_t shared_bytes = 0);
