#pragma once

#include <coir/tls.h>

#include <cstddef>

namespace coir::tls {

// Flaw is what is wrong with one of the inputs of a context. An Error carries it in `sys`, above every errno, with the
// number of the certificate below.
enum class Flaw : int {
  none,
  chain_unread,
  no_certificate,
  no_chain,
  certificate_expired,
  chain_expired,
  certificate_early,
  key_encrypted,
  no_key,
  key_of_another,
  no_authorities,
  bad_protocol,
  most_certificates,
  most_protocols,
  most_pins,
};

// flawed is the error of a flaw: `limit` for too many of something, else `invalid`.
Error flawed(Flaw flaw, std::size_t certificate = 0) noexcept;

// of_certificate makes the error that of another certificate. An error without a flaw stays.
Error of_certificate(Error error, std::size_t certificate) noexcept;

// phrase_of_flaw is for describe: null if the error carries no flaw.
const char* phrase_of_flaw(Error error) noexcept;

}  // namespace coir::tls
