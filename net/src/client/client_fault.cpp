#include "client/client_fault.h"

#include <coir/http/wire/response.h>

namespace coir::http {
namespace {

constexpr int kFirst = kFirstClientFault;
constexpr int kPhases = kFirst + 0x100;
constexpr int kStatuses = kFirst + 0x1000;

constexpr const char* kPhrases[] = {
    "the server's answer is no HTTP response",
    "the response's chunks are malformed",
    "the server sends interim responses without end",
    "the server has switched protocols unasked",
    "refused: a redirect from https to http",
    "the server redirects without saying where to",
    "too many redirects",
    "a redirect wants content again that cannot be repeated",
    "the proxy has refused the connection",
    "the server has sent another range than it was asked for",
    "the upload is not as long as it said",
    "the response's head is too long",
    "the content is no event stream",
    "the compressed content is malformed",
    "decompressed, the content is longer than ClientOptions::max_decoded",
    "no certificate authorities: set SSL_CERT_FILE or ClientOptions::tls",
    "refused: this client may not go there",
};

constexpr const char* kPhaseNames[] = {
    "timed out: the host's name was not found in time",
    "timed out: the server did not accept the connection",
    "timed out: the TLS handshake took too long",
    "timed out: the server did not take the request",
    "timed out: the server did not answer",
    "timed out: the server paused for too long",
};

const char* describe_status(int status) noexcept {
  switch (status / 100) {
    case 3:
      return "the server redirects";
    case 4:
      return status == 401 || status == 407                    ? "the server wants credentials"
             : status == 403                                   ? "the server forbids it"
             : status == 404 || status == 410                  ? "the server has no such thing"
             : status == 408 || status == 425 || status == 429 ? "the server wants to be asked later"
                                                               : "the server finds the request wrong";
    default:
      return "the server has failed";
  }
}

}  // namespace

Error status_error(int status) noexcept {
  const bool gone = status == 404 || status == 410;
  const bool later = status == 408 || status == 425 || status == 429 || status >= 500;
  return {gone ? ErrorCode::not_found : later ? ErrorCode::temporary : ErrorCode::invalid, kStatuses + status};
}

Error phase_error(Error error, Phase phase, Deadline total) noexcept {
  if (error.is_late() && !total.passed()) {
    error.sys = kPhases + static_cast<int>(phase);
  }
  return error;
}

std::optional<Phase> timed_out_phase(Error error) noexcept {
  const int number = error.sys - kPhases;
  if (!(error == ErrorCode::timed_out) || number < 0 || number >= static_cast<int>(std::size(kPhaseNames))) return {};
  return static_cast<Phase>(number);
}

const char* phrase_of_fault(Error error) noexcept {
  if (const auto phase = timed_out_phase(error)) return kPhaseNames[static_cast<std::size_t>(*phase)];
  const int number = error.sys - kFirst;
  if (number >= 0 && number < static_cast<int>(std::size(kPhrases))) return kPhrases[number];
  if (error.sys >= kStatuses && error.sys < kStatuses + 600) return describe_status(error.sys - kStatuses);
  return nullptr;
}

}  // namespace coir::http
