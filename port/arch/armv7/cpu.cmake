# Clang 19 cannot make a frame larger than a stack's guard touch each of its pages on the way down.
set(COIR_CPU_STACK_CLASH_PROTECTION OFF)
