// How a transfer's request is sent. Declared in client/transfer.h.
#include "client/transfer.h"

namespace coir::http::detail {

Transfer::Outcome Transfer::send() noexcept {
  const auto head = write_head();
  if (!head) return std::unexpected(head.error());
  const bool at_once = with_content && request->upload == nullptr && !waits_for_leave();
  const auto begun = send_beginning(*head, at_once ? request->content : std::string_view(), pace());
  if (!begun) return std::unexpected(of(Phase::send, begun.error()));
  if (at_once || !has_content()) return {};
  if (waits_for_leave()) {
    const auto allowed = await_leave(std::min(deadline, Deadline::after(request->continue_wait)));
    if (!allowed || got_head) return allowed;
  }
  return request->upload != nullptr ? send_upload() : send_more(request->content);
}

Transfer::Outcome Transfer::send_more(std::string_view bytes) noexcept {
  const auto sent = send_content(bytes, pace());
  return sent ? sent : std::unexpected(of(Phase::send, sent.error()));
}

// send_upload has the content made in a buffer of its own. In chunks, each piece has its size in front.
Transfer::Outcome Transfer::send_upload() noexcept {
  auto taken = Buffer::take(Buffer::kLeast);
  if (!taken) return std::unexpected(taken.error());
  Upload& upload = *request->upload;
  const bool chunked = !upload.size;
  std::uint64_t rest = chunked ? UINT64_MAX : *upload.size;
  const std::span<char> place = taken->bytes().subspan(kBeforeChunk, taken->size() - kBeforeChunk - kBehindChunk);
  while (rest != 0 && !got_head) {
    const auto made =
        upload.read(upload, place.first(static_cast<std::size_t>(std::min<std::uint64_t>(place.size(), rest))));
    if (!made) return std::unexpected(made.error());
    if (*made == 0) break;
    if (!chunked) rest -= *made;
    const std::string_view piece(place.data(), *made);
    if (auto sent = send_more(chunked ? frame_chunk(place.data(), *made) : piece); !sent) return sent;
  }
  if (got_head) return {};
  if (chunked) return send_more(kLastChunk);
  if (rest != 0) return std::unexpected(client_error(ErrorCode::invalid, ClientFault::short_upload));
  return {};
}

}  // namespace coir::http::detail
