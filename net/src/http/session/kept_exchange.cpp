// Session, of session.h: how it gives connections and exchanges to keepers, and takes them up again.
#include <string.h>

#include <utility>

#include "http/connection/connection.h"
#include "http/session/engine.h"
#include "http/session/keeper.h"
#include "http/session/session.h"

namespace coir::http {

// resume goes on with an exchange that `keeper` has kept, of a connection that is this session's from here on. Its head
// was parsed before.
Session::After Session::resume(Keeper& keeper, const Suspended& kept) noexcept {
  const std::uint64_t mark = connection_->mark;
  const std::string_view head(buffers->in, kept.head.size());
  end_ = static_cast<std::uint32_t>(head.size() + kept.behind);
  memcpy(buffers->in, kept.head.data(), end_);
  static_cast<void>(parse_head(head, 0, buffers->headers, engine_.options.limits, request_));
  begin_body(head.size());
  body_begun_ = true;
  body_done_ = kept.content == nullptr;
  body_left_ = 0;
  if (kept.content != nullptr) {
    body_left_ = kept.content->left;
    body_waited_ns_ = monotonic_ns() - kept.content->waits_since_ns;
    if (request_.framing == Framing::chunked) chunks_ = kept.content->chunks;
  }
  head_in_buffers_ = !kept_head_.keep(request_, head);
  lends_scratch_ = lends_path_ = false;
  const bool keep = kept.keep;
  keeper.readmit(*connection_, kept.requests - 1);
  begin_answer(kept.began_ns);
  // Its client has been slow: it keeps no place from others.
  if (!body_done_) waited_ns = kLeastWaitNs;
  keep_ = keep_ && keep;
  // Nothing is known of what the client has sent meanwhile.
  look_again_ = true;
  Exchange exchange(*this);
  watch_->begin();
  watch_->glance();
  keeper.answer_kept(exchange, mark);
  return end_answer();
}

// hand_over gives the connection to who keeps it, if the head can be sent.
Session::After Session::hand_over() noexcept {
  Keeper& keeper = *std::exchange(keeper_, nullptr);
  const bool is_stream = !std::exchange(suspended_, false);
  if (!is_stream && phase_ != Phase::none) {
    // The handler has answered by itself.
    keeper.dropped(mark_);
    keeper.lose();
    return finish();
  }
  if (!broken_ && flush()) {
    if (is_stream) told_stream();
  } else {
    if (is_stream) told_end();
    keeper.dropped(mark_);
    keeper.lose();
    return After::close;
  }
  // No wait reports again what a watch has heard. A keeper of a waiting exchange looks by itself.
  if (is_stream && look_again_) connection_->stream.mark_readable();
  begin_ = body_at_;
  keeper.admit(*connection_, mark_, part_);
  keeper.begin(*connection_, {buffers->in + begin_, end_ - begin_}, {.in = buffers->scratch, .out = buffers->out});
  return After::kept;
}

void Session::serve_kept(Connection& connection) noexcept {
  Keeper::mark_ready(connection);
  connection.keeper->serve(connection, {.in = buffers->in, .out = buffers->out});
}

}  // namespace coir::http
