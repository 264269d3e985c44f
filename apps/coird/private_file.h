#pragma once

#include <coir/file.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

// open_private opens a file that only its owner may read or change, who is coird's user or root. Nothing: one line has
// said why not.
std::optional<coir::File> open_private(const char* path, const char* cure) noexcept;

// read_secret_line reads the first line of such a file into `room`. Nothing: one line has said why not.
std::optional<std::string_view> read_secret_line(const char* path, const char* cure, std::span<char> room) noexcept;

// SecretBytes wipes the bytes of a file when it is destroyed.
struct SecretBytes {
  ~SecretBytes();
  coir::FileBytes bytes;
};
