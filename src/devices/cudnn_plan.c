/* SPDX-License-Identifier: Apache-2.0 */
#include "devices/cudnn_plan.h"

#include <string.h>

static cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type)
{
	cudnnBackendDescriptor_t made = NULL;
	return cudnnBackendCreateDescriptor(type, &made) ? NULL : made;
}

void smalti_cudnn_drop(cudnnBackendDescriptor_t descriptor)
{
	if (descriptor)
		cudnnBackendDestroyDescriptor(descriptor);
}

static bool set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
		cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
	return descriptor && !cudnnBackendSetAttribute(descriptor, name, type, count, values);
}

static bool finish(cudnnBackendDescriptor_t descriptor)
{
	return !cudnnBackendFinalize(descriptor);
}

cudnnBackendDescriptor_t smalti_cudnn_device(const char *json)
{
	cudnnBackendDescriptor_t device = make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
	if (set(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(json),
		json) &&
	    finish(device))
		return device;
	smalti_cudnn_drop(device);
	return NULL;
}

/* Tells whether an engine has a numerical or behaviour note; also true if it does not say. */
static bool has_note(cudnnBackendDescriptor_t engine, cudnnBackendAttributeName_t name,
		     cudnnBackendAttributeType_t type, int note)
{
	enum { MOST = 64 };
	int notes[MOST]; /* of either enumeration */
	int64_t count = 0;
	if (cudnnBackendGetAttribute(engine, name, type, MOST, &count, notes))
		return true;
	for (int64_t i = 0; i < count; i++)
		if (notes[i] == note)
			return true;
	return false;
}

static bool has_numerical_note(cudnnBackendDescriptor_t engine, cudnnBackendNumericalNote_t note)
{
	return has_note(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, note);
}

static bool repeats(cudnnBackendDescriptor_t engine)
{
	return !has_numerical_note(engine, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
}

static bool is_exact(cudnnBackendDescriptor_t engine)
{
	return !has_numerical_note(engine, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) &&
	       !has_numerical_note(engine, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
}

static bool is_ready(cudnnBackendDescriptor_t engine)
{
	return !has_note(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
			 CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
}

static bool suits(cudnnBackendDescriptor_t configuration, struct smalti_cudnn_wish wish)
{
	cudnnBackendDescriptor_t engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
	int64_t count = 0;
	const bool suited = engine &&
			    !cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE,
						      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine) &&
			    repeats(engine) && (!wish.exact || is_exact(engine)) &&
			    (!wish.ready || is_ready(engine));
	smalti_cudnn_drop(engine);
	return suited;
}

/* Fills in what a heuristic finds, at most `max`; returns how many. */
static int64_t ask(const struct smalti_cudnn_graph *graph, cudnnBackendHeurMode_t mode, int64_t max,
		   cudnnBackendDescriptor_t *found)
{
	cudnnBackendDescriptor_t heuristic = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	int64_t count = 0;
	const bool asked =
	    set(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
		&graph->whole) &&
	    set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode) &&
	    (!graph->target.device || set(heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
					  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->target.device)) &&
	    finish(heuristic) &&
	    !cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
				      max, &count, found);
	smalti_cudnn_drop(heuristic);
	return asked ? count : 0;
}

/* Adds the suitable configurations of a heuristic mode to the `count` in `proposed`; returns the new
 * count. */
static int propose(const struct smalti_cudnn_graph *graph, cudnnBackendHeurMode_t mode,
		   struct smalti_cudnn_wish wish, int count, cudnnBackendDescriptor_t *proposed)
{
	cudnnBackendDescriptor_t found[SMALTI_CUDNN_PROPOSED];
	for (int i = 0; i < SMALTI_CUDNN_PROPOSED; i++)
		found[i] = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	const int64_t answers = ask(graph, mode, SMALTI_CUDNN_PROPOSED, found);
	for (int i = 0; i < SMALTI_CUDNN_PROPOSED; i++)
		if (i < answers && count < SMALTI_CUDNN_PROPOSED && suits(found[i], wish))
			proposed[count++] = found[i];
		else
			smalti_cudnn_drop(found[i]);
	return count;
}

int smalti_cudnn_propose(const struct smalti_cudnn_graph *graph, struct smalti_cudnn_wish wish,
			 cudnnBackendDescriptor_t proposed[SMALTI_CUDNN_PROPOSED])
{
	const int count = propose(graph, CUDNN_HEUR_MODE_A, wish, 0, proposed);
	return propose(graph, CUDNN_HEUR_MODE_FALLBACK, wish, count, proposed);
}

cudnnBackendDescriptor_t smalti_cudnn_plan(const struct smalti_cudnn_graph *graph,
					   cudnnBackendDescriptor_t configuration, int64_t max_workspace)
{
	const struct smalti_cudnn_target *target = &graph->target;
	cudnnBackendDescriptor_t plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	int64_t count = 0, bytes = 0;
	if ((target->handle
		 ? set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target->handle)
		 : set(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
		       &target->device)) &&
	    set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
		&configuration) &&
	    finish(plan) &&
	    !cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
				      &count, &bytes) &&
	    bytes <= max_workspace)
		return plan;
	smalti_cudnn_drop(plan);
	return NULL;
}

cudnnStatus_t smalti_cudnn_execute(cudnnHandle_t handle, cudaStream_t stream, cudnnBackendDescriptor_t plan,
				   const struct smalti_cudnn_tensors *tensors, void *workspace)
{
	cudnnBackendDescriptor_t pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
	cudnnStatus_t status = CUDNN_STATUS_INTERNAL_ERROR;
	if (set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, tensors->count,
		tensors->numbers) &&
	    set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, tensors->count,
		tensors->at) &&
	    set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace) && finish(pack))
		status = cudnnSetStream(handle, stream);
	if (!status)
		status = cudnnBackendExecute(handle, plan, pack);
	smalti_cudnn_drop(pack);
	return status;
}
