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

/* Returns NULL if none has that name. */
const standin_twin *standin_find_twin(const char *name);

/* The most local memory of a group, and the bytes of it that the running group's launch asked for. @{ */
enum { STANDIN_MOST_SHARED = 227 << 10 };
extern size_t standin_shared_bytes;
/* @} */

/* Runs a twin; one call at a time. */
void standin_run_twin(const standin_twin *twin, unsigned groups, unsigned threads, void *const *parameters,
		      size_t shared_bytes = 0);
