// Small text files in folders that look like /sys.
#pragma once

#include <CppUTest/TestHarness.h>
#include <stdio.h>
#include <stdlib.h>

namespace coir::test {

// put makes the folders of a path, too.
inline void put(const char* path, const char* text) {
  char folder[256];
  snprintf(folder, sizeof folder, "mkdir -p $(dirname '%s')", path);
  CHECK_EQUAL(0, system(folder));
  FILE* const file = fopen(path, "w");
  CHECK(file != nullptr);
  fputs(text, file);
  fclose(file);
}

// get lasts until the next call.
inline const char* get(const char* path) {
  static char text[64];
  FILE* const file = fopen(path, "r");
  CHECK_TEXT(file != nullptr, path);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  return text;
}

}  // namespace coir::test
