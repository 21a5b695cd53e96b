/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/op.h"
#include "rt/op_use.h"
#include "rt/task_group.h"

/* For recording.c and task_submit.c, which make tasks, task_run.c, which runs them, and the code that places
 * them. */

struct smalti_pool;
struct starpu_task;

/* The most distinct tiles of a task, and the most operations. */
enum { SMALTI_TASK_TILES = 1536, SMALTI_TASK_STEPS = SMALTI_DEVICE_OPERATIONS, SMALTI_NO_SLOT = -1 };

/* One operation of a task. */
struct smalti_step {
	int op;                           /* row of smalti_ops[] */
	int16_t slot[SMALTI_MAX_BUFFERS]; /* tile of each buffer; SMALTI_NO_SLOT: absent */
	_Alignas(16) unsigned char arguments[SMALTI_MAX_ARGUMENTS];
};

/* A tile that exists only in the task, from step `first` to step `last`. */
struct smalti_local {
	int64_t bytes;
	int first, last;
};

/* The data of a task; its locals follow the steps. */
struct smalti_message {
	struct smalti_task_group *task_group;
	struct smalti_position position;
	double flops;
	double work;             /* for task_times.c */
	int64_t number;          /* for simulation.c */
	int64_t traced;          /* number in the trace */
	int64_t replayed;        /* number in the schedule that is replayed */
	bool did;                /* smalti_task_group_task_did() was called */
	uint32_t avoided;        /* bit n: the device of memory node n, lost before the task was submitted */
	double seconds;          /* that the task took */
	double began, predicted; /* of a device's task: when it was submitted, and how long it should take */
	int tiles, locals;       /* slots below `tiles` are StarPU's buffers, the rest locals */
	int64_t local_bytes;     /* of the locals, which share memory in turn */
	int steps;
	struct smalti_step step[];
};

/* Returns the key of what a task's time depends on; tasks of one name and key are alike. */
uint32_t smalti_message_key(const struct smalti_message *message);

/* Run a task of any codelet on CPUs and on devices. */
void smalti_task_run_cpu(void *interfaces[], void *message);
void smalti_task_run_device(void *interfaces[], void *message);

/* How a kind of device runs steps: allocates locals, and calls an operation's function. */
struct smalti_executor {
	void *(*take)(void *user, int64_t bytes, struct smalti_error *error);
	void (*give)(void *user, void *memory);
	int (*run)(void *user, const struct smalti_step *step, void *const data[],
		   struct smalti_error *error);
	void *user;
};
/* Runs the steps. `slots`: the tiles' addresses; NULL for the locals. */
int smalti_task_run_steps(const struct smalti_message *message, const struct smalti_executor *executor,
			  void *slots[], struct smalti_error *error);

/* Returns the predicted seconds of the task that runs next on this worker; NAN: none. */
double smalti_task_predicted(const struct smalti_task_group *task_group);

/* Tells whether a device with this memory has room for a task that knows its tiles: StarPU would ask for ever
 * for memory that is not there. */
bool smalti_task_fits(const struct starpu_task *task, unsigned memory_node);
/* Counts a task that devices could run but for its size. Returns 0, or -1 with SMALTI_ENOMEM if its task
 * group keeps to devices, and devices work alone. */
int smalti_task_check_size(const struct starpu_task *task, struct smalti_error *error);

struct smalti_codelet;
struct starpu_codelet;
/* Returns the codelet of the op, or of fused tasks. */
struct starpu_codelet *smalti_task_codelet(struct smalti_codelet *codelets,
					   const struct smalti_message *message);

static inline const struct smalti_op *smalti_step_op(const struct smalti_step *step)
{
	return &smalti_ops[step->op];
}

static inline struct smalti_local *smalti_message_locals(const struct smalti_message *message)
{
	return (struct smalti_local *)(uintptr_t)(message->step + message->steps);
}

static inline size_t smalti_message_bytes(const struct smalti_message *message)
{
	return sizeof(*message) + (size_t)message->steps * sizeof(struct smalti_step) +
	       (size_t)message->locals * sizeof(struct smalti_local);
}

static inline int smalti_op_buffers(const struct smalti_op *op)
{
	int buffers = 0;
	for (int kind = 0; kind < op->buffer_kinds; kind++)
		buffers += op->buffers[kind].count;
	return buffers;
}
