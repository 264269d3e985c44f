#include "dashboard.h"

#if COIRD_LIVE

#include <coir/every.h>
#include <coir/ledger.h>
#include <coir/net/log_line.h>
#include <coir/stack_size.h>

#include "../complaint.h"
#include "../control/answer.h"
#include "page.h"

using namespace std::chrono_literals;
using coir::operator""_KiB;

void Dashboard::start() noexcept {
  fiber_ = coir::spawn({.name = "dashboard", .stack = 16_KiB}, [this] { run(); });
  if (!fiber_.started()) warn({"--dashboard: the page is not live: ", fiber_.error()});
}

void Dashboard::stop() noexcept {
  if (fiber_.started()) {
    static_cast<void>(fiber_.cancel());
    static_cast<void>(fiber_.join());
  }
  events_.reset();
}

// run sleeps until somebody follows, and then publishes until nobody does.
void Dashboard::run() noexcept {
  while (followed_.wait()) {
    followed_.reset();
    told_bytes_ = 0;
    if (!publish()) return;
    const auto ended = coir::every(1s, [this]() -> std::expected<void, coir::Error> {
      if (events_->subscribers() != 0 && publish()) return {};
      return std::unexpected(coir::Error{coir::ErrorCode::end_of_stream});
    });
    if (ended.error() != coir::ErrorCode::end_of_stream) return;
    // A page that is read later would take the window for the last seconds.
    const auto turn = turn_.lock();
    if (!turn) return;
    figures_->forget();
  }
}

// publish tells the state of this second. False: coird stops.
bool Dashboard::publish() noexcept {
  // Too large for a stack; this fiber's alone.
  static char log[kShownLog], told[kShownLog], room[6 * kShownLog + 6_KiB];
  static FigureTexts texts;
  texts = {};
  {
    const auto turn = turn_.lock();
    if (!turn) return false;
    figures_->step();
    figures_->tell(texts);
  }
  ControlAnswer answer(room, true);
  for (const auto& each : texts.all()) answer.member(each.id, each.text());
  if (const auto tail = coir::recent_log_lines(log); tail != std::string_view(told, told_bytes_)) {
    answer.member("log", tail);
    told_bytes_ = tail.copy(told, sizeof told);
  }
  answer.list("accounts");
  const auto add = [&answer](const coir::Account& each) {
    answer.item().member("name", each.name()).member("used", each.used()).member("most", each.high_water()).end_item();
  };
  add(coir::Ledger::total());
  for (const coir::Account* each = coir::Ledger::accounts(); each != nullptr; each = each->next()) add(*each);
  answer.end_list();
  std::string_view text = answer.finish();
  if (text.ends_with('\n')) text.remove_suffix(1);
  char id[24];
  if (!text.empty())
    static_cast<void>(
        events_->publish({.data = text, .type = {}, .id = coir::format(id, ++published_), .retry_ms = {}}));
  return true;
}

#endif
