#pragma once

#include <coir/resting_wait.h>

#include "http/session/keeper.h"
#include "proxy/forwarder.h"
#include "proxy/upstreams/upstream.h"

namespace coir::http {

class AnswerKeeper;
class ForwardKeeper;
struct Forwarding;

// WaitingExchange is what is kept of an exchange while nothing moves before its answer: its request has been sent, and its
// upstream is silent, or its client owes content. No fiber and no buffer, but the upstream's connection, and what the
// answer, the deadline, the access log and one more try need. Behind it lie where the request's content is, the request's head,
// what the client has sent behind the request, and what has come of the response's head. Charged to account::streams. Its
// owner is its connection's; what the wake touches is guarded by the keeper's lock.
struct WaitingExchange : RestingWait {
  AnswerKeeper* keeper = nullptr;
  Connection* client = nullptr;  // null before begin
  UpstreamLease lease;
  UpstreamGroup* group = nullptr;
  Suspended kept;
  std::int64_t asked_ns = 0;
  std::int64_t late_ns = 0;                  // when the time is over of what it waits for
  Atomic<std::uint32_t>* counted = nullptr;  // ForwardRules::waiting, lowered in the end
  bool tried_again = false;                  // it is the second try already
  bool unrepeatable = false;                 // content has been sent that is gone
  std::uint8_t interims = 0;                 // interim responses that have come
  bool has_made_id = false;
  std::uint16_t heard_bytes = 0;  // of a response's head
  bool armed = false;  // guarded by the keeper's lock, as are those below: from before it sleeps until its wake is over
  bool news = false;   // the upstream may have said something
  bool dying = false;  // whoever ends the wait frees it: set last
  char made_id[16];
  const ForwardRules* rules = nullptr;
  RequestRules own;

  static std::size_t bytes(std::size_t text, bool uploads) noexcept {
    return sizeof(WaitingExchange) + (uploads ? sizeof(KeptContent) : 0) + text;
  }
  std::size_t bytes() const noexcept {
    return bytes(kept.head.size() + kept.behind + heard_bytes, kept.content != nullptr);
  }
  const char* heard() const noexcept { return kept.head.data() + kept.head.size() + kept.behind; }
};

// AnswerKeeper keeps exchanges that wait for their upstreams' answers, or for their clients' content. A fiber takes one up
// again when the upstream says something, the deadline passes, the client does anything, or the server stops.
class AnswerKeeper final : public Keeper {
 public:
  explicit AnswerKeeper(ForwardKeeper& keeper) noexcept : forwards_(keeper) {}

  // So much is kept of what either side has sent already.
  static constexpr std::size_t kMostSent = 2048;

  // keep takes over what `forwarding` has sent, until `late`. If it `uploads`, the client owes content, of which nothing is in
  // the session's buffers. False: it cannot, and nothing has changed.
  bool keep(Forwarding& forwarding, Deadline late, bool uploads) noexcept;

  // These are Keeper's.
  void begin(Connection& connection, std::string_view sent, KeptMemory memory) noexcept override;
  const Suspended* suspended(Connection& connection) noexcept override;
  void answer_kept(Exchange& exchange, std::uint64_t mark) noexcept override;
  void farewell(Connection& connection) noexcept override;
  void dropped(std::uint64_t mark) noexcept override;
  bool outlives_stop(const Connection&) const noexcept override { return true; }
  void stopping() noexcept override;
  bool stopped() noexcept override;
  bool look_around(std::int64_t now_ns) noexcept override;

 private:
  static WaitingExchange& waiting_of(const Connection& connection) noexcept {
    return *reinterpret_cast<WaitingExchange*>(connection.mark);
  }
  void arm(WaitingExchange& waiting) noexcept;
  static void woken(RestingWait& resting) noexcept;
  void release(WaitingExchange& waiting) noexcept;
  void free_record(WaitingExchange& waiting) noexcept;

  ForwardKeeper& forwards_;
  Atomic<std::size_t> records_ = 0;
};

}  // namespace coir::http
