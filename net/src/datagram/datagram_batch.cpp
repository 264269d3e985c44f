#include <coir/budget.h>
#include <coir/net/datagram.h>
#include <coir/wait.h>
#include <errno.h>
#include <string.h>

#include "datagram/local_end.h"
#include "socket/kernel.h"

namespace coir {
namespace {

using Use = detail::UsedDescriptor::Use;

// These two stand in where the kernel has no calls for several.
int receive_one_by_one(int fd, mmsghdr* messages, unsigned count) noexcept {
  for (unsigned i = 0; i < count; ++i) {
    const ssize_t got = kernel::receive_message(fd, messages[i].msg_hdr);
    if (got < 0) return i != 0 ? static_cast<int>(i) : static_cast<int>(got);
    messages[i].msg_len = static_cast<unsigned>(got);
  }
  return static_cast<int>(count);
}

int send_one_by_one(int fd, const mmsghdr* messages, unsigned count) noexcept {
  for (unsigned i = 0; i < count; ++i) {
    const ssize_t sent = kernel::send_message(fd, messages[i].msg_hdr);
    if (sent < 0) return i != 0 ? static_cast<int>(i) : static_cast<int>(sent);
  }
  return static_cast<int>(count);
}

}  // namespace

bool DatagramBatch::add(std::span<char> into) noexcept {
  if (count_ == kMost || (count_ != 0 && outgoing_)) return false;
  outgoing_ = false;
  slots_[count_++].part = {into.data(), into.size()};
  return true;
}

bool DatagramBatch::add(std::string_view bytes, const Address& to, const LocalEnd& from) noexcept {
  if (count_ == kMost || (count_ != 0 && !outgoing_)) return false;
  outgoing_ = true;
  Slot& slot = slots_[count_++];
  slot.part = {const_cast<char*>(bytes.data()), bytes.size()};
  memcpy(slot.name, to.get(), to.length());
  slot.name_length = static_cast<std::uint8_t>(to.length());
  slot.from = from;
  return true;
}

Datagram DatagramBatch::operator[](std::size_t index) const noexcept {
  return datagram_of(headers_[index].msg_hdr, headers_[index].msg_len);
}

void DatagramBatch::prepare(std::size_t first, int fd, int family) noexcept {
  for (std::size_t i = first; i < count_; ++i) {
    Slot& slot = slots_[i];
    headers_[i] = {};
    msghdr& message = headers_[i].msg_hdr;
    message.msg_name = slot.name;
    message.msg_namelen = outgoing_ ? slot.name_length : sizeof slot.name;
    message.msg_iov = &slot.part;
    message.msg_iovlen = 1;
    const std::size_t told =
        outgoing_ ? put_local_end(slot.from, fd, family, reinterpret_cast<const sockaddr*>(slot.name), slot.control)
        : family == AF_UNIX ? 0
                            : sizeof slot.control;
    message.msg_control = told != 0 ? slot.control : nullptr;
    message.msg_controllen = static_cast<decltype(message.msg_controllen)>(told);
  }
}

std::expected<std::size_t, Error> DatagramSocket::receive_batch(DatagramBatch& batch, Deadline deadline) noexcept {
  if (batch.count_ == 0 || batch.outgoing_) return std::unexpected(Error{ErrorCode::invalid});
  spend_budget(kSystemCallCost);
  const Use use(socket_);
  if (!use) return std::unexpected(Error{ErrorCode::closed});
  for (;;) {
    batch.prepare(0, use.fd(), family_);
    int got = kernel::receive_messages(use.fd(), batch.headers_, batch.count_);
    if (got == -ENOSYS) got = receive_one_by_one(use.fd(), batch.headers_, batch.count_);
    if (use.ended()) return std::unexpected(Error{ErrorCode::closed});
    if (got > 0) return static_cast<std::size_t>(got);
    if (got == -EINTR) continue;
    if (got != -EAGAIN) return std::unexpected(datagram_error(-got));
    if (auto ready = wait(use.fd(), Direction::readable, deadline); !ready) return std::unexpected(ready.error());
  }
}

std::expected<std::size_t, Error> DatagramSocket::send_batch(DatagramBatch& batch, std::size_t first,
                                                             Deadline deadline) noexcept {
  if (first >= batch.count_ || !batch.outgoing_) return std::unexpected(Error{ErrorCode::invalid});
  spend_budget(kSystemCallCost);
  const Use use(socket_);
  if (!use) return std::unexpected(Error{ErrorCode::closed});
  const auto count = static_cast<unsigned>(batch.count_ - first);
  mmsghdr* const messages = batch.headers_ + first;
  for (;;) {
    batch.prepare(first, use.fd(), family_);
    int sent = kernel::send_messages(use.fd(), messages, count);
    if (sent == -ENOSYS) sent = send_one_by_one(use.fd(), messages, count);
    if (sent > 0) return static_cast<std::size_t>(sent);
    if (use.ended()) return std::unexpected(Error{ErrorCode::closed});
    if (sent == -EINTR) continue;
    if (sent != -EAGAIN) return std::unexpected(datagram_error(-sent));
    if (auto room = wait_for_room(use.fd(), false, deadline); !room) return std::unexpected(room.error());
  }
}

}  // namespace coir
