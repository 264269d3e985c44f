#include "listen.h"

#include <coir/net/stream.h>

#include <algorithm>
#include <span>

#include "row.h"

namespace {

bool add_file(const Setting& setting, const char* (&into)[Options::kMaxCertificates], std::size_t& count) noexcept {
  if (!setting.names_file()) return false;
  if (count == Options::kMaxCertificates) return setting.wrong({"more than ", count});
  into[count++] = setting.text;
  return true;
}

}  // namespace

bool take_listen(const Setting& setting, Options& options) noexcept {
  if (options.listen_count == coir::http::Server::kMaxListeners)
    return setting.wrong({"more than ", coir::http::Server::kMaxListeners, " addresses"});
  const auto address = coir::Address::parse(setting.text);
  if (!address) return setting.wrong({address.error()});
  options.listen[options.listen_count++] = {.address = *address, .setting = &setting};
  return true;
}

bool take_tls_listen(const Setting& setting, Options& options) noexcept {
  if (!coir::kTls) return setting.wrong({"this build has no TLS"});
  if (!take_listen(setting, options)) return false;
  options.listen[options.listen_count - 1].tls = true;
  return true;
}

bool take_metrics_listen(const Setting& setting, Options& options) noexcept {
  if (!take_listen(setting, options)) return false;
  options.listen[options.listen_count - 1].metrics = options.metrics_apart = true;
  if (options.listen_count < std::size(options.listen) || !options.only_metrics()) return true;
  // The address without --listen is one more.
  --options.listen_count;
  return setting.wrong("leave one of them out", {"all ", std::size(options.listen), " addresses are for metrics"});
}

bool take_cert(const Setting& setting, Options& options) noexcept {
  return add_file(setting, options.certificates, options.certificate_count);
}

bool take_key(const Setting& setting, Options& options) noexcept {
  return add_file(setting, options.keys, options.key_count);
}

bool check_certificates(const Options& options) noexcept {
  if (options.certificate_count == options.key_count) return true;
  const Settings& given = options.settings;
  const Setting* last = given.last_of(*find_row(options.certificate_count > options.key_count ? "cert" : "key"));
  if (last->file != nullptr)
    return last->wrong(
        {"they come in pairs: cert ", options.certificate_count, " times, key ", options.key_count, " times"});
  return complain(kSeeHelp, {"--cert ", options.certificate_count, " times and --key ", options.key_count,
                             " times: they come in pairs"});
}
