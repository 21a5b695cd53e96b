# Sessions, task groups, tasks and tiles
libcore_la_SOURCES += \
	src/rt/counting.c src/rt/counting.h \
	src/rt/device_use.c src/rt/device_use.h \
	src/rt/devices_alone.c src/rt/devices_alone.h \
	src/rt/grid.c src/rt/grid.h \
	src/rt/lanes.c src/rt/lanes.h \
	src/rt/lost.c src/rt/lost.h \
	src/rt/observer.h \
	src/rt/op.c src/rt/op.h \
	src/rt/op_use.c src/rt/op_use.h \
	src/rt/place_facts.c src/rt/place_facts.h \
	src/rt/places.c src/rt/places.h \
	src/rt/rank_facts.c src/rt/rank_facts.h \
	src/rt/rates.c src/rt/rates.h \
	src/rt/recording.c src/rt/recording.h \
	src/rt/replay.c src/rt/replay.h \
	src/rt/session.c src/rt/session.h \
	src/rt/simulation.h \
	src/rt/slowdown.c src/rt/slowdown.h \
	src/rt/task.c src/rt/task.h \
	src/rt/task_codelets.c src/rt/task_message.h \
	src/rt/task_group.c src/rt/task_group.h \
	src/rt/task_run.c src/rt/task_run_device.c \
	src/rt/task_submit.c \
	src/rt/task_times.h \
	src/rt/task_transfers.c src/rt/task_transfers.h \
	src/rt/throttle.c src/rt/throttle.h \
	src/rt/tile.c src/rt/tile.h \
	src/rt/tile_forms.c src/rt/tile_forms.h \
	src/rt/transfers.c src/rt/transfers.h
if SIMGRID
libcore_la_SOURCES += src/rt/simulation.c
else
libcore_la_SOURCES += src/rt/task_times.c
endif
