#include "dashboard.h"

#include <coir/net/log_line.h>
#include <string.h>

#include <algorithm>

#include "../complaint.h"
#include "../daemon.h"
#include "../private_file.h"
#include "assets.h"
#include "page.h"

using coir::http::Exchange;
using coir::http::Method;
using coir::http::TokenLogin;

namespace {

// Anyone can cause these lines.
constinit coir::LogSource g_logins("logins", {.burst = 5, .spacing = std::chrono::seconds(10)});

constexpr const char* kSeeDashboard = "coird --help explains --dashboard";

bool only_reads(Exchange& exchange) noexcept {
  const Method method = exchange.request().method;
  return method == Method::get || method == Method::head;
}

void respond_asset(Exchange& exchange, std::string_view type, std::string_view compressed) noexcept {
  auto& head = exchange.start(200);
  head.field("Content-Type", type);
  head.fixed("Content-Encoding: gzip\r\n");
  if (exchange.begin_fixed(compressed.size())) static_cast<void>(exchange.write(compressed));
}

}  // namespace

// The path stands in the page as it is.
bool take_dashboard(const Setting& setting, Options& options) noexcept {
  const std::string_view path = setting.text;
  const bool plain = std::ranges::all_of(path, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '/' || c == '-' ||
           c == '_';
  });
  if (!plain || path.size() < 2 || path.size() > TokenLogin::kMostPath || path.front() != '/' || path.back() == '/')
    return setting.wrong("such as /dashboard", {"not a path of letters, digits, '-' and '_'"});
  options.dashboard = setting.text;
  return true;
}

Dashboard::~Dashboard() {
  explicit_bzero(token_, sizeof token_);
}

bool Dashboard::open(const Options& options, Daemon& daemon) noexcept {
  path_ = options.dashboard;
  const NamedFile file{options.dashboard_token_file, &options, "dashboard-token-file"};
  const auto token = read_token(file, kSeeDashboard, token_);
  if (!token) return false;
  login_.emplace(*token, path_);
  if (options.check) return true;
  coir::keep_log_lines(true);
  if (options.state_given) crashes_.read(options.state);
  figures_.emplace(daemon);
#if COIRD_LIVE
  events_.emplace(coir::http::EventHubOptions{.history_bytes = 32 * 1024,
                                              .history_events = 60,
                                              .replay = true,
                                              .retry = std::chrono::seconds(2),
                                              .max_subscribers = 16});
#endif
  return true;
}

bool Dashboard::owns(std::string_view path) const noexcept {
  return path.starts_with(path_) && (path.size() == path_.size() || path[path_.size()] == '/');
}

void Dashboard::serve(Exchange& exchange) noexcept {
  if (login_->refuses(exchange)) return;
  const std::string_view name = exchange.request().path.substr(path_.size());
  const bool reads = only_reads(exchange), posts = exchange.request().method == Method::post;
  exchange.add_fields(kPageFields);
  if (name.empty()) {
    if (posts) return serve_login(exchange);
    return reads ? serve_page(exchange) : exchange.respond_status(405, "Allow: GET, HEAD, POST\r\n");
  }
  if (name == "/logout") {
    if (!posts) return exchange.respond_status(405, "Allow: POST\r\n");
    if (login_->admits(exchange.request())) log_out();
    return go_to_page(exchange);
  }
  const bool style = name == "/style.css", script = name == "/script.js";
  if (!style && !script && name != "/events") return exchange.respond_status(404);
  if (!reads) return exchange.respond_status(405, "Allow: GET, HEAD\r\n");
  if (style) return respond_asset(exchange, "text/css; charset=utf-8", style_gz());
  if (script) return respond_asset(exchange, "text/javascript; charset=utf-8", script_gz());
  serve_events(exchange);
}

void Dashboard::serve_page(Exchange& exchange) noexcept {
  if (!login_->admits(exchange.request())) return write_login(exchange, 200, path_, {});
  FigureTexts texts;
  read_figures(texts);
  write_page(exchange, path_, COIRD_LIVE, texts, crashes_);
}

void Dashboard::serve_login(Exchange& exchange) noexcept {
  switch (login_->log_in(exchange)) {
    case TokenLogin::Verdict::admitted:
      return go_to_page(exchange);
    case TokenLogin::Verdict::refused:
      say(g_logins, coir::LogLevel::warning, {"--dashboard: a wrong token was typed"});
      return write_login(exchange, 403, path_, "This is not the token.");
    case TokenLogin::Verdict::busy:
      return exchange.respond_status(503, "Retry-After: 1\r\n");
    case TokenLogin::Verdict::answered:
      return;
  }
}

// log_out ends all logins, and the streams that they have opened.
void Dashboard::log_out() noexcept {
  login_->log_out();
#if COIRD_LIVE
  sign_outs_.fetch_add(1);
  events_->disconnect_all();
#endif
}

void Dashboard::go_to_page(Exchange& exchange) noexcept {
  exchange.start(303).field("Location", path_);
  static_cast<void>(exchange.begin_fixed(0));
}

void Dashboard::read_figures(FigureTexts& texts) noexcept {
#if !COIR_NO_ASYNC
  const auto turn = turn_.lock();
  if (!turn) return;
#endif
  figures_->tell(texts);
}

#if COIRD_LIVE

void Dashboard::serve_events(Exchange& exchange) noexcept {
  const std::uint32_t before = sign_outs_.load();
  if (!login_->admits(exchange.request())) return exchange.respond_status(403);
  (*events_)(exchange);
  // Somebody who has signed out meanwhile may have ended all streams before this one was among them.
  if (sign_outs_.load() != before) events_->disconnect_all();
  followed_.set();
}

#else

void Dashboard::serve_events(Exchange& exchange) noexcept {
  exchange.respond_status(404);
}

void Dashboard::start() noexcept {}
void Dashboard::stop() noexcept {}

#endif
