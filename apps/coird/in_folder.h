#pragma once

#include <coir/format.h>

#include <algorithm>
#include <string_view>

// InFolder is the path of a file in a folder; empty, which no file has, if it is too long.
struct InFolder {
  InFolder(const char* folder, const char* name) noexcept {
    if (coir::Formatter path(text); !path.add(folder, "/", name, '\0').fits()) text[0] = '\0';
  }
  char text[256];
};

// FolderOf is the folder in which a file or a folder is; empty, which none is, if it is too long. That of a bare name is ".", and
// "." and "/" are their own.
struct FolderOf {
  explicit FolderOf(std::string_view path) noexcept {
    const std::size_t slash = path.rfind('/');
    coir::Formatter folder(text);
    folder.add(slash == path.npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1)), '\0');
    if (!folder.fits()) text[0] = '\0';
  }
  char text[256];
};
