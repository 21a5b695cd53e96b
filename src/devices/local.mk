# The drivers of devices
libcore_la_SOURCES += \
	src/devices/device.c src/devices/device.h \
	src/devices/driver.h \
	src/devices/drivers.c src/devices/drivers.h \
	src/devices/memory.c
if OPENCL
libcore_la_SOURCES += src/devices/opencl.c src/devices/opencl.h src/devices/opencl_products.c
src/devices/opencl.lo: src/kernels/device/opencl.cl
endif
if CUDA
libcore_la_SOURCES += \
	src/devices/cuda.c src/devices/cuda.h \
	src/devices/cuda_products.c \
	src/devices/cuda_repeat.c \
	src/devices/nvml.c src/devices/nvml.h
src/devices/cuda.lo: src/kernels/device/cuda.fatbin
endif
if HOPPER
libcore_la_SOURCES += src/devices/cuda_attention.c
src/devices/cuda_attention.lo: src/kernels/device/hopper.fatbin
endif
if CUDNN
libcore_la_SOURCES += \
	src/devices/cuda_graph_check.c \
	src/devices/cuda_graphs.c src/devices/cuda_graphs.h \
	src/devices/cudnn_graph.c src/devices/cudnn_graph.h \
	src/devices/cudnn_plan.c src/devices/cudnn_plan.h
endif
if SIMGRID
libcore_la_SOURCES += src/devices/simulated.c
endif
