#include "../announcing.h"
#include "../gateway.h"
#include "../identity.h"
#include "../reporting.h"
#include "../scripts.h"
#include "config_file.h"
#include "hosts.h"
#include "limits.h"
#include "listen.h"
#include "options.h"
#include "row.h"
#include "site.h"
#include "take.h"

namespace {

using coir::http::Limits;
using coir::http::ServerOptions;
using Action = Options::Action;

// row makes a row. A build that lacks the part has no help for it.
constexpr Row row(Section section, Kind kind, const char* name, const char* value, const char* help,
                  Take take) noexcept {
  return {.name = name,
          .section = section,
          .kind = kind,
          .value = value,
          .help = take == nullptr ? nullptr : help,
          .take = take};
}

constexpr std::uint64_t kAny = std::uint64_t{1} << 40;

using enum Section;
using enum Kind;

constexpr Row kRows[] = {
    row(listen, text, "listen", "ADDRESS",
        "127.0.0.1:80, [::1]:80, :80 or *:80 (all), unix:/path; port 0 lets the kernel choose; up to 8 times (default: "
        "127.0.0.1:8080, for this machine alone)",
        take_listen)
        .known_as('l')
        .repeats()
        .reloads(),
    row(listen, text, "tls-listen", "ADDRESS", "the same for https", take_tls_listen).repeats().reloads(),
    row(listen, text, "metrics-listen", "ADDRESS",
        "the same for /metrics and /healthz alone: /metrics is then answered nowhere else", take_metrics_listen)
        .repeats()
        .reloads(),
    row(listen, flag, "no-metrics", nullptr, "/metrics is not answered at all", take_flag<&Options::no_metrics>),
    row(listen, text, "allow-host", "NAME",
        "a name by which clients may call this machine, besides its host name, that with .local, localhost, its "
        "addresses and the names in its certificates; * for any; up to 16 times. Under another name WebSockets and all "
        "methods but GET, HEAD and OPTIONS are answered 421",
        take_host)
        .repeats(),
    row(listen, text, "mdns", "NAME",
        "be found as NAME.local, and in browsers' lists, by multicast DNS; where another machine has the name: as "
        "NAME-2, NAME-3 ...",
        take_mdns)
        .of("COIR_MDNS"),
    row(files, file, "root", "DIR", "serve the files below DIR (default: no files)", take_file<&Options::root>)
        .known_as('r'),
    row(files, flag, "dot-files", nullptr, "of these also what has a dot in front of its name, or its folder's",
        take_flag<&Options::dot_files>),
    row(files, flag, "index", nullptr, "list directories that have no index.html", take_index).of("COIR_SITE"),
    row(files, text, "cache", "PATTERN=VALUE",
        "Cache-Control of the files that fit, the first of up to 32 rules: '*' is any run of characters, '?' any one; "
        "/docs/*, with a slash in front, is the whole path, *.css a file's name",
        take_cache_rule)
        .of("COIR_SITE")
        .repeats(),
    row(files, text, "error-page", "STATUS=PATH", "the file below --root that answers a status from 400 to 599",
        take_error_page)
        .of("COIR_SITE")
        .repeats(),
    row(files, file, "allow-put", "DIR",
        "PUT and DELETE change files in the folder DIR below --root (\"/\": all of it); needs --auth. --max-body "
        "bounds a file",
        take_allow_put)
        .of("COIR_SITE"),
    row(gateway, text, "proxy", "PREFIX=URL[,URL...]",
        "pass what is asked for below PREFIX on to these servers in turn, up to 64 times: http://host:port, "
        "https://host or unix:/path. A path behind the host takes PREFIX's place; without one the path stays whole. In "
        "a file, [route PREFIX] with url and any key of --routes",
        take_proxy)
        .of("COIR_PROXY")
        .repeats()
        .reloads(),
    row(gateway, file, "proxy-ca", "FILE",
        "who signs the certificates of servers behind https (default: whom this machine trusts)", take_proxy_ca)
        .of("COIR_PROXY"),
    row(gateway, file, "proxy-cert", "FILE", "shown to servers behind https that ask who coird is", take_proxy_cert)
        .of("COIR_PROXY"),
    row(gateway, file, "proxy-key", "FILE", "its key", take_proxy_key).of("COIR_PROXY"),
    row(gateway, file, "routes", "FILE",
        "pass on what the lines of FILE say, read again at SIGHUP: PREFIX URL[,URL...] and keys: host=A[,B...] "
        "send-host=NAME balance=turn|least|client weights=N[,N...] set-request=NAME:VALUE drop-request=NAME "
        "set-response=NAME:VALUE drop-response=NAME rate=N[,BURST] health=PATH health-interval=TIME slow-start=TIME "
        "auth=FILE max-body=SIZE body-timeout=TIME body-rate=BYTES trust=ADDRESS[,ADDRESS...] forwarded request-id "
        "head=SIZE connect=TIME first-byte=TIME idle=TIME rest-idle=TIME max-waiting=N max-connections=N",
        take_routes)
        .of("COIR_PROXY")
        .reloads(),
    row(gateway, text, "fastcgi", "WHERE=ADDRESS[,ADDRESS...]",
        "have a FastCGI application at host:port or unix:/path answer, up to 4 times. WHERE is a path, for what lies "
        "below it, or .php for files below --root whose names end so. Behind a blank, in the same argument, may stand "
        "try=FILE, a script that answers what is no file, and buffer=off",
        take_fastcgi)
        .of("COIR_FASTCGI")
        .repeats(),
    row(mcp, text, "mcp", "PATH", "offer tools at PATH, usually /mcp. None is on but those of --mcp-tool", take_mcp)
        .of("COIR_MCP"),
    row(mcp, text, "mcp-tool", "NAME",
        "switch a tool on, up to 16 times: system, memory, fibers, log, time, temperature, leds, read_pin, read_adc, "
        "led, write_pin or fetch",
        take_mcp_tool)
        .of("COIR_MCP")
        .repeats(),
    row(mcp, file, "mcp-token-file", "FILE",
        "requests bring its first line as a Bearer token, instead of what --auth wants. Only its owner may be able to "
        "read FILE",
        take_mcp_token_file)
        .of("COIR_MCP"),
    row(mcp, text, "mcp-issuer", "URL",
        "requests bring an access token (OAuth 2.1) that this authorization server has issued, instead of what --auth "
        "wants",
        take_mcp_issuer)
        .of("COIR_MCP"),
    row(mcp, text, "mcp-audience", "URL", "this server, as such a token names it: https://board.example/mcp",
        take_mcp_audience)
        .of("COIR_MCP"),
    row(mcp, file, "mcp-jwt-key", "FILE",
        "tokens are JSON Web Tokens, signed by ES256; FILE has the issuer's public keys, as PEM", take_mcp_jwt_key)
        .of("COIR_MCP"),
    row(mcp, text, "mcp-introspect", "URL", "or the issuer is asked about each token here", take_mcp_introspect)
        .of("COIR_MCP"),
    row(mcp, file, "mcp-client-file", "FILE",
        "as whom: its first line is ID:SECRET. Only its owner may be able to read FILE", take_mcp_client_file)
        .of("COIR_MCP"),
    row(mcp, text, "mcp-scope", "SCOPE", "a token has to have this scope, up to 8 times", take_mcp_scope)
        .of("COIR_MCP")
        .repeats(),
    row(mcp, number, "mcp-rate", "N",
        "requests a second of each who brings a token, and of all others together; 0 for no limit (default: 0)",
        take_mcp_rate)
        .within(0, 1'000'000)
        .of("COIR_MCP"),
    row(mcp, text, "mcp-allow-origin", "ORIGIN", "pages from there, such as https://agent.example, may send requests",
        take_mcp_origin)
        .of("COIR_MCP")
        .repeats(),
    row(mcp, text, "mcp-fetch-allow", "HOST[:PORT]",
        "the tool fetch may ask this host, redirects included: a name, *.example, an address, or * for the public "
        "Internet. Addresses that are not public only where they are named themselves",
        take_mcp_fetch)
        .of("COIR_MCP")
        .repeats(),
    row(mcp, text, "mcp-mount", "PREFIX=URL|COMMAND",
        "offer another server's tools as PREFIX_NAME, up to 8 times: one at a URL of http or https, or a program that "
        "speaks by its standard streams",
        take_mcp_mount)
        .of("COIR_MCP")
        .repeats(),
    row(mcp, file, "sysfs", "DIR", "where the tools find pins and sensors (default: /sys)", take_sysfs).of("COIR_MCP"),
    row(mqtt, text, "mqtt", "URL",
        "report to a broker, mqtt://USER@HOST:PORT/PREFIX or mqtts://...: PREFIX/state, online or offline, and "
        "PREFIX/metrics (default: coird/HOSTNAME)",
        take_mqtt)
        .of("COIR_MQTT"),
    row(mqtt, file, "mqtt-password-file", "FILE", "its first line is USER's password; nobody but its owner may read it",
        take_mqtt_password_file)
        .of("COIR_MQTT"),
    row(mqtt, file, "mqtt-ca", "FILE", "who must have signed the broker's certificate; mqtts needs it", take_mqtt_ca)
        .of("COIR_MQTT"),
    row(mqtt, time, "mqtt-interval", "TIME", "between two reports of metrics (default: 60s)", take_mqtt_interval)
        .of("COIR_MQTT"),
    row(mqtt, flag, "mqtt-commands", nullptr,
        "do as PREFIX/command says: reload or drain. Every client that may publish there can stop coird",
        take_mqtt_commands)
        .of("COIR_MQTT"),
    row(mqtt, text, "mqtt-discovery", "PREFIX",
        "tell Home Assistant of the metrics, under PREFIX, usually homeassistant", take_mqtt_discovery)
        .of("COIR_MQTT"),
    row(auth, file, "auth", "FILE",
        "only who brings a password (Basic) or a token (Bearer) of which FILE holds the hash; /healthz and "
        "--metrics-listen are for everybody. Only its owner may be able to read FILE",
        take_auth)
        .of("COIR_SITE"),
    row(tls, file, "cert", "FILE",
        "a certificate with its chain, as PEM or DER; again for other names, which clients ask for by SNI (default: "
        "one that is made at the first start and kept in --state)",
        take_cert)
        .repeats()
        .reloads(),
    row(tls, file, "key", "FILE", "the key of each --cert", take_key).repeats().reloads(),
    row(tls, file, "client-ca", "FILE", "clients must show a certificate that one of these signed",
        take_file<&Options::client_authorities>)
        .reloads(),
    row(tls, file, "state", "DIR",
        "what coird makes for itself (default: /var/lib/coird): its key and certificate in self-signed.pem, the "
        "certificate for clients in self-signed.crt. The fingerprint that each start prints is that of the key, the "
        "SHA-256 of SubjectPublicKeyInfo",
        take_file<&Options::state>),
    row(limits, text, "memory", "[ACCOUNT=]SIZE",
        "all memory that grows with load, what the kernel holds for connections included (default: what the machine "
        "can spare); ACCOUNT=SIZE: of that, what connections, http (buffers), stacks, files, tls, handshakes or mcp "
        "take (handshakes: an eighth unless told; mcp: a quarter)",
        take_memory)
        .repeats(),
    row(limits, number, "keep-free", "SIZE",
        "of the machine's free memory, left to others (default: what the board needs, or a 16th of it at the start, "
        "from 1M to 64M)",
        take_keep_free)
        .within(0, kAny),
    row(limits, number, "connection-cost", "SIZE",
        "what the kernel is taken to hold for a connection (default: 4096, or 4224 on a machine of 64 MB and more)",
        take_number<&ServerOptions::kernel_bytes_per_connection>)
        .within(0, 1 << 20),
    row(limits, number, "max-connections", "N", "connections held at once (default: as the board has it, or what fits)",
        take_max_connections)
        .within(1, 1'000'000),
    row(limits, number, "backlog", "N",
        "connections the kernel holds until they are accepted (default: as the board has it)",
        take_number<&Options::backlog>)
        .within(1, 65'535),
    row(limits, number, "max-active", "N",
        "requests served at once, each with its buffers (default: 256, or what fits)", take_max_active)
        .within(1, 100'000),
    row(limits, number, "max-requests", "N", "requests on one connection, 0 for no limit (default: 0)",
        take_number<&ServerOptions::max_requests_per_connection>)
        .within(0, UINT32_MAX),
    row(limits, number, "limit-connections", "N",
        "connections of one address at once, of IPv6 of one /64; one more is answered 429; 0 for no limit (default: 0)",
        take_number<&ServerOptions::max_connections_per_client>)
        .within(0, 1'000'000),
    row(limits, number, "limit-rate", "N", "requests a second of one address, as above (default: 0)",
        take_number<&ServerOptions::max_requests_per_client>)
        .within(0, 1'000'000),
    row(limits, number, "max-body", "BYTES", "content of one request (default: 1M)", take_number<&Limits::max_body>)
        .within(0, kAny),
    row(timeouts, time_or_zero, "idle-timeout", "TIME", "between two requests; 0: never closed (default: 60s)",
        take_time<&ServerOptions::idle_timeout>),
    row(timeouts, time_or_zero, "evict-after", "TIME",
        "idle for so long, a connection may be closed to make room for a new one; 0 for any (default: 10s)",
        take_time<&ServerOptions::evict_after>),
    row(timeouts, time, "handshake-timeout", "TIME", "for the handshake of TLS (default: 10s)",
        take_time<&ServerOptions::handshake_timeout>),
    row(timeouts, time, "header-timeout", "TIME", "for the head of a request (default: 10s)",
        take_time<&ServerOptions::header_timeout>),
    row(timeouts, time, "body-timeout", "TIME", "while the client sends nothing of a request's content (default: 30s)",
        take_time<&ServerOptions::body_timeout>),
    row(timeouts, number, "body-rate", "BYTES",
        "a second that it sends at least of it, once it has been waited for as long as that; 0 for any rate (default: "
        "500)",
        take_number<&ServerOptions::body_rate>)
        .within(0, UINT32_MAX),
    row(timeouts, time, "write-timeout", "TIME", "while the client takes nothing (default: 30s)",
        take_time<&ServerOptions::write_timeout>),
    row(timeouts, time, "drain-timeout", "TIME", "for requests in progress at SIGTERM (default: 30s)",
        take_time<&Options::drain_timeout>)
        .reloads(),
    row(process, text, "user", "NAME",
        "become this user once the addresses are bound and the files are read; --state, and what SIGHUP reads again, "
        "must be open to it",
        take_user),
    row(process, text, "group", "NAME", "and this group (default: the user's own)", take_group),
    row(process, flag, "access-log", nullptr,
        "one line for each request on standard error, in the combined format with seconds and scheme behind it; "
        "dropped, counted and told while nobody reads it",
        take_flag<&ServerOptions::access_log>),
    row(process, file, "trace", "FILE",
        "write the latest state changes of fibers there at the end, for ui.perfetto.dev (in a build with tracing)",
        take_trace),
    row(action, file, "config", "FILE",
        "read the options from FILE, too; what the command line says of an option counts", take_config)
        .known_as('c'),
    row(action, flag, "check", nullptr, "check the options and the files that they name, and exit",
        take_flag<&Options::check>),
    row(action, flag, "print-config", nullptr, "print the options as a file for --config, and exit",
        take_action<Action::print_config>),
    row(action, flag, "print-budget", nullptr, "print what the memory is planned for, and exit",
        take_action<Action::print_budget>),
    row(action, text, "hash-password", "NAME",
        "print NAME's line for --auth's file, of the password on standard input, and exit", take_hash_password)
        .of("COIR_SITE"),
    row(action, text, "hash-token", "NAME", "the same of a token of 20 characters or more", take_hash_token)
        .of("COIR_SITE"),
    row(action, flag, "probe", nullptr, "print what this kernel offers and what is used instead, and exit",
        take_action<Action::probe>),
    row(action, flag, "help", nullptr, "print this and exit", take_action<Action::help>).known_as('h'),
    row(action, flag, "version", nullptr, "print the version and the board, and exit", take_action<Action::version>)
        .known_as('V'),
};

}  // namespace

std::span<const Row> all_rows() noexcept {
  return kRows;
}
