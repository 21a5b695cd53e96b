/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/fibers.h"

#include "sanitized.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ucontext.h>
#include <vector>

#if SANITIZED
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(save, bottom, size)  ((void)0)
#define __sanitizer_finish_switch_fiber(save, bottom, size) ((void)0)
#endif

namespace
{
const size_t stack_bytes = 128 << 10;

/* Made once. It does threads one after another until one waits at a barrier. */
struct fiber {
	std::unique_ptr<char[]> stack{new char[stack_bytes]};
	ucontext_t beginning;
	jmp_buf place;
	bool begun = false, waits = false;
	unsigned thread = 0;
};

std::vector<std::unique_ptr<fiber>> fibers;
fiber *running;
jmp_buf caller;
[[maybe_unused]] const void *caller_stack;
[[maybe_unused]] size_t caller_bytes;

struct {
	void (*body)(void *);
	void *argument;
	unsigned threads, begun, ended;
	bool backwards;
} group;

/* Back to the caller until it enters this fiber again. */
void leave(fiber *self)
{
	[[maybe_unused]] void *fake;
	if (_setjmp(self->place) == 0) {
		__sanitizer_start_switch_fiber(&fake, caller_stack, caller_bytes);
		_longjmp(caller, 1);
	}
	__sanitizer_finish_switch_fiber(nullptr, &caller_stack, &caller_bytes);
}

void live()
{
	__sanitizer_finish_switch_fiber(nullptr, &caller_stack, &caller_bytes);
	for (fiber *self = running;; leave(self))
		while (group.begun < group.threads) {
			const unsigned number = group.begun++;
			self->thread = group.backwards ? group.threads - 1 - number : number;
			group.body(group.argument);
			group.ended++;
		}
}

void enter(fiber *next)
{
	[[maybe_unused]] void *fake;
	running = next;
	if (_setjmp(caller) == 0) {
		__sanitizer_start_switch_fiber(&fake, next->stack.get(), stack_bytes);
		if (next->begun)
			_longjmp(next->place, 1);
		next->begun = true;
		setcontext(&next->beginning);
	}
	__sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
}

fiber *fiber_at(unsigned number)
{
	if (number == fibers.size()) {
		auto made = std::make_unique<fiber>();
		getcontext(&made->beginning);
		made->beginning.uc_stack.ss_sp = made->stack.get();
		made->beginning.uc_stack.ss_size = stack_bytes;
		made->beginning.uc_link = nullptr;
		makecontext(&made->beginning, live, 0);
		fibers.push_back(std::move(made));
	}
	return fibers[number].get();
}

/* How many fibers wait at the first barrier. */
unsigned begin()
{
	unsigned waiting = 0;
	while (group.begun < group.threads) {
		enter(fiber_at(waiting));
		waiting += fibers[waiting]->waits;
	}
	return waiting;
}

/* All that wait go on to their next barrier, or their end; how many wait there. */
unsigned go_on(unsigned waiting)
{
	unsigned left = 0;
	group.backwards = !group.backwards;
	for (unsigned i = 0; i < waiting; i++) {
		fiber *next = fibers[group.backwards ? waiting - 1 - i : i].get();
		next->waits = false;
		enter(next);
		left += next->waits;
	}
	return left;
}
} // namespace

void standin_fibers(unsigned threads, void (*body)(void *argument), void *argument)
{
	group = {body, argument, threads, 0, 0, !group.backwards};
	for (unsigned waiting = begin(); waiting > 0; waiting = go_on(waiting))
		if (waiting < threads) {
			fprintf(stderr,
				"stand-in: %u of %u threads wait at a barrier for the others, which ended\n",
				waiting, threads);
			abort();
		}
}

unsigned standin_fiber(void)
{
	return running->thread;
}

void standin_barrier(void)
{
	running->waits = true;
	leave(running);
}
