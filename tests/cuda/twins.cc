/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/twins.h"

#include <utility>

/* Each kernel of CAME gets all parameters, used or not. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "kernels/device/program.cl"

#include "kernels/device/hopper.cl"

#if SANITIZED
static void fill_shared()
{
}
#else
/* Where the linker puts __shared__ variables. */
extern "C" char __start_standin_shared[] __attribute__((visibility("hidden")));
extern "C" char __stop_standin_shared[] __attribute__((visibility("hidden")));

/* Fills them with NaN. */
static void fill_shared()
{
	memset(__start_standin_shared, 0xff, __stop_standin_shared - __start_standin_shared);
}
#endif

namespace
{
template <typename... P, size_t... I>
void call(void (*kernel)(P...), void *const *parameters, std::index_sequence<I...>)
{
	kernel(*static_cast<std::remove_reference_t<P> *>(parameters[I])...);
}

template <typename... P> standin_twin make_twin(const char *name, void (*kernel)(P...))
{
	return {
	    name,
	    {{sizeof(P), std::is_pointer_v<P>, std::is_same_v<P, standin_tensor_map>}...},
	    [kernel](void *const *parameters) { call(kernel, parameters, std::index_sequence_for<P...>()); }};
}

#define KERNEL_OF(name) make_twin(#name, name),
const standin_twin twins[] = {
#include "cuda/kernels.def"
};

struct group {
	const standin_twin *twin;
	void *const *parameters;
};

void run_thread(void *argument)
{
	const group *group = static_cast<struct group *>(argument);
	group->twin->run_thread(group->parameters);
}
} // namespace

size_t standin_shared_bytes;

const standin_twin *standin_find_twin(const char *name)
{
	for (const standin_twin &twin : twins)
		if (strcmp(twin.name, name) == 0)
			return &twin;
	return nullptr;
}

/* Runs the groups in one order, and the next time in the opposite one: kernels must not depend on it. */
void standin_run_twin(const standin_twin *twin, unsigned groups, unsigned threads, void *const *parameters,
		      size_t shared_bytes)
{
	static bool backwards;
	group group = {twin, parameters};
	standin_shared_bytes = shared_bytes;
	gridDim.x = groups;
	blockDim.x = threads;
	for (unsigned i = 0; i < groups; i++) {
		blockIdx.x = backwards ? groups - 1 - i : i;
		fill_shared();
		standin_fibers(threads, run_thread, &group);
	}
	backwards = !backwards;
}
