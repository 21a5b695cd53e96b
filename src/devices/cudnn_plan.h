/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "devices/cudnn_graph.h"

/* Plans: how cuDNN would execute an operation graph on its target device. */

enum { SMALTI_CUDNN_PROPOSED = 8 };

/* Describes a device that need not exist, by cuDNN's JSON; NULL: cuDNN does not accept it. */
cudnnBackendDescriptor_t smalti_cudnn_device(const char *json);

/* Required properties of engines, beside reproducible bits. */
struct smalti_cudnn_wish {
	bool exact; /* multiplies f32 as they are */
	bool ready; /* needs no compilation for the shape, which takes a second or more */
};

/* Finds engine configurations for a graph by cuDNN's heuristics, the best first. Returns how many; the caller
 * owns each. */
int smalti_cudnn_propose(const struct smalti_cudnn_graph *graph, struct smalti_cudnn_wish wish,
			 cudnnBackendDescriptor_t proposed[SMALTI_CUDNN_PROPOSED]);

/* Makes a plan of a configuration, which must outlive it. NULL: the engine cannot do this there, or needs
 * more than `max_workspace` bytes of workspace. */
cudnnBackendDescriptor_t smalti_cudnn_plan(const struct smalti_cudnn_graph *graph,
					   cudnnBackendDescriptor_t configuration, int64_t max_workspace);

/* A graph's tensors: their numbers and addresses. */
enum { SMALTI_CUDNN_TENSORS = 6 };
struct smalti_cudnn_tensors {
	int64_t numbers[SMALTI_CUDNN_TENSORS];
	const void *at[SMALTI_CUDNN_TENSORS];
	int count;
};

/* Runs a plan on the stream, which belongs to the handle's device. */
cudnnStatus_t smalti_cudnn_execute(cudnnHandle_t handle, cudaStream_t stream, cudnnBackendDescriptor_t plan,
				   const struct smalti_cudnn_tensors *tensors, void *workspace);

/* Destroys it. NULL is allowed. */
void smalti_cudnn_drop(cudnnBackendDescriptor_t descriptor);
