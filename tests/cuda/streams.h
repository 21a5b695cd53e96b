/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams that run as late as possible: one step for each question whether something is done, and all steps
 * where somebody waits. Callers hold standin_turn. */
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

extern std::recursive_mutex standin_turn;

/* Recorded commands, and for each the earlier ones that must be done before it; `behind`: those for the next
 * one. */
struct standin_graph {
	std::vector<std::function<void()>> steps;
	std::vector<std::vector<size_t>> edges;
	std::vector<size_t> behind;
};

struct standin_stream {
	int device;
	bool waits_for_default;                  /* and the default stream waits for it */
	std::deque<std::function<bool()>> steps; /* return whether they are done; the first is the next */
	standin_graph *records;                  /* NULL: it executes */
	bool spoiled;                            /* its recording is */
};

/* Counts the host's commands, graphs among them, and the commands of these; at the end the counts are
 * appended to the file that SMALTI_STANDIN_CALLS names. */
struct standin_calls {
	std::atomic<long> calls, graphs, nodes;
	~standin_calls();
};
extern standin_calls standin_calls;

struct standin_event {
	standin_stream *stream; /* of the last record; NULL: none yet */
	long recorded, passed;
};

standin_stream *standin_new_stream(int device, bool waits_for_default);
void standin_free_stream(standin_stream *stream); /* after its steps */
void standin_add_step(standin_stream *stream, std::function<void()> step);
/* Adds the commands of a graph. */
void standin_add_graph(standin_stream *stream, const standin_graph &graph);
/* Returns the stream that the calling thread records; NULL: none. */
standin_stream *&standin_recording();
void standin_run_step(standin_stream *stream);
void standin_run_all(standin_stream *stream);
/* Runs all streams of the device, or only those that the default stream waits for. */
void standin_run_device(int device, bool with_independent);

using standin_event_pointer = std::shared_ptr<standin_event>;
void standin_record(const standin_event_pointer &event, standin_stream *stream);
void standin_wait(standin_stream *stream, const standin_event_pointer &event);
bool standin_is_done(const standin_event_pointer &event);
