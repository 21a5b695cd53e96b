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

/* Made once. It runs threads one after another until one waits at a barrier. */
struct fiber {
	std::unique_ptr<char[]> stack{new char[stack_bytes]};
	ucontext_t beginning;
	jmp_buf place;
	bool begun = false, waits = false;
	bool (*ready)(void *) = nullptr; /* what it waits for; NULL: the barrier */
	void *argument = nullptr;
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
	bool idle; /* no fiber could go on */
} group;

/* Returns to the caller until it enters this fiber again. */
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

/* Begins all threads; returns how many fibers wait when no thread can go on. */
unsigned begin()
{
	unsigned waiting = 0;
	while (group.begun < group.threads) {
		enter(fiber_at(waiting));
		waiting += fibers[waiting]->waits;
	}
	return waiting;
}

/* Counts the waiting fibers: at a barrier, or for anything. */
unsigned count_waiting(unsigned fibers_begun, bool at_barrier)
{
	unsigned waiting = 0;
	for (unsigned i = 0; i < fibers_begun; i++)
		waiting += fibers[i]->waits && !(at_barrier && fibers[i]->ready);
	return waiting;
}

/* Tells whether no fiber could go on, so that one that lets others may. */
bool is_last(void *)
{
	return group.idle;
}

/* Lets all fibers go on that may, to their next wait or their end; returns how many did. */
unsigned go_on(unsigned fibers_begun)
{
	const bool met = count_waiting(fibers_begun, true) == group.threads;
	unsigned went = 0;
	group.backwards = !group.backwards;
	for (unsigned i = 0; i < fibers_begun; i++) {
		fiber *next = fibers[group.backwards ? fibers_begun - 1 - i : i].get();
		if (!next->waits || !(next->ready ? next->ready(next->argument) : met))
			continue;
		next->waits = false;
		enter(next);
		went++;
	}
	group.idle = went == 0 && !group.idle;
	return went;
}

void wait_for(bool (*ready)(void *), void *argument)
{
	running->waits = true;
	running->ready = ready;
	running->argument = argument;
	leave(running);
}
} // namespace

void standin_fibers(unsigned threads, void (*body)(void *argument), void *argument)
{
	group = {body, argument, threads, 0, 0, !group.backwards, false};
	const unsigned fibers_begun = begin();
	while (count_waiting(fibers_begun, false) > 0)
		if (go_on(fibers_begun) == 0 && !group.idle) {
			fprintf(
			    stderr,
			    "stand-in: of %u threads %u wait at a barrier, and %u for what does not come; "
			    "the others have ended\n",
			    threads, count_waiting(fibers_begun, true),
			    count_waiting(fibers_begun, false) - count_waiting(fibers_begun, true));
			abort();
		}
}

unsigned standin_fiber(void)
{
	return running->thread;
}

void standin_barrier(void)
{
	wait_for(nullptr, nullptr);
}

void standin_wait_until(bool (*ready)(void *argument), void *argument)
{
	if (!ready(argument))
		wait_for(ready, argument);
}

void standin_let_others(void)
{
	wait_for(is_last, nullptr);
}
