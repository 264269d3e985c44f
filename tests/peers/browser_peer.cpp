// A page that uses what a browser has for streams: EventSource, WebSocket and a form with a file. Prints its port, and what
// the page tells; serves until SIGTERM.
//
//   /          the page; ?N: it loads itself anew N times; ?picture: it is loaded when it shows what it has heard
//   /events    three events, and whatever follows
//   /socket    an echo
//   /upload    a form with a file, of which the answer is the size
//   /told      what the page tells, with what the server still holds
//   /drawn     nothing, as soon as the page has told

#include <coir/detail/accounts.h>
#include <coir/event.h>
#include <coir/events.h>
#include <coir/format.h>
#include <coir/http/content.h>
#include <coir/http/websocket.h>
#include <coir/worker_stack.h>

#include "tests/support/serve_printed.h"

using namespace coir;
using namespace coir::http;

namespace {

constexpr std::string_view kPage = R"(<!doctype html><title>streams</title>
<style>body { font: 20px sans-serif; margin: 2em } td { border: 1px solid; padding: .3em }</style>
<h1>A page of coir's</h1>
<table><tr><td>EventSource<td id=events><tr><td>WebSocket<td id=socket><tr><td>form upload<td id=upload></table>
<script>
if (location.search == '?picture') document.body.append(Object.assign(new Image(), {src: '/drawn'}));
const tell = text => fetch('/told', {method: 'POST', body: text});
onerror = (text) => tell('error: ' + text);
onunhandledrejection = event => tell('error: ' + event.reason);
const events = new Promise(done => {
  const heard = [], source = new EventSource('/events');
  source.onmessage = event => { heard.push(event.lastEventId + '=' + event.data); if (heard.length == 3) done(heard.join()); };
});
const socket = new Promise((done, fail) => {
  const socket = new WebSocket('ws://' + location.host + '/socket'), heard = [];
  socket.onopen = () => { socket.send('text'); socket.send(new Uint8Array(70000)); };
  socket.onmessage = event => {
    heard.push(event.data.size ?? event.data);
    if (heard.length == 2) { socket.close(4001, 'enough'); done(heard.join()); }
  };
  socket.onerror = fail;
});
const form = new FormData();
form.append('name', 'image');
form.append('file', new Blob([new Uint8Array(300000)]), 'a.bin');
const upload = fetch('/upload', {method: 'POST', body: form}).then(answer => answer.text());
const left = Number(location.search.slice(1));
Promise.all([events, socket, upload]).then(async all => {
  ['events', 'socket', 'upload'].forEach((id, i) => document.getElementById(id).textContent = all[i]);
  await tell(all.join(' '));
  if (left > 1) location.replace('/?' + (left - 1)); else document.title = 'done';
});
</script>
)";

EventHub* g_events;
Event g_told;

void upload(Exchange& exchange) {
  Multipart form(exchange, exchange.scratch());
  std::uint64_t bytes = 0;
  for (;;) {
    const auto part = form.next();
    if (!part && part.error() == ErrorCode::end_of_stream) break;
    if (!part) return;
    char piece[512];
    while (const auto got = form.read(piece)) bytes += part->name == "file" ? *got : 0;
  }
  char text[24];
  exchange.respond(200, "text/plain", format(text, bytes));
}

void told(Exchange& exchange) {
  char text[300];
  const auto content = read_content(exchange, text);
  if (!content) return;
  const std::size_t open = account::connections.used();
  const std::size_t subscribers = g_events->subscribers();
  on_worker_stack([&] {
    printf("told: %.*s; %zu subscribers, %zu bytes of connections\n", static_cast<int>(content->size()),
           content->data(), subscribers, open);
    fflush(stdout);
  });
  g_told.set();
  exchange.respond_status(200);
}

void drawn(Exchange& exchange) {
  static_cast<void>(g_told.wait(Deadline::after(std::chrono::seconds(60))));
  exchange.respond(200, "image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'/>");
}

void echo(Exchange& exchange) {
  auto socket = accept_websocket(exchange);
  while (socket) {
    const auto message = socket->receive();
    if (!message) return;
    if (!(message->text ? socket->send_text(message->bytes) : socket->send_binary(message->bytes))) return;
  }
}

void serve(Exchange& exchange) {
  const std::string_view path = exchange.request().path;
  if (path == "/") return exchange.respond(200, "text/html; charset=utf-8", kPage, "Cache-Control: no-store\r\n");
  if (path == "/events") return (*g_events)(exchange);
  if (path == "/socket") return echo(exchange);
  if (path == "/upload") return upload(exchange);
  if (path == "/told") return told(exchange);
  if (path == "/drawn") return drawn(exchange);
  exchange.respond_status(path == "/favicon.ico" ? 204 : 404);
}

}  // namespace

int main() {
  EventHub events({.replay = true});
  g_events = &events;
  for (const std::string_view text : {"one", "two", "three"}) {
    if (!events.publish({.data = text, .type = {}, .id = text.substr(0, 1), .retry_ms = {}})) return 1;
  }
  return test::serve_printed(serve);
}
