/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <smalti/session.h>
#include <stdbool.h>

/** @file
 * What a session runs on: the machine as hwloc sees it, StarPU's workers and memory nodes on it, how fast
 * they are measured to be, and which library does what. Indices are hwloc's logical ones.
 *
 * Threads: what was read is the caller's; one thread reads at a time.
 */

SMALTI_BEGIN_DECLS

/** Equal caches, counted. */
struct smalti_topology_cache {
	int64_t level;
	char kind[12]; /**< "unified", "data" or "instruction" */
	int64_t bytes; /**< of one of them */
	int64_t count;
};

struct smalti_topology_numa {
	int64_t node;
	int64_t bytes; /**< 0: not known */
	int64_t cores; /**< that are near to it */
};

/** A PCI display device or accelerator, whether or not a worker drives it. */
struct smalti_topology_gpu {
	char name[128];   /**< vendor and device; empty: not known */
	char bus[24];     /**< "0000:3b:00.0" */
	char devices[64]; /**< the operating system's and drivers' names, by blanks: "cuda0 nvml0" */
};

struct smalti_topology_worker {
	char name[64];
	char kind[16];       /**< "CPU", "CUDA", ... */
	int64_t core;        /**< that it is bound to, -1: none */
	int64_t memory_node; /**< index into `memory_nodes` */
};

struct smalti_topology_memory_node {
	char name[64];
	int64_t bytes; /**< that may be filled; 0: not known */
};

/** StarPU's measurement of the bus from one memory node to another. */
struct smalti_topology_link {
	int64_t from, to; /**< indices into `memory_nodes` */
	double bandwidth; /**< bytes per second */
	double latency;   /**< seconds */
};

/** What CPU workers reach, all working at once, each on its own memory: the sum of each one's median over
 * many short pieces, so that time in which something else had the core does not count. Bytes are counted once
 * per load and once per store. */
struct smalti_topology_rate {
	int64_t workers;
	int64_t bytes; /**< the memory gone through, of all workers together */
	double read;   /**< bytes per second: sum of x */
	double copy;   /**< bytes per second: y = x, by memcpy() */
	double triad;  /**< bytes per second: z = x + a·y */
	double fma;    /**< f32 operations per second in registers; a multiplication and addition are two */
};

struct smalti_topology_library {
	char name[32];
	char version[64];
	char serves[128]; /**< what is done by it: "matmul, convolution" */
};

struct smalti_topology_policy {
	char name[64]; /**< as in smalti_session_options */
	char description[128];
	bool active; /**< in this session */
};

/** Arrays are owned by it, each followed by its length, and NULL when that is 0. */
struct smalti_topology {
	char cpu[128]; /**< model; empty: not known */
	int64_t packages, cores, threads;
	int64_t allowed_cores; /**< that the process may run on */
	int64_t memory;        /**< bytes that the process may hold: a control group or ulimit may allow less
				    than there is */
	char features[256];    /**< instruction sets of the CPU, by blanks; empty: not known */
	char isa[16];          /**< what the kernels use: "generic", "avx2", "avx512", "avx512_bf16", "amx" */
	char max_isa[16];      /**< the environment's SMALTI_MAX_ISA; empty: not limited */
	struct smalti_topology_cache *caches;
	int64_t cache_count;
	struct smalti_topology_numa *numa_nodes;
	int64_t numa_node_count;
	struct smalti_topology_gpu *gpus;
	int64_t gpu_count;
	struct smalti_topology_worker *workers;
	int64_t worker_count;
	struct smalti_topology_memory_node *memory_nodes;
	int64_t memory_node_count;
	struct smalti_topology_link *links;
	int64_t link_count;
	struct smalti_topology_rate *rates; /**< of one CPU worker, then of all, if there are more */
	int64_t rate_count;
	struct smalti_topology_library *libraries;
	int64_t library_count;
	struct smalti_topology_policy *policies;
	int64_t policy_count;
};

/** Reads and measures all of it, in less than a second; call it while the session has no other work. -1 with
 * SMALTI_ENOMEM, or with SMALTI_ENODEV where hwloc does not know the machine. Free with
 * smalti_topology_free(). */
int smalti_topology_read(struct smalti_session *session, struct smalti_topology **topology,
			 struct smalti_error *error);

/** NULL is allowed. */
void smalti_topology_free(struct smalti_topology *topology);

SMALTI_END_DECLS
