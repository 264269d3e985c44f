#pragma once

#include <coir/format.h>

// InFolder is the path of a file in a folder; empty, which no file has, if it is too long.
struct InFolder {
  InFolder(const char* folder, const char* name) noexcept {
    if (coir::Formatter path(text); !path.add(folder, "/", name, '\0').fits()) text[0] = '\0';
  }
  char text[256];
};
