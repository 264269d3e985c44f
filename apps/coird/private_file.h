#pragma once

#include <coir/file.h>
#include <sys/types.h>

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "options/options.h"

// NamedFile is a file, and the option or the key of a route that names it.
struct NamedFile {
  const char* path;
  const Options* options = nullptr;  // null: the line names the path alone
  const char* option = nullptr;
  const Setting* key = nullptr;  // of a section [route PREFIX]

  // wrong says what is wrong with the file, as Options::wrong, and returns false.
  bool wrong(const char* cure, std::initializer_list<Word> what) const noexcept;
};

// open_named opens a file that is no secret. Nothing: one line has said why not.
std::optional<coir::File> open_named(const NamedFile& named, const char* cure) noexcept;

// open_private opens a file with a secret: a key, a token, a password, credentials. Its owner is root, coird's user, or the one
// that coird becomes. Only its owner may change it, and others may not read it; its group may if it is root's, one of this
// process's, or the one that coird becomes. Nothing: one line has said why not.
std::optional<coir::File> open_private(const NamedFile& named, const char* cure) noexcept;

// secrets_are_for is called once, before any secret is read, with whom coird becomes by --user or --group.
void secrets_are_for(uid_t user, gid_t group) noexcept;

// give_secret gives a file of root's, which coird reads again later, to whom coird becomes. Else, and afterwards, it
// does nothing.
void give_secret(int fd) noexcept;

// read_secret_line reads the first line of such a file into `room`. Nothing: one line has said why not.
std::optional<std::string_view> read_secret_line(const NamedFile& named, const char* cure,
                                                 std::span<char> room) noexcept;

// read_token reads such a line and insists on visible ASCII, 20 bytes or more. Nothing: one line has said why not.
std::optional<std::string_view> read_token(const NamedFile& named, const char* cure, std::span<char> room) noexcept;

// SecretBytes wipes the bytes of a file when it is destroyed.
struct SecretBytes {
  ~SecretBytes();
  coir::FileBytes bytes;
};
