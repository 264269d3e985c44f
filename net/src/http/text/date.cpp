#include <coir/http/wire/date.h>

#include <algorithm>
#include <cstring>

#include "http/text/characters.h"

namespace coir::http {
namespace {

constexpr std::int64_t kDay = 86400;
constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
constexpr std::string_view kLongDays[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};

struct Civil {
  int year;
  int month;  // 1 to 12
  int day;    // 1 to 31
};

// The two conversions between days and dates are Howard Hinnant's "chrono-compatible low-level date algorithms": years
// begin in March, so that the leap day is the last of its year, and 400 years are one era of 146097 days. 719468 days
// lie between 0000-03-01 and 1970-01-01.
Civil civil_from_days(std::int64_t days) noexcept {
  days += 719468;
  const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const int of_era = static_cast<int>(days - era * 146097);
  const int year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const int of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int from_march = (5 * of_year + 2) / 153;
  const int month = from_march < 10 ? from_march + 3 : from_march - 9;
  const int year = static_cast<int>(era * 400) + year_of_era + (month <= 2 ? 1 : 0);
  return {year, month, of_year - (153 * from_march + 2) / 5 + 1};
}

std::int64_t days_from_civil(Civil date) noexcept {
  const int year = date.year - (date.month <= 2 ? 1 : 0);
  const int era = (year >= 0 ? year : year - 399) / 400;
  const int year_of_era = year - era * 400;
  const int from_march = date.month > 2 ? date.month - 3 : date.month + 9;
  const int of_year = (153 * from_march + 2) / 5 + date.day - 1;
  const int of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
  return std::int64_t{era} * 146097 + of_era - 719468;
}

int days_of_month(int year, int month) noexcept {
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  if (month == 2) return leap ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

char* write_digits(char* out, int value, int digits) noexcept {
  for (int at = digits - 1; at >= 0; --at, value /= 10) out[at] = static_cast<char>('0' + value % 10);
  return out + digits;
}

char* write_text(char* out, std::string_view text) noexcept {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

// Reader takes a date apart from left to right and remembers whether everything so far was as it should be.
class Reader {
 public:
  explicit Reader(std::string_view text) noexcept : text_(text) {}

  void text(std::string_view expected) noexcept {
    ok_ = ok_ && begins_with(text_, expected);
    if (ok_) text_.remove_prefix(expected.size());
  }

  // name reads one of the three-letter names of `table` and returns its place.
  int name(std::string_view table) noexcept {
    for (std::size_t at = 0; ok_ && at < table.size(); at += 3) {
      if (!begins_with(text_, first(after(table, at), 3))) continue;
      text_.remove_prefix(3);
      return static_cast<int>(at / 3);
    }
    ok_ = false;
    return 0;
  }

  void long_day() noexcept {
    for (const std::string_view day : kLongDays) {
      if (begins_with(text_, day)) return text(day);
    }
    ok_ = false;
  }

  int number(std::size_t digits) noexcept {
    ok_ = ok_ && text_.size() >= digits;
    int value = 0;
    for (std::size_t at = 0; ok_ && at < digits; ++at) {
      ok_ = is_digit(text_[at]);
      value = value * 10 + (text_[at] - '0');
    }
    if (ok_) text_.remove_prefix(digits);
    return value;
  }

  // time reads "08:49:37" as seconds of the day.
  int time() noexcept {
    const int hour = number(2);
    text(":");
    const int minute = number(2);
    text(":");
    const int second = number(2);
    ok_ = ok_ && hour < 24 && minute < 60 && second <= 60;
    return hour * 3600 + minute * 60 + second;
  }

  // day reads the day of the month as asctime writes it: two digits, or a space and one.
  int padded_day() noexcept {
    if (!begins_with(text_, " ")) return number(2);
    text(" ");
    return number(1);
  }

  bool at_end() const noexcept { return ok_ && text_.empty(); }

 private:
  std::string_view text_;
  bool ok_ = true;
};

std::optional<std::int64_t> moment(const Reader& reader, Civil date, int seconds) noexcept {
  if (!reader.at_end() || date.day < 1 || date.day > days_of_month(date.year, date.month)) return std::nullopt;
  return days_from_civil(date) * kDay + seconds;
}

std::optional<std::int64_t> parse_imf(std::string_view text) noexcept {
  Reader in(text);
  in.name(kDays);
  in.text(", ");
  Civil date{};
  date.day = in.number(2);
  in.text(" ");
  date.month = in.name(kMonths) + 1;
  in.text(" ");
  date.year = in.number(4);
  in.text(" ");
  const int seconds = in.time();
  in.text(" GMT");
  return moment(in, date, seconds);
}

std::optional<std::int64_t> parse_rfc850(std::string_view text, std::int64_t now) noexcept {
  Reader in(text);
  in.long_day();
  in.text(", ");
  Civil date{};
  date.day = in.number(2);
  in.text("-");
  date.month = in.name(kMonths) + 1;
  in.text("-");
  const int latest = civil_from_days(now / kDay).year + 50;
  const int two_digits = in.number(2);
  date.year = latest - ((latest - two_digits) % 100 + 100) % 100;
  in.text(" ");
  const int seconds = in.time();
  in.text(" GMT");
  return moment(in, date, seconds);
}

std::optional<std::int64_t> parse_asctime(std::string_view text) noexcept {
  Reader in(text);
  in.name(kDays);
  in.text(" ");
  Civil date{};
  date.month = in.name(kMonths) + 1;
  in.text(" ");
  date.day = in.padded_day();
  in.text(" ");
  const int seconds = in.time();
  in.text(" ");
  date.year = in.number(4);
  return moment(in, date, seconds);
}

}  // namespace

void format_date(std::int64_t unix_seconds, std::span<char, kDateBytes> out) noexcept {
  constexpr std::int64_t first = -62167219200;  // 0000-01-01 00:00:00
  constexpr std::int64_t last = 253402300799;   // 9999-12-31 23:59:59
  const std::int64_t seconds = std::clamp(unix_seconds, first, last) - first;
  const std::int64_t days = seconds / kDay + first / kDay;
  const int of_day = static_cast<int>(seconds % kDay);
  const Civil date = civil_from_days(days);
  // 0000-01-01 was a Saturday.
  const auto weekday = static_cast<std::size_t>((seconds / kDay + 6) % 7);

  char* at = write_text(out.data(), {&kDays[weekday * 3], 3});
  at = write_text(at, ", ");
  at = write_digits(at, date.day, 2);
  *at++ = ' ';
  at = write_text(at, {&kMonths[static_cast<std::size_t>(date.month - 1) * 3], 3});
  *at++ = ' ';
  at = write_digits(at, date.year, 4);
  *at++ = ' ';
  at = write_digits(at, of_day / 3600, 2);
  *at++ = ':';
  at = write_digits(at, of_day / 60 % 60, 2);
  *at++ = ':';
  at = write_digits(at, of_day % 60, 2);
  write_text(at, " GMT");
}

std::optional<std::int64_t> parse_date(std::string_view text, std::int64_t now) noexcept {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) return parse_asctime(text);
  return comma == 3 ? parse_imf(text) : parse_rfc850(text, now);
}

void CachedDate::refresh(std::int64_t unix_seconds) noexcept {
  second_ = unix_seconds;
  size_ = 0;
  if (unix_seconds < kClockIsSet) return;
  char* const date = write_text(line_, "Date: ");
  format_date(unix_seconds, std::span<char, kDateBytes>(date, kDateBytes));
  size_ = static_cast<std::uint32_t>(write_text(date + kDateBytes, "\r\n") - line_);
}

}  // namespace coir::http
