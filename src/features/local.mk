# Sources of src/features
libcore_la_SOURCES += \
	src/features/features.c \
	src/features/order.c \
	src/features/queue.c src/features/reader.h \
	src/features/set.c
