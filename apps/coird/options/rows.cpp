#include <algorithm>
#include <array>
#include <iterator>

#include "../announcing.h"
#include "../gateway.h"
#include "../reporting.h"
#include "../scripts.h"
#include "config_file.h"
#include "hosts.h"
#include "limits.h"
#include "listen.h"
#include "mcp_rows.h"
#include "options.h"
#include "row.h"
#include "site.h"
#include "steering_rows.h"
#include "take.h"

namespace {

using coir::http::Limits;
using coir::http::ServerOptions;
using Action = Options::Action;

using enum Section;
using enum Kind;

constexpr std::uint64_t kAny = std::uint64_t{1} << 40;
constexpr Row kRows[] = {
    row(listen, text, "listen", "ADDRESS",
        "127.0.0.1:80, [::1]:80, :80 or *:80 (all addresses), or unix:/path. With port 0 the kernel chooses one. Up to "
        "8 times (default: 127.0.0.1:8080, for this machine alone)",
        take_listen)
        .known_as('l')
        .repeats()
        .reloads(),
    row(listen, text, "tls-listen", "ADDRESS", "the same for HTTPS", take_tls_listen).repeats().reloads(),
    row(listen, text, "metrics-listen", "ADDRESS",
        "the same for /metrics and /healthz alone. No other listener then answers /metrics", take_metrics_listen)
        .repeats()
        .reloads(),
    row(listen, flag, "no-metrics", nullptr, "no listener answers /metrics", take_flag<&Options::no_metrics>),
    row(listen, text, "allow-host", "NAME",
        "another name by which clients may call this machine, besides its host name, the same with .local, localhost, "
        "its addresses and the names in its certificates. * allows any name. Up to 16 times. Under any other name, "
        "WebSockets and all methods but GET, HEAD and OPTIONS are answered 421",
        take_host)
        .repeats(),
    row(listen, text, "mdns", "NAME",
        "announce this machine as NAME.local by multicast DNS, and in the lists of browsers. If NAME is taken: NAME-2, "
        "NAME-3 ...",
        take_mdns)
        .of("COIR_MDNS"),
    row(files, file, "root", "DIR", "serve the files below DIR (default: no files)", take_file<&Options::root>)
        .known_as('r'),
    row(files, flag, "dot-files", nullptr, "also serve names that begin with a dot, and the files in such folders",
        take_flag<&Options::dot_files>),
    row(files, flag, "index", nullptr, "list the directories that have no index.html",
        built(COIR_SITE, take_flag<&Options::index>))
        .of("COIR_SITE"),
    row(files, text, "cache", "PATTERN=VALUE",
        "Cache-Control for the files that match; the first of up to 32 rules counts. '*' matches any characters, '?' "
        "one. A pattern with a slash in front matches the whole path (/docs/*), others the file's name (*.css)",
        take_cache_rule)
        .of("COIR_SITE")
        .repeats(),
    row(files, text, "error-page", "STATUS=PATH", "answer a status from 400 to 599 with this file below --root",
        take_error_page)
        .of("COIR_SITE")
        .repeats(),
    row(files, file, "allow-put", "DIR",
        "PUT and DELETE change the files in this folder below --root (\"/\" is all of it), up to --max-body. It needs "
        "--auth",
        built(COIR_SITE, take_file<&Options::writable>))
        .of("COIR_SITE"),
    row(gateway, text, "proxy", "PREFIX=URL[,URL...]",
        "forward requests below PREFIX to these servers in turn, up to 64 times: http://host:port, https://host or "
        "unix:/path. A path after the host replaces PREFIX; without one the path stays whole. In a file, use [route "
        "PREFIX] with url and any key of --routes",
        take_proxy)
        .of("COIR_PROXY")
        .repeats()
        .reloads(),
    row(gateway, file, "proxy-ca", "FILE",
        "the authorities that sign the certificates of HTTPS servers (default: those that this machine trusts)",
        built(COIRD_GATEWAY, take_file<&Options::proxy_authorities>))
        .of("COIR_PROXY"),
    row(gateway, file, "proxy-cert", "FILE", "the certificate for HTTPS servers that ask for one",
        built(COIRD_GATEWAY, take_file<&Options::proxy_certificate>))
        .of("COIR_PROXY"),
    row(gateway, file, "proxy-key", "FILE", "the key of --proxy-cert",
        built(COIRD_GATEWAY, take_file<&Options::proxy_key>))
        .of("COIR_PROXY"),
    row(gateway, file, "routes", "FILE",
        "forward requests as the lines of FILE say; SIGHUP reads it again. A line is PREFIX URL[,URL...] and keys: "
        "host=A[,B...] send-host=NAME balance=turn|least|client weights=N[,N...] set-request=NAME:VALUE "
        "drop-request=NAME set-response=NAME:VALUE drop-response=NAME rate=N[,BURST] health=PATH health-interval=TIME "
        "slow-start=TIME auth=FILE max-body=SIZE body-timeout=TIME body-rate=BYTES trust=ADDRESS[,ADDRESS...] "
        "forwarded request-id head=SIZE connect=TIME first-byte=TIME idle=TIME rest-idle=TIME max-waiting=N "
        "max-connections=N",
        built(COIRD_GATEWAY, take_file<&Options::routes>))
        .of("COIR_PROXY")
        .reloads(),
    row(gateway, text, "fastcgi", "WHERE=ADDRESS[,ADDRESS...]",
        "forward requests to a FastCGI application at host:port or unix:/path, up to 4 times. WHERE is a path, for "
        "all paths below it, or an ending such as .php, for the files below --root that end in it. Options may "
        "follow the addresses in the same argument, after a blank: try=FILE names the script for paths that are no "
        "file; buffer=off sends uploads as they come; first-byte=TIME is how long an answer may take to begin, by "
        "default 60s; max-body=SIZE limits uploads",
        take_fastcgi)
        .of("COIR_FASTCGI")
        .repeats(),
    row(mqtt, text, "mqtt", "URL",
        "report to a broker, mqtt://USER@HOST:PORT/PREFIX or mqtts://...: PREFIX/state is online or offline, "
        "PREFIX/metrics has the figures (default PREFIX: coird/HOSTNAME)",
        take_mqtt)
        .of("COIR_MQTT"),
    row(mqtt, file, "mqtt-password-file", "FILE",
        "the first line is USER's password. Only the owner may be able to read FILE",
        built(COIRD_MQTT, take_file<&Options::mqtt_password_file>))
        .of("COIR_MQTT"),
    row(mqtt, file, "mqtt-ca", "FILE", "the authorities that sign the broker's certificate; mqtts needs them",
        built(COIRD_MQTT, take_file<&Options::mqtt_authorities>))
        .of("COIR_MQTT"),
    row(mqtt, duration, "mqtt-interval", "TIME", "the time between two reports (default: 60s)",
        built(COIRD_MQTT, take_time<&Options::mqtt_interval>))
        .of("COIR_MQTT"),
    row(mqtt, flag, "mqtt-commands", nullptr,
        "obey PREFIX/command: reload or drain. Every client that may publish there can stop coird",
        built(COIRD_MQTT, take_flag<&Options::mqtt_commands>))
        .of("COIR_MQTT"),
    row(mqtt, text, "mqtt-discovery", "PREFIX",
        "announce the metrics to Home Assistant under PREFIX, usually homeassistant", take_mqtt_discovery)
        .of("COIR_MQTT"),
    row(auth, file, "auth", "FILE",
        "every request needs a password (Basic) or a token (Bearer) whose hash is in FILE, except /healthz and "
        "requests through --metrics-listen. Only the owner may be able to read FILE",
        take_auth)
        .of("COIR_SITE"),
    row(tls, file, "cert", "FILE",
        "a certificate with its chain, as PEM or DER. Repeat it for other names: clients choose by SNI (default: one "
        "that coird makes at the first start and keeps in --state)",
        take_cert)
        .repeats()
        .reloads(),
    row(tls, file, "key", "FILE", "the key of each --cert", take_key).repeats().reloads(),
    row(tls, file, "client-ca", "FILE", "a client must show a certificate that one of these authorities signed",
        take_file<&Options::client_authorities>)
        .reloads(),
    row(tls, file, "state", "DIR",
        "the folder for coird's own files (default: /var/lib/coird): its key and certificate in self-signed.pem, the "
        "certificate for clients in self-signed.crt, and, if this option is given, the record of how its runs ended "
        "in the file crashes. Each start prints the fingerprint of the key, the SHA-256 of its SubjectPublicKeyInfo",
        take_given_file<&Options::state, &Options::state_given>),
    row(limits, text, "memory", "[ACCOUNT=]SIZE",
        "the limit of all memory that grows with load, the kernel's memory for connections included (default: what the "
        "machine can spare). ACCOUNT=SIZE limits one account: connections, http (buffers), stacks, files, tls, "
        "handshakes (default: an eighth) or mcp (default: a quarter)",
        take_memory)
        .repeats(),
    row(limits, number, "keep-free", "SIZE",
        "the free memory that coird leaves to other programs (default: the board's figure, or a 16th of the free "
        "memory at the start, from 1M to 64M)",
        take_keep_free)
        .within(0, kAny),
    row(limits, number, "connection-cost", "SIZE",
        "the kernel's memory for a connection, as an estimate (default: 4096, or 4224 on a machine of 64 MB and more)",
        take_number<&ServerOptions::kernel_bytes_per_connection>)
        .within(0, 1 << 20),
    row(limits, number, "max-connections", "N", "connections at once (default: the board's figure, or as many as fit)",
        take_max_connections)
        .within(1, 1'000'000),
    row(limits, number, "backlog", "N",
        "connections that the kernel holds until coird accepts them (default: the board's figure)",
        take_number<&Options::backlog>)
        .within(1, 65'535),
    row(limits, number, "max-active", "N",
        "requests served at once, each with its buffers (default: 256, or as many as fit)", take_max_active)
        .within(1, 100'000),
    row(limits, number, "max-requests", "N", "requests on one connection, 0 for no limit (default: 0)",
        take_number<&ServerOptions::max_requests_per_connection>)
        .within(0, UINT32_MAX),
    row(limits, number, "limit-connections", "N",
        "connections of one client address at once, for IPv6 of one /64; one more is answered 429; 0: no limit "
        "(default: 0)",
        take_number<&ServerOptions::max_connections_per_client>)
        .within(0, 1'000'000),
    row(limits, number, "limit-rate", "N",
        "requests a second of one client address, counted in the same way (default: 0)",
        take_number<&ServerOptions::max_requests_per_client>)
        .within(0, 1'000'000),
    row(limits, number, "max-body", "BYTES", "the content of one request (default: 1M)", take_number<&Limits::max_body>)
        .within(0, kAny),
    row(timeouts, duration_or_zero, "idle-timeout", "TIME", "between two requests; 0: never close (default: 60s)",
        take_time<&ServerOptions::idle_timeout>),
    row(timeouts, duration_or_zero, "evict-after", "TIME",
        "a connection that has been idle this long may be closed to make room for a new one; 0: at any time (default: "
        "10s)",
        take_time<&ServerOptions::evict_after>),
    row(timeouts, duration, "handshake-timeout", "TIME", "for the TLS handshake (default: 10s)",
        take_time<&ServerOptions::handshake_timeout>),
    row(timeouts, duration, "header-timeout", "TIME", "for the head of a request (default: 10s)",
        take_time<&ServerOptions::header_timeout>),
    row(timeouts, duration, "body-timeout", "TIME",
        "while the client sends nothing of a request's content (default: 30s)",
        take_time<&ServerOptions::body_timeout>),
    row(timeouts, number, "body-rate", "BYTES",
        "the lowest rate of a request's content in bytes a second, after body-timeout; 0: any rate (default: 500)",
        take_number<&ServerOptions::body_rate>)
        .within(0, UINT32_MAX),
    row(timeouts, duration, "write-timeout", "TIME", "while the client reads nothing (default: 30s)",
        take_time<&ServerOptions::write_timeout>),
    row(timeouts, duration, "drain-timeout", "TIME", "for requests in progress at SIGTERM (default: 30s)",
        take_time<&Options::drain_timeout>),
    row(process, text, "user", "NAME",
        "become this user once the addresses are bound and the files are read. The user must be able to write to "
        "--state, and to read the files that SIGHUP reads again",
        take_file<&Options::user>),
    row(process, text, "group", "NAME", "become this group (default: the user's own)", take_file<&Options::group>),
    row(process, flag, "no-sandbox", nullptr,
        "switch the sandbox off. In the sandbox coird makes only the system calls of a server, and writes only below "
        "--state, --allow-put, the folder of --log-file, /tmp, /dev and /sys, as far as the kernel can enforce this. "
        "As root it has few capabilities. With a program in --mcp-mount only the capabilities are limited",
        take_flag<&Options::no_sandbox>),
    row(process, file, "watchdog", "DEVICE",
        "feed this watchdog device, such as /dev/watchdog, which restarts the machine if it is not fed. coird stops "
        "feeding it, and names the cause in the log, if a fiber keeps its worker for half of the timeout or a group "
        "of fibers does not report. A device that appears late is opened then (default: none)",
        built(coir::kFibers, take_file<&Options::watchdog>))
        .of("fibers"),
    row(process, duration, "watchdog-timeout", "TIME",
        "the timeout that --watchdog requests of the device, in whole seconds; the log names the one that the device "
        "uses (default: 30s)",
        built(coir::kFibers, take_time<&Options::watchdog_timeout>))
        .of("fibers"),
    row(process, file, "safe-file", "FILE",
        "start in safe mode while FILE is there, such as one on the partition that a card reader shows (default: none)",
        take_file<&Options::safe_file>),
    row(process, flag, "access-log", nullptr,
        "write a line for each request to standard error, in the combined format, followed by the seconds and the "
        "scheme. Lines are dropped and counted while standard error is not read",
        take_flag<&ServerOptions::access_log>),
    row(process, file, "trace", "FILE",
        "write the latest state changes of fibers to FILE at the end, for ui.perfetto.dev (in a build with tracing)",
        take_trace),
    row(action, file, "config", "FILE", "also read options from FILE. The command line takes precedence", take_config)
        .known_as('c'),
    row(action, flag, "check", nullptr, "check the options and the files that they name, and exit",
        take_flag<&Options::check>),
    row(action, flag, "print-config", nullptr, "print the options as a file for --config, and exit",
        take_action<Action::print_config>),
    row(action, flag, "print-budget", nullptr, "print the memory plan, and exit", take_action<Action::print_budget>),
    row(action, text, "hash-password", "NAME",
        "print NAME's line for the file of --auth, from the password on standard input, and exit", take_hash_password)
        .of("COIR_SITE"),
    row(action, text, "hash-token", "NAME", "the same for a token of at least 20 characters", take_hash_token)
        .of("COIR_SITE"),
    row(action, flag, "probe", nullptr, "print the features of this kernel, and what replaces missing ones, and exit",
        take_action<Action::probe>),
    row(action, flag, "help", nullptr, "print this and exit", take_action<Action::help>).known_as('h'),
    row(action, flag, "version", nullptr, "print the version and the board, and exit", take_action<Action::version>)
        .known_as('V'),
};

constexpr auto kAllRows = [] {
  std::array<Row, std::size(kRows) + std::size(kMcpRows) + std::size(kSteeringRows)> all{};
  const auto behind = std::ranges::copy(kMcpRows, std::ranges::copy(kRows, all.begin()).out).out;
  std::ranges::copy(kSteeringRows, behind);
  return all;
}();

}  // namespace

std::span<const Row> all_rows() noexcept {
  return kAllRows;
}
