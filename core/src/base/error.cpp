#include <coir/atomic.h>
#include <coir/error.h>
#include <errno.h>
#include <string.h>

namespace coir {

Error Error::from_errno(int number) noexcept {
  switch (number) {
    case ECANCELED:
      return {ErrorCode::cancelled, number};
    case ETIMEDOUT:
      return {ErrorCode::timed_out, number};
    case EPIPE:
    case ECONNRESET:
    case ECONNABORTED:
      return {ErrorCode::closed, number};
    case ENOMEM:
    case ENOBUFS:
      return {ErrorCode::no_memory, number};
    case EMFILE:
    case ENFILE:
      return {ErrorCode::limit, number};
    case ENOENT:
      return {ErrorCode::not_found, number};
    case EINVAL:
      return {ErrorCode::invalid, number};
    case ENOSYS:
    case EOPNOTSUPP:
    case EAFNOSUPPORT:
      return {ErrorCode::unsupported, number};
    default:
      return {ErrorCode::system, number};
  }
}

namespace {

// A place is written once, with a function: nothing else is read behind it, so that relaxed loads suffice.
constinit SharedAtomic<detail::Phrase> g_phrases[4];

const char* phrase_of(Error error) noexcept {
  for (const auto& place : g_phrases) {
    const detail::Phrase of = place.load(std::memory_order_relaxed);
    if (of == nullptr) break;
    if (const char* const phrase = of(error)) return phrase;
  }
  return nullptr;
}

}  // namespace

void detail::add_phrase(Phrase of) noexcept {
  for (auto& place : g_phrases) {
    Phrase there = nullptr;
    if (place.compare_exchange_strong(there, of) || there == of) return;
  }
}

const char* describe(Error error) noexcept {
  if (const char* const phrase = phrase_of(error)) return phrase;
  switch (error.code) {
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::timed_out:
      return "timed out";
    case ErrorCode::closed:
      return "closed";
    case ErrorCode::end_of_stream:
      return "end of stream";
    case ErrorCode::stale:
      return "stale handle";
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::queue_full:
      return "queue full";
    case ErrorCode::limit:
      return error.sys == EMFILE || error.sys == ENFILE ? "too many open files" : "limit reached";
    case ErrorCode::no_memory:
      return "out of memory";
    case ErrorCode::invalid:
      return "invalid";
    case ErrorCode::not_found:
      return "not found";
    case ErrorCode::temporary:
      return "failed for now";
    case ErrorCode::deadlock:
      return "deadlock";
    case ErrorCode::unsupported:
      return "not supported here";
    case ErrorCode::truncated:
      return "truncated";
    case ErrorCode::untrusted:
      return "certificate not trusted";
    case ErrorCode::alert:
      return "refused by the peer";
    case ErrorCode::protocol:
      return "protocol error";
    case ErrorCode::system:
      break;
  }
  return strerror(error.sys);
}

}  // namespace coir
