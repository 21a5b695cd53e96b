/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/onednn.h"
#include "kernels/isa.h"
#include "kernels/scratch.h"

#include <dnnl_debug.h>

/* Functions of the OpenMP runtime that libdnnl is linked with; its header belongs to one compiler or another.
 */
extern void omp_set_num_threads(int count);
extern int omp_get_max_threads(void);

enum { PRIMITIVES = 128 };

struct primitive {
	struct smalti_onednn_key key;
	uint64_t used; /* the thread's clock at the last use; 0: an empty slot */
	dnnl_primitive_t primitive;
	dnnl_exec_arg_t arguments[SMALTI_ONEDNN_ARGUMENTS + 1]; /* the last is the scratchpad */
	int count;
	int64_t scratchpad; /* bytes */
};

struct thread {
	dnnl_stream_t stream;
	uint64_t clock;
	struct primitive primitives[PRIMITIVES];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine;
static dnnl_status_t engine_status;
static pthread_key_t thread_key;
static int key_status;

static void clear(struct primitive *slot)
{
	for (int i = 0; i < slot->count; i++)
		dnnl_memory_destroy(slot->arguments[i].memory);
	dnnl_primitive_destroy(slot->primitive);
	memset(slot, 0, sizeof(*slot));
}

static void release_thread(void *value)
{
	struct thread *thread = value;
	for (int i = 0; i < PRIMITIVES; i++)
		clear(&thread->primitives[i]);
	dnnl_stream_destroy(thread->stream);
	free(thread);
}

static void set_up(void)
{
	smalti_isa(); /* limits oneDNN, which must come before its first use */
	engine_status = dnnl_engine_create(&engine, dnnl_cpu, 0);
	key_status = pthread_key_create(&thread_key, release_thread);
}

int smalti_onednn_check(dnnl_status_t status, const char *what, struct smalti_error *error)
{
	if (status == dnnl_success)
		return 0;
	enum smalti_code code = status == dnnl_out_of_memory   ? SMALTI_ENOMEM
				: status == dnnl_unimplemented ? SMALTI_EUNSUPPORTED
							       : SMALTI_EINVAL;
	return smalti_fail(error, code, "oneDNN %d.%d: %s: %s", dnnl_version()->major, dnnl_version()->minor,
			   what, dnnl_status2str(status));
}

int smalti_onednn_enter(void)
{
	const int before = omp_get_max_threads();
	omp_set_num_threads(1);
	return before;
}

void smalti_onednn_leave_scoped(const int *threads_before)
{
	omp_set_num_threads(*threads_before);
}

dnnl_engine_t smalti_onednn_engine(struct smalti_error *error)
{
	pthread_once(&once, set_up);
	return smalti_onednn_check(engine_status, "cannot open the CPU", error) ? NULL : engine;
}

static struct thread *this_thread(struct smalti_error *error)
{
	if (!smalti_onednn_engine(error))
		return NULL;
	struct thread *thread = key_status ? NULL : pthread_getspecific(thread_key);
	if (thread)
		return thread;
	thread = smalti_calloc(1, sizeof(*thread), error);
	if (!thread)
		return NULL;
	if (smalti_onednn_check(dnnl_stream_create(&thread->stream, engine, dnnl_stream_default_flags),
				"cannot make a stream", error)) {
		free(thread);
		return NULL;
	}
	if (key_status || pthread_setspecific(thread_key, thread)) {
		smalti_fail(error, SMALTI_ENOMEM, "no thread-specific memory is left for oneDNN");
		release_thread(thread);
		return NULL;
	}
	return thread;
}

dnnl_stream_t smalti_onednn_stream(struct smalti_error *error)
{
	struct thread *thread = this_thread(error);
	return thread ? thread->stream : NULL;
}

/* Returns the slot of that key, else an empty one: the least recently used is cleared. */
static struct primitive *find(struct thread *thread, const struct smalti_onednn_key *key)
{
	struct primitive *oldest = &thread->primitives[0];
	for (int i = 0; i < PRIMITIVES; i++) {
		struct primitive *slot = &thread->primitives[i];
		if (slot->used && !memcmp(&slot->key, key, sizeof(*key)))
			return slot;
		if (slot->used < oldest->used)
			oldest = slot;
	}
	clear(oldest);
	return oldest;
}

static int add_argument(struct primitive *slot, const_dnnl_primitive_desc_t description, int index,
			struct smalti_error *error)
{
	smalti_const_layout layout = dnnl_primitive_desc_query_md(description, dnnl_query_exec_arg_md, index);
	dnnl_exec_arg_t *argument = &slot->arguments[slot->count];
	argument->arg = index;
	if (smalti_onednn_check(dnnl_memory_create(&argument->memory, layout, engine, DNNL_MEMORY_NONE),
				"cannot describe an argument", error))
		return -1;
	slot->count++;
	return 0;
}

/* Fills the slot by what the primitive itself needs: oneDNN may have had one for an equal description, whose
 * scratchpad is another. Descriptions are equal to it whatever the distance between rows is if there is one
 * row, so that the two layouts of a vector share a primitive that reads it either way. */
static int fill(struct primitive *slot, const_dnnl_primitive_desc_t description,
		const struct smalti_onednn_argument *arguments, int count, struct smalti_error *error)
{
	dnnl_status_t status = dnnl_primitive_create(&slot->primitive, description);
	if (!status)
		status = dnnl_primitive_get_primitive_desc(slot->primitive, &description);
	if (smalti_onednn_check(status, "cannot make a primitive", error))
		return -1;
	for (int i = 0; i < count; i++)
		if (add_argument(slot, description, arguments[i].index, error))
			return -1;
	slot->scratchpad = (int64_t)dnnl_memory_desc_get_size(
	    dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0));
	return slot->scratchpad ? add_argument(slot, description, DNNL_ARG_SCRATCHPAD, error) : 0;
}

static int create(struct primitive *slot, smalti_onednn_describe *describe, const void *context,
		  const struct smalti_onednn_argument *arguments, int count, struct smalti_error *error)
{
	dnnl_primitive_attr_t attributes = NULL;
	dnnl_primitive_desc_t description = NULL;
	int status = smalti_onednn_check(dnnl_primitive_attr_create(&attributes), "no attributes", error);
	if (!status)
		status = smalti_onednn_check(
		    dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user),
		    "no scratchpad of the user's", error);
	if (!status)
		status = describe(context, engine, attributes, &description, error);
	if (!status)
		status = fill(slot, description, arguments, count, error);
	dnnl_primitive_desc_destroy(description);
	dnnl_primitive_attr_destroy(attributes);
	if (status)
		clear(slot);
	return status;
}

dnnl_status_t smalti_onednn_add_to_result(dnnl_primitive_attr_t attributes)
{
	dnnl_post_ops_t ops;
	dnnl_status_t status = dnnl_post_ops_create(&ops);
	if (status)
		return status;
	status = smalti_onednn_append_sum(ops);
	if (!status)
		status = dnnl_primitive_attr_set_post_ops(attributes, ops);
	dnnl_post_ops_destroy(ops);
	return status;
}

int smalti_onednn_run(const struct smalti_onednn_key *key, smalti_onednn_describe *describe,
		      const void *context, const struct smalti_onednn_argument *arguments, int count,
		      struct smalti_error *error)
{
	ALONE_IN_ONEDNN;
	struct thread *thread = this_thread(error);
	if (!thread)
		return -1;
	struct primitive *slot = find(thread, key);
	if (!slot->used && create(slot, describe, context, arguments, count, error))
		return -1;
	slot->key = *key;
	slot->used = ++thread->clock;
	for (int i = 0; i < count; i++)
		dnnl_memory_set_data_handle(slot->arguments[i].memory, (void *)(uintptr_t)arguments[i].data);
	if (slot->scratchpad) {
		void *scratchpad = smalti_scratch(SMALTI_SCRATCH_LIBRARY, slot->scratchpad, error);
		if (!scratchpad)
			return -1;
		dnnl_memory_set_data_handle(slot->arguments[count].memory, scratchpad);
	}
	return smalti_onednn_check(
	    dnnl_primitive_execute(slot->primitive, thread->stream, slot->count, slot->arguments),
	    "a primitive failed", error);
}
