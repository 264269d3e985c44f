#include "identity.h"

#include <coir/file.h>
#include <coir/http/serve.h>
#include <coir/http/server.h>
#include <coir/http/wire/query.h>
#include <coir/port/capabilities.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "complaint.h"
#include "in_folder.h"
#include "state_file.h"

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
  // The wrong options may be those that were to name the user.
  if (user == 0 && (unknown == kUser || is_held(options.state))) user = kNobody;
  if (user == 0) return;
  char number[12];
  coir::format(number, user, '\0');
  const AccountLine owner = *find("/etc/passwd", number);
  identity = {.changes = true,
              .user = owner.id,
              .group = options.group != nullptr && unknown == nullptr ? identity.group : owner.group};
}

// in_folder_of_another tells whether root makes files beside this one only by a capability.
bool in_folder_of_another(std::string_view file) noexcept {
  struct stat status;
  return ::stat(FolderOf(file).text, &status) == 0 && (status.st_uid != 0 || (status.st_mode & S_IWUSR) == 0);
}

bool writes_in_folders_of_others(const Options& options) noexcept {
  const InFolder seed(options.state, "seed");
  for (const char* file : {&seed.text[0], options.log_file, options.control}) {
    if (file != nullptr && in_folder_of_another(file)) return true;
  }
  return options.writable != nullptr ||
         std::ranges::any_of(std::span(options.listen).first(options.listen_count), [](const Options::Listen& each) {
           return each.address.family() == coir::Address::Family::unix_path &&
                  in_folder_of_another(each.address.unix_path());
         });
}

// rights_of_root are the capabilities that coird uses once it serves, if it stays root. README.md names them.
std::uint64_t rights_of_root(const Options& options) noexcept {
  using coir::port::capability;
  std::uint64_t kept = capability(CAP_NET_BIND_SERVICE) | capability(CAP_DAC_READ_SEARCH);
  // Sockets of servers belong to their users, and so may a log's file or a folder that comes later, with logrotate or a stick.
  if (options.passes_on() || options.application_count != 0 || options.log_file != nullptr)
    kept |= capability(CAP_DAC_OVERRIDE);
  // A file that is replaced stays its owner's.
  if (writes_in_folders_of_others(options))
    kept |= capability(CAP_DAC_OVERRIDE) | capability(CAP_CHOWN) | capability(CAP_FOWNER);
  return kept;
}

// stays_root tells whether coird serves as root, with fewer rights.
bool stays_root(const Options& options, const Identity& identity) noexcept {
  return ::geteuid() == 0 && !options.no_sandbox && (!identity.changes || identity.user == 0);
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

void make_room_for_files(const Options& options, const Identity& identity) noexcept {
  if (!stays_root(options, identity)) return;
  constexpr const char* kMost = "/proc/sys/fs/file-max";
  constexpr std::uint64_t kEach = 3, kOthers = 1024;
  const std::uint64_t wanted =
      std::min<std::uint64_t>(coir::http::most_open_files(), kEach * options.server.max_connections) + kOthers;
  char room[32];
  std::uint64_t most = 0;
  const auto text = coir::slurp(kMost, room);
  if (!text || std::from_chars(text->data(), text->data() + text->size(), most).ec != std::errc{} || most >= wanted)
    return;
  coir::File file(::open(kMost, O_WRONLY | O_CLOEXEC));
  // A container may not, nor may it open more as root.
  if (file.is_open()) static_cast<void>(file.write_all(coir::format(room, wanted)));
}

bool become(const Options& options, const Identity& identity) noexcept {
  // Only the superuser has other groups to give up.
  if (identity.changes && ::geteuid() == 0 && ::setgroups(0, nullptr) != 0)
    return complain("start it as root", {"--user: ", coir::Error::from_errno(errno)});
  if (identity.changes && ::setgid(identity.group) != 0)
    return complain("start it as root", {"--group: ", coir::Error::from_errno(errno)});
  if (identity.changes && ::setuid(identity.user) != 0)
    return complain("start it as root", {"--user: ", coir::Error::from_errno(errno)});
  if (!stays_root(options, identity)) return true;
  const int error = coir::port::keep_capabilities(rights_of_root(options));
  if (error == EPERM) warn({"the sandbox is not whole: root keeps its capabilities: ", coir::Error::from_errno(error)});
  return error == 0 || error == ENOSYS || error == EPERM ||
         complain("or use --no-sandbox", {"cannot give up capabilities: ", coir::Error::from_errno(error)});
}
