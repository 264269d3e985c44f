#pragma once

#include <coir/end_record.h>

#include <cstddef>
#include <span>
#include <string_view>

// PastCrashes has a line for each crash that the folder of --state tells of, the newest first, as coirctl crashes shows them.
class PastCrashes {
 public:
  // read reads them once, before the run: they change at a start alone.
  void read(const char* folder) noexcept;

  std::size_t count() const noexcept { return count_; }
  std::string_view line(std::size_t i) const noexcept { return {lines_[i], sizes_[i]}; }

 private:
  std::size_t count_ = 0;
  std::size_t sizes_[coir::EndRecord::kKept] = {};
  char lines_[coir::EndRecord::kKept][160];
};
