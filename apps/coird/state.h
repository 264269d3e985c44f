#pragma once

// State that coird keeps from run to run, in the folder that --state names: what a board without a clock and without a
// source of entropy lacks when it starts. Nothing here is fatal; where the folder cannot be written, less is
// remembered.

// recall_state raises the floor of the time to when the last run has left a seed, and gives the kernel that seed, if it has no
// random numbers yet. Before the run.
void recall_state(const char* folder) noexcept;

// wait_for_randomness waits for the kernel's random numbers, for 20 seconds at most, and says so. False: there are none. Before the
// run, or from a fiber.
bool wait_for_randomness() noexcept;

// keep_state leaves a new seed and the time, if it is known, for the next run. Before the run, in it and after it.
void keep_state(const char* folder) noexcept;
