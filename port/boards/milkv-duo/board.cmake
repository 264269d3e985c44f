# One core, no second thread: plain loads and stores in the scheduler.
set(COIR_SINGLE_WORKER ON CACHE BOOL "one worker, plain loads and stores instead of atomics")
