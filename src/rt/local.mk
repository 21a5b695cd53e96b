libcore_la_SOURCES += \
	src/rt/cgroup.c src/rt/cgroup.h \
	src/rt/counting.c src/rt/counting.h \
	src/rt/device.c src/rt/device.h src/rt/device_driver.h src/rt/device_memory.c \
	src/rt/device_use.c src/rt/device_use.h \
	src/rt/devices_alone.c src/rt/devices_alone.h \
	src/rt/environment.c src/rt/environment.h \
	src/rt/grid.c src/rt/grid.h \
	src/rt/lost.c src/rt/lost.h \
	src/rt/task_transfers.c src/rt/task_transfers.h \
	src/rt/perf_directory.c src/rt/perf_directory.h \
	src/rt/place_facts.c src/rt/place_facts.h \
	src/rt/places.c src/rt/places.h \
	src/rt/order.c src/rt/order.h \
	src/rt/policies.c src/rt/policies.h \
	src/rt/pool.c src/rt/pool.h \
	src/rt/rank_facts.c src/rt/rank_facts.h \
	src/rt/ranks.h \
	src/rt/rates.c src/rt/rates.h \
	src/rt/placeholder.c src/rt/placeholder.h \
	src/rt/replay.c src/rt/replay.h \
	src/rt/reproducible.c src/rt/reproducible.h \
	src/rt/task_group.c src/rt/task_group.h \
	src/rt/session.c src/rt/session.h \
	src/rt/machine.h src/rt/simulation.h src/rt/task_times.h \
	src/rt/scratch.c src/rt/scratch.h \
	src/rt/session_open.c \
	src/rt/slowdown.c src/rt/slowdown.h \
	src/rt/observer.h src/rt/op.c src/rt/op.h src/rt/op_use.c src/rt/op_use.h src/rt/task.c src/rt/task.h \
	src/rt/task_codelets.c src/rt/task_message.h src/rt/task_run.c \
	src/rt/task_run_device.c \
	src/rt/lanes.c src/rt/lanes.h \
	src/rt/threads.c src/rt/threads.h \
	src/rt/throttle.c src/rt/throttle.h \
	src/rt/tile.c src/rt/tile.h \
	src/rt/tile_forms.c src/rt/tile_forms.h \
	src/rt/tile_memory.c src/rt/tile_memory.h \
	src/rt/tile_uses.c src/rt/tile_uses.h \
	src/rt/recent.c src/rt/recent.h \
	src/rt/trace.c src/rt/trace.h \
	src/rt/wait.c src/rt/wait.h \
	src/rt/transfers.c src/rt/transfers.h
if SIMGRID
libcore_la_SOURCES += src/rt/simulation.c
else
libcore_la_SOURCES += \
	src/rt/libraries.c \
	src/rt/machine.c \
	src/rt/measure.c \
	src/rt/task_times.c \
	src/rt/topology.c src/rt/topology.h \
	src/rt/topology_hwloc.c \
	src/rt/topology_starpu.c
endif
if MPI
libcore_la_SOURCES += src/rt/ranks_links.c src/rt/ranks_mpi.c src/rt/ranks_mpi.h
else
libcore_la_SOURCES += src/rt/ranks_none.c
endif
if OPENCL
libcore_la_SOURCES += src/rt/opencl.c src/rt/opencl.h src/rt/opencl_products.c
src/rt/opencl.lo: src/kernels/device/opencl.cl
endif
if CUDA
libcore_la_SOURCES += src/rt/cuda.c src/rt/cuda.h src/rt/cuda_products.c src/rt/cuda_repeat.c src/rt/nvml.c src/rt/nvml.h
src/rt/cuda.lo: src/kernels/device/cuda.fatbin
endif
if HOPPER
libcore_la_SOURCES += src/rt/cuda_attention.c
src/rt/cuda_attention.lo: src/kernels/device/hopper.fatbin
endif
if CUDNN
libcore_la_SOURCES += src/rt/cuda_graphs.c src/rt/cuda_graphs.h src/rt/cuda_graph_check.c \
	src/rt/cudnn_graph.c src/rt/cudnn_graph.h src/rt/cudnn_plan.c src/rt/cudnn_plan.h
endif
