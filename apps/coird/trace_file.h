#pragma once

struct Options;

// open_trace opens the file that --trace names, before anything is served; `fd` is -1 without one. False: one line has
// said why it cannot be opened.
[[nodiscard]] bool open_trace(const Options& options, int& fd) noexcept;
