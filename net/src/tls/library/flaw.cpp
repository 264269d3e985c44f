#include "tls/library/flaw.h"

namespace coir {

namespace tls {
namespace {

using Input = TlsFault::Input;

constexpr int kShift = 16;  // every errno is below
constexpr int kCertificates = (1 << kShift) - 1;

struct Words {
  const char* phrase;
  Input input;
};

// In the order of Flaw.
constexpr Words kWords[] = {
    {nullptr, Input::none},
    {"a certificate of the chain cannot be read", Input::certificate},
    {"there is no certificate", Input::certificate},
    {"the certificate is no certificate, or of a kind that this build lacks", Input::certificate},
    {"the certificate has expired", Input::certificate},
    {"a certificate of the chain has expired", Input::certificate},
    {"the certificate is not valid yet", Input::certificate},
    {"the key is encrypted", Input::key},
    {"the key is no private key, or of a kind that this build lacks", Input::key},
    {"the key is not the certificate's", Input::key},
    {"the authorities are no certificates", Input::authorities},
    {"a protocol's name is bad", Input::protocols},
    {"there are too many certificates", Input::certificate},
    {"there are too many protocols", Input::protocols},
    {"there are too many pins", Input::none},
};
static_assert(sizeof kWords / sizeof *kWords == static_cast<std::size_t>(Flaw::most_pins) + 1);

const Words& words_of(Error error) noexcept {
  const bool carries = error == ErrorCode::invalid || error == ErrorCode::limit;
  const auto flaw = static_cast<std::size_t>(error.sys >> kShift);
  return carries && flaw < sizeof kWords / sizeof *kWords ? kWords[flaw] : kWords[0];
}

}  // namespace

Error flawed(Flaw flaw, std::size_t certificate) noexcept {
  const bool too_many = flaw == Flaw::most_certificates || flaw == Flaw::most_protocols || flaw == Flaw::most_pins;
  return {too_many ? ErrorCode::limit : ErrorCode::invalid,
          (static_cast<int>(flaw) << kShift) | static_cast<int>(certificate)};
}

Error of_certificate(Error error, std::size_t certificate) noexcept {
  return words_of(error).phrase != nullptr ? flawed(static_cast<Flaw>(error.sys >> kShift), certificate) : error;
}

const char* phrase_of_flaw(Error error) noexcept {
  return words_of(error).phrase;
}

}  // namespace tls

TlsFault tls_fault(Error error) noexcept {
  const tls::Words& words = tls::words_of(error);
  return {words.input, words.phrase != nullptr ? static_cast<std::size_t>(error.sys & tls::kCertificates) : 0};
}

}  // namespace coir
