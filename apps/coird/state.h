#pragma once

// State that coird keeps from run to run, in the folder that --state names: what a board without a clock and without a
// source of entropy lacks when it starts. Nothing here is fatal; where the folder cannot be written, less is
// remembered.

// recall_state gives the kernel the seed that the last run has left, and raises the floor of the time to when that was.
// Then it waits for the kernel's random numbers to be ready, for 20 seconds at most, and says on standard error if it
// had to. False: they are not, and keys must not be made. Before the run.
bool recall_state(const char* folder) noexcept;

// keep_state leaves a new seed and the time, if it is known, for the next run. Before the run and after it.
void keep_state(const char* folder) noexcept;
