#pragma once

#include <coir/http/exchange.h>
#include <coir/http/wire/date.h>
#include <coir/http/wire/request.h>
#include <coir/port/memory.h>
#include <coir/program.h>

#include <cstddef>

#include "http/message/chunked_content.h"

namespace coir::http {

// If there is more than one session, the buffers of each fill whole pages: those that nobody uses can go.
inline constexpr std::size_t kBufferAlignment = kFibers ? port::kPageBytes : alignof(std::max_align_t);

// SessionBuffers is the memory of a session through which bytes move. It goes from one exchange to the next, and a
// handler that waits for long has none.
//
// in     +---------+--------------+-----------------+------------------+
//        |  done   |     head     |     content     |  next requests   |     free
//        +---------+--------------+-----------------+------------------+
//        0       begin_       head_end_         body_at_ moves        end_                kInputBytes
struct alignas(kBufferAlignment) SessionBuffers {
  static constexpr std::size_t kHeaders = 64;
  static constexpr std::size_t kScratchBytes = 4608;
  static constexpr std::size_t kOutputBytes = 8192;
  static constexpr std::size_t kPathBytes = 1024;  // of a path that holds escapes, decoded
  static constexpr std::size_t kMaxHeadBytes = 8192;
  // Behind the longest head there is room to read content.
  static constexpr std::size_t kInputBytes = kMaxHeadBytes + 2048;
  static_assert(kInputBytes - kMaxHeadBytes >= ChunkedContent::kLeastWindow);

  SessionBuffers* next_free = nullptr;
  CachedDate date;
  // The parts that are needed for longest are in front.
  Header headers[kHeaders];
  char in[kInputBytes];
  char out[kOutputBytes];
  char scratch[kScratchBytes];
  // On the last page, which few touch.
  char added_fields[Exchange::kAddedFieldBytes];
  char trailers[Exchange::kTrailerBytes];
  char path[kPathBytes];
};

}  // namespace coir::http
