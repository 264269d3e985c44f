#pragma once

#include <coir/http/exchange.h>

#include <cstddef>
#include <string_view>

#include "figures.h"
#include "past_crashes.h"

// The pages of the dashboard, which are whole without a script. `path` is that of --dashboard.

// kPageFields is in the head of each answer: a page loads nothing from elsewhere, and is shown in no other page.
inline constexpr std::string_view kPageFields =
    "Content-Security-Policy: default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src "
    "data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: same-origin\r\nCache-Control: no-store\r\n";

// write_login answers with the form that asks for the token; `fault` is what was wrong with the last one, or empty.
void write_login(coir::http::Exchange& exchange, int status, std::string_view path, std::string_view fault) noexcept;

// write_page answers with the state of coird. `live`: a script follows the events.
void write_page(coir::http::Exchange& exchange, std::string_view path, bool live, const FigureTexts& figures,
                const PastCrashes& crashes) noexcept;

// kShownLog is how many bytes of the log are shown.
inline constexpr std::size_t kShownLog = 2048;
