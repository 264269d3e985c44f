#include "reporting.h"

#include <coir/program.h>

#include <string.h>

#include "board_id.h"
#include "complaint.h"
#include "private_file.h"

#if COIRD_MQTT

#include <coir/cancel_scope.h>
#include <coir/file.h>
#include <coir/format.h>
#include <coir/http/server.h>
#include <coir/mqtt.h>
#include <coir/nursery.h>
#include <coir/stack_size.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

using namespace std::chrono_literals;
using coir::operator""_KiB;
using coir::mqtt::Qos;

namespace {

constexpr const char* kSeeMqtt = "coird --help explains --mqtt";
constexpr std::chrono::milliseconds kLeave = 1s;  // for taking leave of a broker

}  // namespace

bool take_mqtt_discovery(const Setting& setting, Options& options) noexcept {
  if (!coir::mqtt::may_publish(setting.text)) return setting.wrong(kSeeMqtt, {"not a topic"});
  options.mqtt_discovery = setting.text;
  return true;
}

bool take_mqtt(const Setting& setting, Options& options) noexcept {
  const auto url = coir::mqtt::parse_broker_url(setting.text);
  if (!url && url.error() == coir::ErrorCode::untrusted) {
    // The line does not repeat it.
    return Setting{setting.row, "...", setting.file, setting.line}.wrong(
        "put it into a file and name that by --mqtt-password-file: everybody can read a command line",
        {"the address holds a password"});
  }
  if (!url) return setting.wrong(kSeeMqtt, {"not an address such as mqtt://user@broker:1883/prefix"});
  if (!url->path.empty() && (url->path.size() > 100 || !coir::mqtt::may_publish(url->path) || url->path.ends_with('/')))
    return setting.wrong(kSeeMqtt, {"'", url->path, "' is not a valid topic prefix"});
  if (url->secure && !coir::kTls) return setting.wrong(kSeeMqtt, {"this build has no TLS"});
  options.mqtt = setting.text;
  return true;
}

bool check_mqtt(const Options& options) noexcept {
  if (options.mqtt == nullptr) return true;
  const auto url = coir::mqtt::parse_broker_url(options.mqtt);
  if (url->secure && options.mqtt_authorities == nullptr)
    return options.wrong("mqtt", options.mqtt, "name the file of certificates to trust by --mqtt-ca",
                         {"without mqtt-ca"});
  if (options.mqtt_password_file != nullptr && url->user.empty())
    return options.wrong("mqtt-password-file", options.mqtt_password_file, "mqtt://USER@HOST",
                         {"without a user in ", options.mqtt});
  return true;
}

std::size_t reporting_bytes(const Options& options) noexcept {
  return options.mqtt == nullptr ? 0 : coir::mqtt::MqttClient::memory_bytes({});
}

bool Reporting::prepare(const Options& options) noexcept {
  if (options.mqtt == nullptr) return true;
  options_ = &options;
  const auto url = *coir::mqtt::parse_broker_url(options.mqtt);
  if (::gethostname(host_, sizeof host_ - 1) != 0 || !coir::mqtt::may_publish(host_)) strcpy(host_, "board");
  // A broker ends the connection of another client with the same id. Boards of one image share the host name.
  char number[16];
  const auto board = url.path.empty() ? board_id(options.sysfs, number) : std::string_view();
  static_cast<void>(coir::format(id_, "coird-", url.path.empty() ? std::string_view(host_) : url.path,
                                 board.empty() ? "" : "-", board, '\0'));
  std::ranges::replace(id_, '/', '-');
  const auto write = [this](std::span<char> room, std::string_view last) {
    return coir::format(room.first(room.size() - 1), prefix_, last);
  };
  if (url.path.empty()) {
    static_cast<void>(coir::format(std::span(prefix_, sizeof prefix_ - 1), "coird/", host_));
  } else {
    static_cast<void>(coir::format(std::span(prefix_, sizeof prefix_ - 1), url.path));
  }
  client_options_ = {.host = url.host, .port = url.port, .client_id = id_, .user = url.user};
  client_options_.will = {write(will_topic_, "/state"), "offline", {.retained = true}};
  command_ = {.filter = write(command_topic_, "/command")};
  if (options.mqtt_commands) client_options_.subscriptions = {&command_, 1};
  // A new figure replaces an old one that has not been sent.
  client_options_.when_full = coir::mqtt::WhenFull::drop_oldest;
  // The broker keeps no session: what was commanded while coird was away is of another day, as what is retained.
  client_options_.clean_session = true;
  client_options_.on_connection = [this](const coir::mqtt::Connection& connection) { tell(connection); };
  client_options_.on_refused = [this](std::string_view filter) { tell_refused(filter); };
  if (const char* path = options.mqtt_password_file) {
    const auto line = read_secret_line({path, &options, "mqtt-password-file"}, kSeeMqtt, password_);
    if (!line) return false;
    client_options_.password = *line;
    if (client_options_.password.empty())
      return options.wrong("mqtt-password-file", path, "its first line is the password", {"it is empty"});
  }
#if COIR_TLS
  if (url.secure) {
    const auto authorities = coir::slurp(options.mqtt_authorities, coir::account::buffers, 512_KiB);
    if (!authorities) return options.wrong("mqtt-ca", options.mqtt_authorities, kSeeMqtt, {authorities.error()});
    auto context = coir::TlsContext::client({.authorities = authorities->text()});
    if (!context) return options.wrong("mqtt-ca", options.mqtt_authorities, kSeeMqtt, {context.error()});
    trust_ = std::move(*context);
    client_options_.tls = &trust_;
  }
#endif
  return true;
}

void Reporting::start(Daemon& daemon) noexcept {
  if (options_ == nullptr) return;
  daemon_ = &daemon;
  began_ns_ = coir::monotonic_ns();
  fiber_ = coir::spawn({.name = "mqtt", .stack = 16_KiB}, [this] { report(); });
  if (!fiber_.started()) warn({"--mqtt ", options_->mqtt, ": ", fiber_.error()});
}

Reporting::~Reporting() {
  explicit_bzero(password_, sizeof password_);
}

void Reporting::stop() noexcept {
  if (options_ == nullptr || !fiber_.started()) return;
  stops_.store(true);
  due_.set();
  static_cast<void>(fiber_.join());
}

// tell says when the connection begins or ends; of attempts that fail only the first is worth a line.
void Reporting::tell(const coir::mqtt::Connection& connection) noexcept {
  const char* const broker = options_->mqtt;
  if (connection.connected) {
    say({"--mqtt ", broker, ": connected"});
    told_failure_ = told_refused_ = false;
    connected_.store(true);
    due_.set();
  } else if (!told_failure_ && !stops_.load()) {
    told_failure_ = true;
    warn({"--mqtt ", broker, ": ", connection.error, "; tried again until it is there"});
  }
}

// tell_refused says of the only subscription, once until it is granted by another connection.
void Reporting::tell_refused(std::string_view filter) noexcept {
  if (!std::exchange(told_refused_, true))
    warn({"--mqtt-commands: ", options_->mqtt, ": the broker refuses '", filter, "'; asked again"});
}

void Reporting::report() noexcept {
  auto client = coir::mqtt::MqttClient::create(client_options_);
  if (!client) return warn({"--mqtt ", options_->mqtt, ": ", client.error()});
  client_ = &*client;
  coir::Nursery nursery;
  nursery.start({.name = "mqtt client", .stack = 16_KiB}, [this] { static_cast<void>(client_->run()); });
  if (options_->mqtt_commands) nursery.start({.name = "mqtt commands", .stack = 16_KiB}, [this] { obey(); });
  for (;;) {
    const auto waited = due_.wait(coir::Deadline::after(options_->mqtt_interval));
    if (stops_.load() || (!waited && waited.error().ends_waits())) break;
    due_.reset();
    if (connected_.exchange(false)) greet();
    if (client_->connected()) publish_metrics();
  }
  // The daemon's end waits no longer for the broker.
  const auto end = coir::Deadline::after(kLeave);
  if (client_->connected()) {
    publish(topic("/state"), "offline", {.retained = true});
    static_cast<void>(client_->flush(coir::Deadline::after(kLeave / 2)));
  }
  client_->close();
  static_cast<void>(nursery.join(end));
}

std::string_view Reporting::topic(std::string_view last) noexcept {
  return coir::format(topic_, prefix_, last);
}

void Reporting::publish(std::string_view to, std::string_view payload, coir::mqtt::PublishOptions options) noexcept {
  if (const auto published = client_->publish(to, payload, options); !published) {
    warn({"--mqtt ", options_->mqtt, ": ", to, ": ", published.error()});
  }
}

void Reporting::greet() noexcept {
  publish(topic("/state"), "online", {.retained = true});
  if (options_->mqtt_discovery == nullptr) return;
  discover("connections", "Connections", "");
  discover("requests", "Requests", "");
  discover("memory", "Memory", "B");
}

// discover tells Home Assistant of a number (its "MQTT discovery").
void Reporting::discover(std::string_view id, std::string_view name, std::string_view unit) noexcept {
  // Too large for a stack; this fiber's alone.
  static char to[256], text[832];
  coir::Formatter topic(to);
  topic.add(options_->mqtt_discovery, "/sensor/", id_, "/", id, "/config");
  coir::Formatter config(text);
  config.add("{\"name\":", coir::json_quoted(name), ",\"unique_id\":\"", id_, "-", id, "\",\"state_topic\":\"", prefix_,
             "/metrics\",\"value_template\":\"{{ value_json.", id, " }}\",\"availability_topic\":\"", prefix_,
             "/state\",\"payload_available\":\"online\",\"payload_not_available\":\"offline\"");
  if (!unit.empty()) config.add(",\"unit_of_measurement\":\"", unit, "\"");
  config.add(",\"device\":{\"identifiers\":[\"", id_, "\"],\"name\":", coir::json_quoted(host_), "}}");
  if (topic.fits() && config.fits()) publish(topic.text(), config.text(), {.retained = true});
}

void Reporting::publish_metrics() noexcept {
  const auto gauges = daemon_->server->gauges();
  const auto& counters = daemon_->server->counters();
  std::uint64_t requests = 0;
  for (const auto& each : counters.responses) requests += each.load(std::memory_order_relaxed);
  char text[384];
  publish(topic("/metrics"),
          coir::format(text, "{\"uptime_s\":", (coir::monotonic_ns() - began_ns_) / 1'000'000'000,
                       ",\"connections\":", gauges.open, ",\"active\":", gauges.active, ",\"requests\":", requests,
                       ",\"refused\":", counters.refused.load(std::memory_order_relaxed),
                       ",\"bytes_received\":", counters.bytes_received.load(std::memory_order_relaxed),
                       ",\"bytes_sent\":", counters.bytes_sent.load(std::memory_order_relaxed),
                       ",\"memory\":", coir::Ledger::total().used(), "}"),
          {.qos = Qos::at_most_once});
}

// A command that the broker has kept is of another day: a drain would come at every start.
void Reporting::obey() noexcept {
  while (const auto message = client_->receive()) {
    if (message->retained) {
      warn({"--mqtt-commands: a retained command is left out"});
    } else if (message->payload == "reload") {
      reload(*daemon_);
    } else if (message->payload == "drain") {
      if (drain(*daemon_)) say({"--mqtt-commands: drain"});
    } else {
      warn({"--mqtt-commands: only reload and drain are known"});
    }
  }
}

#else

bool check_mqtt(const Options&) noexcept {
  return true;
}

std::size_t reporting_bytes(const Options&) noexcept {
  return 0;
}

Reporting::~Reporting() = default;

bool Reporting::prepare(const Options&) noexcept {
  return true;
}

void Reporting::start(Daemon&) noexcept {}
void Reporting::stop() noexcept {}

#endif
