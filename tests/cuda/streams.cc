/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/streams.h"

#include "cuda/memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

std::recursive_mutex standin_turn;

static std::vector<standin_stream *> streams;

struct standin_calls standin_calls;

standin_calls::~standin_calls()
{
	const char *const path = getenv("SMALTI_STANDIN_CALLS");
	FILE *const file = path ? fopen(path, "a") : nullptr;
	if (!file)
		return;
	fprintf(file, "calls %ld graphs %ld nodes %ld\n", calls.load(), graphs.load(), nodes.load());
	fclose(file);
}

standin_stream *standin_new_stream(int device, bool waits_for_default)
{
	streams.push_back(new standin_stream{device, waits_for_default, {}, nullptr, false});
	return streams.back();
}

void standin_free_stream(standin_stream *stream)
{
	standin_run_all(stream);
	streams.erase(std::find(streams.begin(), streams.end(), stream));
	delete stream;
}

static void execute(standin_stream *stream, std::function<void()> step)
{
	stream->steps.push_back([step = std::move(step)] {
		step();
		return true;
	});
}

void standin_add_step(standin_stream *stream, std::function<void()> step)
{
	if (stream->records) {
		standin_graph &graph = *stream->records;
		graph.steps.push_back(std::move(step));
		graph.edges.push_back(std::exchange(graph.behind, {graph.steps.size() - 1}));
		return;
	}
	standin_calls.calls++;
	execute(stream, std::move(step));
}

/* Returns the steps in an order that a device may take: of those that may come next the last one, so that a
 * step whose edges are missing comes too early. */
static std::vector<size_t> order(const standin_graph &graph)
{
	const size_t count = graph.steps.size();
	std::vector<size_t> missing(count), order;
	std::vector<std::vector<size_t>> followers(count);
	std::set<size_t> ready;
	for (size_t step = 0; step < count; step++) {
		missing[step] = graph.edges[step].size();
		for (const size_t before : graph.edges[step])
			followers[before].push_back(step);
		if (missing[step] == 0)
			ready.insert(step);
	}
	while (!ready.empty()) {
		const size_t step = *ready.rbegin();
		ready.erase(step);
		order.push_back(step);
		for (const size_t follower : followers[step])
			if (--missing[follower] == 0)
				ready.insert(follower);
	}
	return order;
}

void standin_add_graph(standin_stream *stream, const standin_graph &graph)
{
	standin_calls.calls++;
	standin_calls.graphs++;
	standin_calls.nodes += static_cast<long>(graph.steps.size());
	for (const size_t step : order(graph))
		execute(stream, graph.steps[step]);
}

standin_stream *&standin_recording()
{
	static thread_local standin_stream *stream;
	return stream;
}

void standin_run_step(standin_stream *stream)
{
	if (stream->steps.empty())
		return;
	if (standin_lost("step", stream->device))
		stream->steps.clear();
	else if (stream->steps.front()())
		stream->steps.pop_front();
}

void standin_run_all(standin_stream *stream)
{
	while (!stream->steps.empty())
		standin_run_step(stream);
}

void standin_run_device(int device, bool with_independent)
{
	for (standin_stream *stream : streams)
		if (stream->device == device && (with_independent || stream->waits_for_default))
			standin_run_all(stream);
}

void standin_record(const standin_event_pointer &event, standin_stream *stream)
{
	const long number = ++event->recorded;
	event->stream = stream;
	execute(stream, [event, number] { event->passed = std::max(event->passed, number); });
}

void standin_wait(standin_stream *stream, const standin_event_pointer &event)
{
	const long number = event->recorded;
	standin_stream *other = event->stream;
	stream->steps.push_back([event, number, other] {
		if (event->passed < number)
			standin_run_step(other);
		return event->passed >= number || other->steps.empty();
	});
}

bool standin_is_done(const standin_event_pointer &event)
{
	return event->passed >= event->recorded;
}
