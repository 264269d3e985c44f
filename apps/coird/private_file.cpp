#include "private_file.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "complaint.h"

namespace {

constexpr const char* kPrivateCure =
    "chmod 600, or 640 with the group root or coird's; its owner is coird's user or root";

// coird becomes this user and this group.
constinit uid_t g_user = 0;
constinit gid_t g_group = 0;

bool is_own_group(gid_t group) noexcept {
  if (group == 0 || group == g_group || group == ::getegid()) return true;
  gid_t groups[64];
  const int count = ::getgroups(std::size(groups), groups);
  return count > 0 && std::find(groups, groups + count, group) != groups + count;
}

// exposed tells why an open file is not a secret of this process's, null if it is.
const char* exposed(int fd) noexcept {
  struct stat info;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return "it is not a file";
  if ((info.st_mode & 07) != 0) return "others can read or change it";
  if ((info.st_mode & 030) != 0) return "its group can change it";
  if ((info.st_mode & 040) != 0 && !is_own_group(info.st_gid)) return "others can read it: its group is not coird's";
  if (info.st_uid != ::geteuid() && info.st_uid != g_user && info.st_uid != 0) return "it belongs to somebody else";
  return nullptr;
}

}  // namespace

void secrets_are_for(uid_t user, gid_t group) noexcept {
  g_user = user;
  g_group = group;
}

void give_secret(int fd) noexcept {
  const bool becomes = g_user != 0 || g_group != ::getegid();
  if (::geteuid() == 0 && becomes) static_cast<void>(!::fchown(fd, g_user, g_group));
}

bool NamedFile::wrong(const char* cure, std::initializer_list<Word> what) const noexcept {
  if (key != nullptr) return key->wrong(cure, what);
  if (options != nullptr) return options->wrong(option, path, cure, what);
  char problem[kLineBytes];
  coir::Formatter text(problem);
  for (const Word& word : what) word.add_to(text);
  return complain(cure, {path, ": ", text.text()});
}

std::optional<coir::File> open_named(const NamedFile& named, const char* cure) noexcept {
  auto file = coir::File::open(named.path);
  if (!file) return named.wrong(cure, {file.error()}), std::nullopt;
  return std::move(*file);
}

std::optional<coir::File> open_private(const NamedFile& named, const char* cure) noexcept {
  auto file = open_named(named, cure);
  if (!file) return std::nullopt;
  if (const char* const why = exposed(file->fd())) return named.wrong(kPrivateCure, {why}), std::nullopt;
  return file;
}

std::optional<std::string_view> read_secret_line(const NamedFile& named, const char* cure,
                                                 std::span<char> room) noexcept {
  const auto file = open_private(named, cure);
  if (!file) return std::nullopt;
  const auto size = file->read_all(room);
  if (!size) return named.wrong(cure, {size.error()}), std::nullopt;
  const std::string_view text(room.data(), *size);
  return text.substr(0, text.find_first_of("\r\n"));
}

std::optional<std::string_view> read_token(const NamedFile& named, const char* cure, std::span<char> room) noexcept {
  constexpr std::size_t kShortest = 20;
  const auto line = read_secret_line(named, cure, room);
  if (!line) return std::nullopt;
  const bool visible = std::ranges::all_of(*line, [](char c) { return c > ' ' && c <= '~'; });
  if (line->size() >= kShortest && visible) return line;
  named.wrong("head -c 24 /dev/urandom | base64 makes one",
              {"its first line is not a token of ", kShortest, " characters or more"});
  return std::nullopt;
}

SecretBytes::~SecretBytes() {
  if (bytes.size() != 0) explicit_bzero(const_cast<char*>(bytes.bytes().data()), bytes.size());
}
