#pragma once

#include <coir/config.h>

#include "daemon.h"
#include "options/options.h"

// --mqtt reports to a broker. A build without it (-DCOIR_MQTT=OFF), or without fibers, refuses the options.
#define COIRD_MQTT (COIR_MQTT && !COIR_NO_ASYNC)
#if COIRD_MQTT
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/mqtt.h>
#if COIR_TLS
#include <coir/tls.h>
#endif
#endif

// These are null in a build that lacks them.
#if COIRD_MQTT
[[nodiscard]] bool take_mqtt(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_mqtt_discovery(const Setting& setting, Options& options) noexcept;
#else
inline constexpr Take take_mqtt = nullptr, take_mqtt_discovery = nullptr;
#endif

// check_mqtt looks at what only all options tell. False: one line has said what is wrong.
[[nodiscard]] bool check_mqtt(const Options& options) noexcept;

// reporting_bytes is what the connection to the broker of --mqtt takes, without the stacks of its fibers; 0: there is
// none.
std::size_t reporting_bytes(const Options& options) noexcept;

// Reporting tells a broker of --mqtt of the daemon, under a prefix: `state` is "online" while it runs and "offline",
// by the last will if need be, when it does not, both retained; `metrics` are numbers as JSON, each --mqtt-interval.
// `command` takes "reload" and "drain", where --mqtt-commands asks for it.
class Reporting {
 public:
  Reporting() noexcept = default;
  Reporting(const Reporting&) = delete;
  Reporting& operator=(const Reporting&) = delete;
  ~Reporting();

  // prepare reads the files of the options, before the run. False: one line has said what is wrong.
  [[nodiscard]] bool prepare(const Options& options) noexcept;
  // start begins. Both outlive this. A failure from here on is a line of the log, and tried again.
  void start(Daemon& daemon) noexcept;
  // stop takes leave of the broker, if there is one, within a second. From a fiber.
  void stop() noexcept;

#if COIRD_MQTT
 private:
  void tell(const coir::mqtt::Connection& connection) noexcept;
  void tell_refused(std::string_view filter) noexcept;
  void report() noexcept;
  void greet() noexcept;
  void discover(std::string_view id, std::string_view name, std::string_view unit) noexcept;
  void publish_metrics() noexcept;
  void obey() noexcept;
  void publish(std::string_view topic, std::string_view payload, coir::mqtt::PublishOptions options) noexcept;
  std::string_view topic(std::string_view last) noexcept;

  const Options* options_ = nullptr;
  Daemon* daemon_ = nullptr;
  coir::mqtt::ClientOptions client_options_;
  coir::mqtt::Subscription command_;
  coir::mqtt::MqttClient* client_ = nullptr;
#if COIR_TLS
  coir::TlsContext trust_;
#endif
  coir::Event due_;  // connected, or to stop
  coir::Atomic<bool> connected_ = false, stops_ = false;
  bool told_failure_ = false, told_refused_ = false;
  std::int64_t began_ns_ = 0;
  char host_[65] = {}, id_[112] = {}, prefix_[128] = {}, will_topic_[144] = {}, command_topic_[144] = {},
       topic_[144] = {}, password_[256] = {};
  coir::Fiber fiber_;
#endif
};
