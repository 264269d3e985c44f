// How a transfer's request is sent. Declared in client/transfer.h.
#include <coir/wait.h>
#include <string.h>

#include "client/transfer.h"

namespace coir::http::detail {

Transfer::Outcome Transfer::send() noexcept {
  const auto head = write_head();
  if (!head) return std::unexpected(head.error());
  if (!has_content()) return send_all(*head, {});
  if (waits_for_leave()) {
    if (auto sent = send_all(*head, {}); !sent) return sent;
    if (auto allowed = ask_for_leave(); !allowed || got_head) return allowed;
  } else if (request->upload == nullptr) {
    return send_all(*head, request->content);
  } else if (auto sent = send_all(*head, {}); !sent) {
    return sent;
  }
  return request->upload != nullptr ? send_upload() : send_watching(request->content);
}

// send_all sends a head, and in the same call as much of the content as the kernel takes.
Transfer::Outcome Transfer::send_all(std::string_view bytes, std::string_view more) noexcept {
  while (!bytes.empty()) {
    const iovec parts[] = {{const_cast<char*>(bytes.data()), bytes.size()},
                           {const_cast<char*>(more.data()), more.size()}};
    const auto sent = stream().write_some(std::span(parts, more.empty() ? 1 : 2), until(Phase::send));
    if (!sent) return std::unexpected(of(Phase::send, sent.error()));
    sent_any = true;
    const std::size_t of_bytes = std::min(*sent, bytes.size());
    bytes.remove_prefix(of_bytes);
    more.remove_prefix(*sent - of_bytes);
  }
  return more.empty() ? Outcome() : send_watching(more);
}

// send_watching sends content, and stops where a final response comes before its end: the server wants no more of it.
// `in` is free for what the server says, as the request's head has been sent.
Transfer::Outcome Transfer::send_watching(std::string_view bytes) noexcept {
  Deadline in_time = until(Phase::send);
  while (!bytes.empty()) {
    const iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
    const auto sent = stream().write_some(std::span(&part, 1), Deadline::now());
    if (sent) {
      bytes.remove_prefix(*sent);
      in_time = until(Phase::send);
      continue;
    }
    if (!(sent.error() == ErrorCode::timed_out) || sent.error().scope != 0) return std::unexpected(sent.error());
    const Awaited either[] = {{stream().fd(), Direction::readable}, {stream().fd(), Direction::writable}};
    if (auto ready = wait_several(either, in_time); !ready) return std::unexpected(of(Phase::send, ready.error()));
    stream().mark_readable();
    stream().mark_writable();
    if (auto read = read_more(Deadline::now()); read) {
      const auto final = took_head(answers());
      if (!final) return std::unexpected(final.error());
      if (*final) {
        reusable = false;
        cut_short = true;
        return {};
      }
    } else if (!(read.error() == ErrorCode::timed_out)) {
      return read;
    }
  }
  return {};
}

// send_upload has the content made in a buffer of its own. In chunks, each piece has its size in front.
Transfer::Outcome Transfer::send_upload() noexcept {
  constexpr std::size_t kBefore = 18;  // a chunk's size with its line end
  constexpr std::size_t kBehind = 2;
  auto taken = Buffer::take(Buffer::kLeast);
  if (!taken) return std::unexpected(taken.error());
  Upload& upload = *request->upload;
  const bool chunked = !upload.size;
  std::uint64_t rest = chunked ? UINT64_MAX : *upload.size;
  const std::span<char> place = taken->bytes().subspan(kBefore, taken->size() - kBefore - kBehind);
  while (rest != 0 && !got_head) {
    const auto made =
        upload.read(upload, place.first(static_cast<std::size_t>(std::min<std::uint64_t>(place.size(), rest))));
    if (!made) return std::unexpected(made.error());
    if (*made == 0) break;
    std::string_view piece(place.data(), *made);
    if (chunked) {
      char line[kBefore];
      const std::string_view size = write_chunk_size(*made, line);
      char* const begin = place.data() - size.size();
      memcpy(begin, size.data(), size.size());
      memcpy(place.data() + *made, "\r\n", kBehind);
      piece = {begin, size.size() + *made + kBehind};
    } else {
      rest -= *made;
    }
    if (auto sent = send_watching(piece); !sent) return sent;
  }
  if (got_head) return {};
  if (chunked) return send_watching(kLastChunk);
  if (rest != 0) return std::unexpected(client_error(ErrorCode::invalid, ClientFault::short_upload));
  return {};
}

// ask_for_leave waits for 100, or a while: servers that know no Expect are silent. A final response is the answer.
Transfer::Outcome Transfer::ask_for_leave() noexcept {
  const Deadline patience = std::min(deadline, Deadline::after(request->continue_wait));
  while (interim == 0) {
    if (auto read = read_more(patience); !read) {
      const bool silent = read.error() == ErrorCode::timed_out && read.error().scope == 0 && !deadline.passed();
      return silent ? Outcome() : read;
    }
    const auto final = took_head(answers());
    if (!final) return std::unexpected(final.error());
    if (*final) {
      // The server still waits for the content that was announced, or does not: nobody can tell.
      reusable = false;
      cut_short = true;
      return {};
    }
  }
  return {};
}

}  // namespace coir::http::detail
