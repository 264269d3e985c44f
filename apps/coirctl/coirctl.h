#pragma once

#include <string_view>

// is_coirctl tells whether a program is called by the name of the control client: by a link, or as a copy.
inline bool is_coirctl(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1) == "coirctl";
}

// coirctl is the control client. It is in coird's file, whose main calls it before anything of coird begins.
int coirctl(int count, char** words) noexcept;
