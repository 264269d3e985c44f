#include "config_file.h"

#include <coir/file.h>
#include <coir/format.h>
#include <coir/http/server.h>
#include <coir/sum.h>
#include <ini.h>
#include <string.h>

#include <algorithm>
#include <string_view>

#include "../gateway.h"
#include "../scripts.h"
#include "row.h"
#include "take.h"

namespace {

constexpr std::size_t kMostConfig = 64 * 1024;  // of one file
constexpr std::size_t kMostLine = 2045;         // what the reader of INI files holds, but for the line's end
constexpr std::size_t kMostFiles = 8;           // that include each other
constexpr const char* kConfigCure = "coird --print-config prints one";
constexpr std::string_view kRoute = "route ";

// ConfigReader reads one file. It reports and counts each error at once, and reads the rest all the same.
class ConfigReader {
 public:
  ConfigReader(Options& options, const char* name, std::string_view text, std::size_t depth) noexcept
      : options_(options), name_(name), rest_(text), depth_(depth) {}

  bool read() noexcept {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
    static_cast<void>(::ini_parse_stream(&next_line, this, &take_line, this));
    end_route();
    if (count_ == 0 && good_) good_ = complain(kConfigCure, {name_, ": it sets no option"});
    return good_;
  }

 private:
  // next_line hands a line to the reader of INI files, as fgets would. That reader tells of the first bad line alone, so
  // each is reported here, and handed over empty.
  static char* next_line(char* into, int room, void* self) noexcept {
    auto& reader = *static_cast<ConfigReader*>(self);
    std::string_view& rest = reader.rest_;
    if (rest.empty() || reader.no_room_) return nullptr;
    std::string_view line = rest.substr(0, std::min(rest.find('\n'), rest.size() - 1) + 1);
    rest.remove_prefix(line.size());
    ++reader.read_lines_;
    if (!reader.is_line(line)) line = "\n";
    const std::size_t size = std::min(line.size(), static_cast<std::size_t>(room) - 1);
    memcpy(into, line.data(), size);
    into[size] = '\0';
    return into;
  }

  bool is_line(std::string_view line) noexcept {
    const std::size_t begin = std::min(line.find_first_not_of(" \t\r\n\v\f"), line.size());
    const bool begins_section = line.substr(begin).starts_with('[');
    if (line.size() <= kMostLine + 1 && !(begins_section && line.find(']') == line.npos)) return true;
    wrong(read_lines_, "write KEY = VALUE or [SECTION], 2045 bytes at most", {"not a valid line"});
    // The keys behind it belong to a section that nobody can name.
    if (begins_section) {
      end_route();
      known_ = false;
    }
    return false;
  }

  static int take_line(void* self, const char* section, const char* key, const char* value, int line) noexcept {
    auto& reader = *static_cast<ConfigReader*>(self);
    reader.line_ = static_cast<std::size_t>(line);
    if (key == nullptr) {
      reader.begin(section);
    } else {
      ++reader.count_;
      reader.take(key, value);
    }
    return 1;
  }

  bool wrong(std::size_t line, const char* cure, std::initializer_list<Word> what) noexcept {
    return good_ = complain_at(name_, line, cure, what);
  }

  void begin(std::string_view name) noexcept {
    constexpr std::size_t kLongest = 48;  // the reader of INI files cuts what is longer
    end_route();
    section_ = nullptr;
    route_ = {};
    known_ = true;
    if (name.size() > kLongest) {
      known_ =
          wrong(line_, "name the route in a file of --routes", {"[", name, "...]: longer than ", kLongest, " bytes"});
    } else if (name.starts_with(kRoute)) {
      route_ = options_.settings.keep(name.substr(std::min(name.find_first_not_of(' ', kRoute.size()), name.size())));
      route_line_ = line_;
      known_ = route_.starts_with('/') || route_.starts_with('.') ||
               wrong(line_, "such as [route /api]", {"[", name, "]: not a path"});
    } else {
      for (std::size_t i = 0; i < kSections; ++i) {
        const char* const each = section_text(static_cast<Section>(i)).name;
        if (each != nullptr && name == each) section_ = each;
      }
      known_ = section_ != nullptr || wrong(line_, kSections_, {"[", name, "]: no such section"});
    }
  }

  void take(std::string_view key, const char* value) noexcept {
    if (!known_) return;
    if (value == nullptr) {
      wrong(line_, "write KEY = VALUE; for an option without a value, yes or no", {key, ": a value is missing"});
    } else if (route_.data() != nullptr) {
      take_route_key(key, value);
    } else if (section_ == nullptr && key == "include") {
      include(value);
    } else {
      take_option(key, value);
    }
  }

  void take_option(std::string_view key, const char* value) noexcept {
    const Row* const row = find_row(key);
    if (row == nullptr) {
      const Row* const nearest = nearest_row(key);
      char cure[96];
      if (nearest != nullptr) coir::format(cure, "is it ", nearest->name, "?", '\0');
      wrong(line_, nearest != nullptr ? cure : kConfigCure, {key, ": no such key"});
      return;
    }
    const char* const section = section_text(row->section).name;
    if (section == nullptr) {
      wrong(line_, "give it on the command line", {key, ": not allowed in a file"});
      return;
    }
    if (section_ != section) {
      char cure[48];
      coir::format(cure, "it belongs in [", section, "]", '\0');
      wrong(line_, cure, {key, ": not a key of ", section_ == nullptr ? "no section" : section_});
      return;
    }
    if (const Setting* const before = row->many ? nullptr : options_.settings.last_of(*row)) {
      wrong(line_, "leave one of them out", {key, ": given before, in line ", before->line, " of ", before->file});
      return;
    }
    const Setting* const setting = add(row, value);
    if (setting == nullptr) return;
    if (row->take == nullptr) {
      wrong(line_, "build coird with it", {key, ": this coird was built without ", row->part});
    } else if (!row->take(*setting, options_)) {
      good_ = false;
    }
  }

  void take_route_key(std::string_view key, std::string_view value) noexcept {
    constexpr std::string_view kFlags[] = {"request-id", "forwarded"};
    const bool flag = std::ranges::find(kFlags, key) != std::end(kFlags);
    if (flag && value != "yes" && value != "no") {
      wrong(line_, "write yes or no", {key, ": neither yes nor no"});
      return;
    }
    if (flag && value == "no") return;
    char text[2048];
    const auto whole = flag || value.empty() ? coir::format(text, key) : coir::format(text, key, "=", value);
    const Setting* const setting = add(&route_key_row(), whole);
    if (setting != nullptr && route_keys_++ == 0) first_key_ = setting;
  }

  // end_route has the keys of a section [route PREFIX] count, all of them at once.
  void end_route() noexcept {
    if (route_.data() == nullptr || !known_) return;
    const std::span keys(first_key_, std::exchange(route_keys_, 0));
    const std::string_view prefix = std::exchange(route_, {});
    if (keys.empty()) {
      wrong(route_line_, "such as url = http://127.0.0.1:8081", {"[route ", prefix, "]: no url"});
    } else if (!take_section(prefix, keys)) {
      good_ = false;
    }
  }

  bool take_section([[maybe_unused]] std::string_view prefix, std::span<const Setting> keys) noexcept {
#if COIRD_SCRIPTS
    constexpr std::string_view kFastCgi = "fastcgi=";
    const auto is_fastcgi = [=](const Setting& key) { return std::string_view(key.text).starts_with(kFastCgi); };
    if (const auto own = std::ranges::find_if(keys, is_fastcgi); own != keys.end()) {
      char text[1024];
      coir::Formatter whole(text);
      whole.add(prefix, "=", std::string_view(own->text).substr(kFastCgi.size()));
      for (const Setting& each : keys) {
        const std::string_view key = each.text;
        if (&each == &*own) continue;
        if (!is_application_key(key.substr(0, key.find('='))) || key.find(' ') != key.npos)
          return each.wrong("leave it out", {"conflicts with fastcgi"});
        whole.add(" ", key);
      }
      if (!whole.fits()) return own->wrong("name fewer addresses", {"too long"});
      Setting shorthand = *own;
      shorthand.row = find_row("fastcgi");
      shorthand.text = options_.settings.keep(whole.text());
      if (!take_fastcgi(shorthand, options_)) return false;
      options_.applications[options_.application_count - 1].keys = keys;
      options_.applications[options_.application_count - 1].setting = &*own;
      return true;
    }
#endif
#if COIRD_GATEWAY
    return take_route(prefix, keys, options_);
#else
    return keys.front().wrong("build it with -DCOIR_PROXY=ON", {"this coird was built without COIR_PROXY"});
#endif
  }

  // add: lines_of has room for all settings of a file, side by side. Null: there is none, and that was told.
  const Setting* add(const Row* row, std::string_view text) noexcept {
    const Setting* const added =
        options_.settings.add({.row = row, .text = options_.settings.keep(text), .file = name_, .line = line_});
    if (added == nullptr) wrong(line_, kConfigCure, {coir::Error{coir::ErrorCode::no_memory}});
    return added;
  }

  void include(std::string_view name) noexcept {
    char path[512] = {};
    // A copy may be another user's, who may not read all that coird does.
    if (depth_ == 0) return;
    const std::string_view own = name_;
    const std::string_view folder = name.starts_with('/') ? "" : own.substr(0, own.rfind('/') + 1);
    coir::format(std::span(path).first(sizeof path - 1), folder, name, '\0');
    if (depth_ == kMostFiles) {
      wrong(line_, "leave it out", {"include: more than ", kMostFiles, " files include each other"});
      return;
    }
    // Its settings have room of their own, and what this file adds behind them goes to new room, too.
    if (!read_file(path, options_, depth_ + 1, this)) good_ = false;
    no_room_ = !options_.settings.make_room(lines_of(rest_), room_of(rest_));
    if (no_room_) wrong(line_, kConfigCure, {"include: ", coir::Error{coir::ErrorCode::no_memory}});
  }

 public:
  // The most memory that a file's settings and their texts take.
  static std::size_t lines_of(std::string_view text) noexcept {
    return static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1;
  }
  // A route of FastCGI is kept twice.
  static std::size_t room_of(std::string_view text) noexcept { return 2 * (text.size() + 2) + lines_of(text); }

  // read_file reads a file that `from` includes; null: the first.
  static bool read_file(const char* path, Options& options, std::size_t depth, ConfigReader* from) noexcept {
    const auto no = [path, from](const Word& why) {
      if (from != nullptr) return from->wrong(from->line_, kConfigCure, {"include: ", path, ": ", why});
      return complain(kConfigCure, {path, ": ", why});
    };
    const auto file = coir::File::open(path);
    if (!file) return no(file.error());
    const auto text = file->read_all(coir::account::http, kMostConfig);
    if (!text) return no(text.error());
    options.config_sum = coir::sum_of(text->bytes(), options.config_sum);
    return read_text(path, text->text(), options, depth, no);
  }

  // read_text reads the text of a file; depth 0: without those that it includes.
  static bool read_text(const char* path, std::string_view text, Options& into, std::size_t depth, auto no) noexcept {
    if (text.find('\0') != text.npos) return no("not a text");
    if (!into.settings.make_room(lines_of(text), room_of(text) + strlen(path) + 1))
      return no(coir::Error{coir::ErrorCode::no_memory});
    return ConfigReader(into, into.settings.keep(path), text, depth).read();
  }

 private:
  static constexpr const char* kSections_ =
      "listen, files, gateway, route PREFIX, mcp, mqtt, auth, tls, limits, timeouts and process are sections";

  Options& options_;
  const char* const name_;
  std::string_view rest_;  // behind the line that is taken
  const std::size_t depth_;
  std::size_t read_lines_ = 0, line_ = 0, count_ = 0;
  const char* section_ = nullptr;  // null: in front of all sections, or in one of a route
  bool known_ = true;              // the section
  std::string_view route_ = {};    // null: in none
  std::size_t route_line_ = 0, route_keys_ = 0;
  const Setting* first_key_ = nullptr;
  bool good_ = true;
  bool no_room_ = false;  // for the settings behind a file that was included: nothing more is read
};

}  // namespace

bool take_config(const Setting& setting, Options& options) noexcept {
  return take_file<&Options::config>(setting, options);
}

bool read_config(const char* path, Options& options) noexcept {
  return ConfigReader::read_file(path, options, 1, nullptr);
}

bool read_copy(const ConfigCopy& copy, Options& options) noexcept {
  const auto no = [&copy](const Word& why) { return complain(kConfigCure, {copy.path, ": ", why}); };
  return ConfigReader::read_text(copy.path, copy.text, options, 0, no);
}
