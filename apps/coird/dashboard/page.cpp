#include "page.h"

#include <coir/format.h>
#include <coir/ledger.h>
#include <coir/net/log_line.h>
#include <unistd.h>

#include <algorithm>

using coir::http::Exchange;

namespace {

// Html writes parts of a page. `text` is anybody's, and escaped.
class Html {
 public:
  explicit Html(Exchange& exchange) noexcept : exchange_(exchange) {}

  Html& operator()(std::string_view markup) noexcept {
    static_cast<void>(exchange_.write(markup));
    return *this;
  }
  Html& text(std::string_view text) noexcept {
    while (!text.empty()) {
      const std::size_t plain = std::min(text.find_first_of("<>&\""), text.size());
      (*this)(text.substr(0, plain));
      text.remove_prefix(plain);
      if (text.empty()) break;
      (*this)(text[0] == '<' ? "&lt;" : text[0] == '>' ? "&gt;" : text[0] == '&' ? "&amp;" : "&quot;");
      text.remove_prefix(1);
    }
    return *this;
  }
  Html& size(std::size_t bytes) noexcept {
    char room[32];
    return (*this)(bytes == SIZE_MAX ? "none" : coir::format(room, (bytes + 1023) / 1024, " KB"));
  }

 private:
  Exchange& exchange_;
};

bool begin_page(Exchange& exchange, int status, std::string_view path, bool script) noexcept {
  exchange.start(status).field("Content-Type", "text/html; charset=utf-8");
  if (!exchange.begin_chunked()) return false;
  char host[65] = {};
  static_cast<void>(::gethostname(host, sizeof host - 1));
  Html html(exchange);
  html(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>coird on ")
      .text(host)("</title>\n<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"")(
          path)("/style.css\">\n");
  if (script) html("<script src=\"")(path)("/script.js\" defer></script>\n");
  html("</head>\n<body>\n<header>\n<h1>coird on ").text(host)("</h1>\n");
  return true;
}

void write_account(Html& html, const coir::Account& account, std::size_t number) noexcept {
  char mark[8];
  html("<tr><th scope=\"row\" class=\"")(coir::format(mark, "c", number))("\">")(account.name())("</th><td>")
      .size(account.used())("</td><td>")
      .size(account.high_water())("</td><td>")
      .size(account.ceiling())("</td></tr>\n");
}

}  // namespace

void write_login(Exchange& exchange, int status, std::string_view path, std::string_view fault) noexcept {
  if (!begin_page(exchange, status, path, false)) return;
  Html html(exchange);
  html("</header>\n<main>\n<form method=\"post\" action=\"")(path)("\">\n");
  if (!fault.empty()) html("<p role=\"alert\">")(fault)("</p>\n");
  html(
      "<label for=\"token\">Token</label>\n"
      "<input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"current-password\" required>\n"
      "<button type=\"submit\">Sign in</button>\n</form>\n</main>\n</body>\n</html>\n");
}

void write_page(Exchange& exchange, std::string_view path, bool live, const FigureTexts& figures,
                const PastCrashes& crashes) noexcept {
  if (!begin_page(exchange, 200, path, live)) return;
  Html html(exchange);
  html("<p id=\"live\" role=\"status\"><a href=\"")(path)("\">Read again</a></p>\n<form method=\"post\" action=\"")(path)(
      "/logout\">\n<button type=\"submit\">Sign out</button>\n</form>\n</header>\n<main>\n"
      "<section>\n<h2>State</h2>\n<table>\n<tbody>\n");
  for (const auto& each : figures.all())
    html("<tr><th scope=\"row\">").text(each.name)("</th><td id=\"")(each.id)("\">").text(each.text())("</td></tr>\n");
  html(
      "</tbody>\n</table>\n</section>\n<section>\n<h2>Memory</h2>\n<div id=\"bars\"></div>\n<table "
      "id=\"memory\">\n<thead>\n"
      "<tr><th scope=\"col\">Account</th><th scope=\"col\">Used</th><th scope=\"col\">Most</th>"
      "<th scope=\"col\">Limit</th></tr>\n</thead>\n<tbody>\n");
  std::size_t number = 0;
  write_account(html, coir::Ledger::total(), number);
  for (const coir::Account* each = coir::Ledger::accounts(); each != nullptr; each = each->next())
    write_account(html, *each, ++number);
  html("</tbody>\n</table>\n</section>\n<section>\n<h2>Crashes</h2>\n");
  if (crashes.count() == 0) html("<p>None is recorded.</p>\n");
  if (crashes.count() != 0) {
    html("<ol>\n");
    for (std::size_t i = 0; i < crashes.count(); ++i) html("<li>").text(crashes.line(i))("</li>\n");
    html("</ol>\n");
  }
  html("</section>\n<section>\n<h2>Log</h2>\n<pre id=\"log\" tabindex=\"0\">");
  html.text(coir::recent_log_lines(exchange.scratch().first(kShownLog)))(
      "</pre>\n</section>\n</main>\n</body>\n</html>\n");
}
