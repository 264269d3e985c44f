#include "identity.h"

#include <coir/file.h>
#include <coir/http/server.h>
#include <coir/http/wire/query.h>
#include <errno.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "complaint.h"

namespace {

constexpr std::size_t kMostAccounts = 256 * 1024;  // of /etc/passwd
constexpr const char kUser[] = "user", kGroup[] = "group";
constexpr const char* kCure = "name one that there is, or a number";
constexpr unsigned kNobody = 65534;

// AccountLine is a line of /etc/passwd or /etc/group.
struct AccountLine {
  unsigned id = 0;     // of the user, or of the group
  unsigned group = 0;  // of the user
};

std::optional<unsigned> parse_id(std::string_view text) noexcept {
  const auto value = coir::http::parse_integer(text);
  if (!value || *value < 0 || *value >= UINT32_MAX) return std::nullopt;
  return static_cast<unsigned>(*value);
}

std::string_view next_field(std::string_view& line) noexcept {
  const std::string_view field = line.substr(0, line.find(':'));
  line.remove_prefix(std::min(field.size() + 1, line.size()));
  return field;
}

// find looks for a name, or for a number, in a file whose lines are NAME:PASSWORD:ID:GROUP... Nothing: it is not there.
// The C library's getpwnam would bring the name service's sockets along.
std::optional<AccountLine> find(const char* path, std::string_view name) noexcept {
  const auto number = parse_id(name);
  const auto file = coir::File::open(path);
  if (file) {
    const auto text = file->read_all(coir::account::process, kMostAccounts);
    for (std::string_view rest = text ? text->text() : std::string_view(); !rest.empty();) {
      std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      const std::string_view known = next_field(line);
      next_field(line);
      const auto id = parse_id(next_field(line));
      if (!id || (number ? *id != *number : known != name)) continue;
      return AccountLine{*id, parse_id(next_field(line)).value_or(*id)};
    }
  }
  if (number) return AccountLine{*number, *number};
  return std::nullopt;
}

// owner_of is the user to whom a folder belongs, 0 if there is none.
unsigned owner_of(const char* folder) noexcept {
  struct stat status;
  // A link could be that user's own, to a folder of another one's.
  return ::lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) ? status.st_uid : 0;
}

// take_safe_user replaces, in safe mode, a user that is not named or does not exist. `unknown` is what find_owner has returned.
void take_safe_user(const Options& options, const char* unknown, Identity& identity) noexcept {
  if (::geteuid() != 0) {
    identity = {.user = ::geteuid(), .group = ::getegid()};
    return;
  }
  if (options.user != nullptr && unknown != kUser) return;
  unsigned user = owner_of(options.state);
  if (user == 0 && unknown == kUser) user = kNobody;
  if (user == 0) return;
  char number[12];
  coir::format(number, user, '\0');
  const AccountLine owner = *find("/etc/passwd", number);
  identity = {.changes = true,
              .user = owner.id,
              .group = options.group != nullptr && unknown == nullptr ? identity.group : owner.group};
}

}  // namespace

const char* find_owner(const Options& options, Identity& identity) noexcept {
  identity = {
      .changes = options.user != nullptr || options.group != nullptr, .user = ::geteuid(), .group = ::getegid()};
  if (options.user != nullptr) {
    const auto user = find("/etc/passwd", options.user);
    if (!user) return kUser;
    identity.user = user->id;
    identity.group = user->group;
  }
  if (options.group != nullptr) {
    const auto group = find("/etc/group", options.group);
    if (!group) return kGroup;
    identity.group = group->id;
  }
  return nullptr;
}

bool find_identity(const Options& options, Identity& identity) noexcept {
  const char* const unknown = find_owner(options, identity);
  if (unknown != nullptr) {
    options.wrong(unknown, unknown == kUser ? options.user : options.group, kCure, {"no such ", unknown});
    if (!options.safe) return false;
  }
  if (options.safe) take_safe_user(options, unknown, identity);
  if (options.control_readers != nullptr) {
    const auto readers = find("/etc/group", options.control_readers);
    if (!readers) return options.wrong("control-readers", options.control_readers, kCure, {"no such group"});
    identity.readers = readers->id;
  }
  return true;
}

bool become(const Identity& identity) noexcept {
  if (!identity.changes) return true;
  // Only the superuser has other groups to give up.
  if (::geteuid() == 0 && ::setgroups(0, nullptr) != 0)
    return complain("start it as root", {"--user: ", coir::Error::from_errno(errno)});
  if (::setgid(identity.group) != 0) return complain("start it as root", {"--group: ", coir::Error::from_errno(errno)});
  if (::setuid(identity.user) != 0) return complain("start it as root", {"--user: ", coir::Error::from_errno(errno)});
  return true;
}
