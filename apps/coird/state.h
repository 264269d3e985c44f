#pragma once

// State that coird keeps from run to run, in the folder that --state names: what a board without a clock and without a
// source of entropy lacks when it starts. Nothing here is fatal; where the folder cannot be written, less is
// remembered.

// recall_state raises the floor of the time to when the last run has left a seed, and gives the kernel that seed, if it has no
// random numbers yet. A date that no clock can be trusted with is left out, with a line. Before the run.
void recall_state(const char* folder) noexcept;

// tell_clock says that the clock is behind that floor, if it is, and what to do. After recall_state.
void tell_clock(const char* folder) noexcept;

// wait_for_randomness waits for the kernel's random numbers, for 20 seconds at most, and says so. False: there are
// none. Before the run, or from a fiber.
bool wait_for_randomness() noexcept;

// keep_state leaves a new seed and the time, if it is known, for the next run. Before the run, in it and after it.
void keep_state(const char* folder) noexcept;

// date_state leaves another seed if the last one was left before the clock was set, and it is set now: a board that always loses
// its power learns the time, too. False: the clock is not set yet. In the run.
[[nodiscard]] bool date_state(const char* folder) noexcept;
