/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/cudnn_graph.h"

/* How cuDNN would execute an operation graph on the device that it is for. */

enum { SMALTI_CUDNN_PROPOSED = 8 };

/* Describes a device that need not be there, by JSON as cuDNN has it; NULL: cuDNN does not take it. */
cudnnBackendDescriptor_t smalti_cudnn_device(const char *json);

/* Says what engines have to be, beside giving the same bits again. */
struct smalti_cudnn_wish {
	bool exact; /* multiplies f32 as they are */
	bool ready; /* is not compiled for the shape, which takes a second or more */
};

/* Finds configurations of engines for a graph by cuDNN's heuristics, the best first. Returns how many; each
 * is the caller's. */
int smalti_cudnn_propose(const struct smalti_cudnn_graph *graph, struct smalti_cudnn_wish wish,
			 cudnnBackendDescriptor_t proposed[SMALTI_CUDNN_PROPOSED]);

/* Returns a plan by a configuration, which has to be kept as long; NULL: the engine does not do this there,
 * or not in so many bytes of workspace. */
cudnnBackendDescriptor_t smalti_cudnn_plan(const struct smalti_cudnn_graph *graph,
					   cudnnBackendDescriptor_t configuration, int64_t most_workspace);

/* A graph's tensors: their numbers and where they are. */
enum { SMALTI_CUDNN_TENSORS = 6 };
struct smalti_cudnn_tensors {
	int64_t numbers[SMALTI_CUDNN_TENSORS];
	const void *at[SMALTI_CUDNN_TENSORS];
	int count;
};

/* Hands a plan's work to the stream, of the handle's device. */
cudnnStatus_t smalti_cudnn_execute(cudnnHandle_t handle, cudaStream_t stream, cudnnBackendDescriptor_t plan,
				   const struct smalti_cudnn_tensors *tensors, void *workspace);

/* NULL is allowed. */
void smalti_cudnn_drop(cudnnBackendDescriptor_t descriptor);
