#include "past_crashes.h"

#include <coir/format.h>

using coir::End;
using coir::EndRecord;

void PastCrashes::read(const char* folder) noexcept {
  coir::PastEnds ends;
  if (!ends.open(folder)) return;
  static char room[EndRecord::kSlotBytes];  // too large for a stack
  coir::PastEnd record;
  while (count_ < EndRecord::kKept && ends.read(room, record)) {
    if (record.end == End::none || record.end == End::clean || record.end == End::failed) continue;
    const std::string_view text = record.value("text");
    sizes_[count_] =
        coir::format(lines_[count_], "run ", record.number, ": ", end_name(record.end), text.empty() ? "" : ", ", text)
            .size();
    ++count_;
  }
}
