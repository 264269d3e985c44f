// The content of a response, decompressed where it has a coding that was asked for. Declared in client/transfer.h.
#include <coir/detail/accounts.h>

#include "base/charged.h"
#include "client/transfer.h"

namespace coir::http::detail {

// Decoding is what a coded content needs while it is read.
struct Transfer::Decoding {
  Buffer in;                      // coded content that has come,
  std::span<const char> pending;  // of which this is not decoded yet
  void* state = nullptr;          // the coding's own
  std::uint64_t decoded = 0;
  bool midway = false;   // in a piece of coded data that has not ended
  bool is_full = false;  // the last call filled its room: there may be more without further input
};

std::expected<std::size_t, Error> Transfer::read_content(std::span<char> into) noexcept {
  if (!coded) return read_plain(into);
  if (decoded_whole) return std::unexpected(Error{ErrorCode::end_of_stream});
  if (into.empty()) return std::unexpected(Error{ErrorCode::invalid});
  if (decoding == nullptr) {
    decoding = construct_charged<Decoding>(account::http);
    if (decoding == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  }
  return read_coded(into);
}

std::expected<std::size_t, Error> Transfer::read_coded(std::span<char> into) noexcept {
  const ContentCoding& coding = *core.options.coding;
  Decoding& own = *decoding;
  if (own.state == nullptr && (own.state = coding.begin()) == nullptr) {
    return std::unexpected(Error{ErrorCode::no_memory});
  }
  if (!own.in) {
    auto taken = Buffer::take(Buffer::kLeast);
    if (!taken) return std::unexpected(taken.error());
    own.in = std::move(*taken);
  }
  for (;;) {
    if (own.pending.empty() && !own.is_full) {
      const auto got = read_plain(own.in.bytes());
      if (!got && got.error() == ErrorCode::end_of_stream) {
        if (own.midway) return std::unexpected(Error{ErrorCode::truncated});
        decoded_whole = true;
        end_decoding();
        return std::unexpected(Error{ErrorCode::end_of_stream});
      }
      if (!got) return got;
      own.pending = {own.in.data(), *got};
    }
    std::span<char> rest = into;
    const auto progress = coding.decode(own.state, own.pending, rest);
    // Nothing more is read of what is wrong.
    if (progress == ContentCoding::Progress::malformed || progress == ContentCoding::Progress::no_memory) {
      reusable = false;
      let_go();
      return std::unexpected(progress == ContentCoding::Progress::no_memory
                                 ? Error{ErrorCode::no_memory}
                                 : client_error(ErrorCode::protocol, ClientFault::bad_coding));
    }
    own.midway = progress == ContentCoding::Progress::goes_on;
    own.is_full = own.midway && rest.empty();
    const std::size_t made = into.size() - rest.size();
    own.decoded += made;
    if (own.decoded > core.options.max_decoded) {
      reusable = false;
      let_go();
      return std::unexpected(client_error(ErrorCode::limit, ClientFault::too_long_decoded));
    }
    if (made != 0) return made;
  }
}

void Transfer::end_decoding() noexcept {
  if (decoding == nullptr) return;
  if (decoding->state != nullptr) core.options.coding->end(decoding->state);
  destroy_charged(account::http, std::exchange(decoding, nullptr));
}

}  // namespace coir::http::detail
