#include "http/connection/client_limits.h"

#include <arpa/inet.h>
#include <coir/detail/accounts.h>
#include <coir/port/memory.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>

#include <algorithm>
#include <bit>

#include "http/connection/coarse_clock.h"

namespace coir::http {
namespace {

// No IPv6 client has an address like this: ff is for groups.
constexpr std::uint64_t kIpv4 = std::uint64_t{0xff} << 56;

std::uint64_t big_endian(const unsigned char* bytes, std::size_t count) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | bytes[i];
  return value;
}

}  // namespace

std::uint64_t ClientLimits::key_of(const Address& address) noexcept {
  if (address.family() == Address::Family::ipv4) {
    const auto* const ip = reinterpret_cast<const sockaddr_in*>(address.get());
    return kIpv4 | ntohl(ip->sin_addr.s_addr);
  }
  if (address.family() != Address::Family::ipv6) return 0;
  const unsigned char* const bytes = reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr.s6_addr;
  constexpr unsigned char kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (memcmp(bytes, kMapped, sizeof kMapped) == 0) return kIpv4 | big_endian(bytes + 12, 4);
  // ::1 has a prefix of zeros, which would be no key.
  return std::max<std::uint64_t>(big_endian(bytes, 8), 1);
}

std::uint64_t ClientLimits::key_of(const TcpStream& stream) noexcept {
  const auto address = stream.peer_address();
  return address ? key_of(*address) : 0;
}

bool ClientLimits::open(const ServerOptions& options) noexcept {
  if (options.max_connections_per_client == 0 && options.max_requests_per_client == 0) return true;
  // Each listener may be about to take a connection beyond those that there are.
  if (!reserve(options.max_connections + Server::kMaxListeners)) return false;
  connections_ = options.max_connections_per_client;
  rate_ = burst_ = options.max_requests_per_client;
  return true;
}

bool ClientLimits::open_rate(std::size_t clients, std::uint32_t rate, std::uint32_t burst) noexcept {
  if (!reserve(clients)) return false;
  rate_ = rate;
  burst_ = burst;
  return true;
}

std::size_t ClientLimits::bytes_of(std::size_t most) noexcept {
  return most * sizeof(Entry) + std::bit_ceil(most) * sizeof(Entry*);
}

bool ClientLimits::reserve(std::size_t most) noexcept {
  const std::size_t chains = std::bit_ceil(most), bytes = bytes_of(most);
  if (!account::connections.charge(bytes)) return false;
  auto* const memory = static_cast<char*>(port::reserve(bytes));
  if (memory == nullptr) {
    account::connections.refund(bytes);
    return false;
  }
  bytes_ = bytes;
  most_ = static_cast<std::uint32_t>(most);
  chains_ = reinterpret_cast<Entry**>(memory);
  entries_ = reinterpret_cast<Entry*>(memory + chains * sizeof(Entry*));
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(chains));
  // Early after a board's start there may be none: the address of the table is random too.
  if (getrandom(&multiplier_, sizeof multiplier_, GRND_NONBLOCK) != sizeof multiplier_)
    multiplier_ = reinterpret_cast<std::uintptr_t>(memory) * 0x9e3779b97f4a7c15;
  multiplier_ |= 1;
  return true;
}

ClientLimits::~ClientLimits() {
  if (entries_ == nullptr) return;
  port::release(chains_, bytes_);
  account::connections.refund(bytes_);
}

// The clock's zero is any.
std::uint32_t ClientLimits::now_ms() noexcept {
  return static_cast<std::uint32_t>(coarse_ns() / 1'000'000);
}

ClientLimits::Entry*& ClientLimits::chain(std::uint64_t key) noexcept {
  // The product's upper bits depend on all of the key's; the key's own upper bits are mixed into the lower ones first.
  return chains_[((key ^ key >> 32) * multiplier_) >> shift_];
}

ClientLimits::Entry* ClientLimits::find(std::uint64_t key) noexcept {
  Entry* entry = chain(key);
  while (entry != nullptr && entry->key != key) entry = entry->next_same;
  return entry;
}

// take_unused returns an entry that stands in no chain, or null.
ClientLimits::Entry* ClientLimits::take_unused() noexcept {
  if (used_ < most_) return &entries_[used_++];
  Entry* const entry = gone_.front();
  if (entry == nullptr) return nullptr;
  gone_.remove(*entry);
  Entry** at = &chain(entry->key);
  while (*at != entry) at = &(*at)->next_same;
  *at = entry->next_same;
  return entry;
}

std::optional<ClientLimits::Ticket> ClientLimits::enter(std::uint64_t key) noexcept {
  if (entries_ == nullptr || key == 0) return Ticket{0};
  Locked locked(lock_);
  Entry* entry = find(key);
  if (entry == nullptr) {
    entry = take_unused();
    if (entry == nullptr) return Ticket{0};
    Entry*& first = chain(key);
    *entry = {.key = key,
              .next_same = first,
              .next = nullptr,
              .previous = nullptr,
              .connections = 0,
              .thousandths = full_bucket(),
              .seen_ms = now_ms()};
    first = entry;
  } else if (connections_ != 0 && entry->connections >= connections_) {
    return std::nullopt;
  } else if (entry->connections == 0) {
    gone_.remove(*entry);
  }
  ++entry->connections;
  return static_cast<Ticket>(entry - entries_) + 1;
}

void ClientLimits::forget_one(Ticket ticket) noexcept {
  Locked locked(lock_);
  Entry& entry = entries_[ticket - 1];
  if (--entry.connections == 0) gone_.push_back(entry);
}

bool ClientLimits::take_token(Ticket ticket) noexcept {
  constexpr std::uint32_t kToken = 1000;
  const std::uint32_t now = now_ms();
  Locked locked(lock_);
  Entry& entry = entries_[ticket - 1];
  // Another worker's clock may be a moment ahead.
  const auto passed = static_cast<std::int32_t>(now - entry.seen_ms);
  if (passed > 0) {
    const std::uint64_t refilled = entry.thousandths + static_cast<std::uint64_t>(passed) * rate_;
    entry.thousandths = static_cast<std::uint32_t>(std::min<std::uint64_t>(refilled, full_bucket()));
    entry.seen_ms = now;
  }
  if (entry.thousandths < kToken) return false;
  entry.thousandths -= kToken;
  return true;
}

}  // namespace coir::http
