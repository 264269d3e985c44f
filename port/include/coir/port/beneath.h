#pragma once

// Opens a file below a folder and nowhere else.
//
//   char work[4096];
//   const int file = open_beneath(fd, "index.html", work);       // fd: the folder
//   if (file < 0) return complain(Error::from_errno(-file));

#include <span>

namespace coir::port {

// open_beneath opens `relative` (NUL-terminated, without a leading slash) below the directory `root` and nowhere else:
// symbolic links are followed as long as they are relative and stay beneath it. A regular file is opened for reading, a
// directory by name only (O_PATH). Anything else, a FIFO or a device, is ENOENT and never opened: its type is looked at
// first. Returns the descriptor or -errno: EXDEV for what leaves the root.
//
// By openat2(2) where the kernel has it. `work` is memory for the walk that replaces it; a path with links that does
// not fit there is ENAMETOOLONG.
int open_beneath(int root, const char* relative, std::span<char> work) noexcept;

// open_beneath_to_write is the same for writing: what a regular file held is gone, none is made. A directory is still
// opened by name only.
int open_beneath_to_write(int root, const char* relative, std::span<char> work) noexcept;

// walk_beneath is the replacement. A file cannot be moved out of the root between a check and a use, for it goes from
// directory to directory by descriptor and follows no link but by reading it.
int walk_beneath(int root, const char* relative, std::span<char> work) noexcept;

}  // namespace coir::port
