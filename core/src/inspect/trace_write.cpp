#include <coir/config.h>
#include <coir/trace.h>

#include "fiber/trace_mark.h"

namespace coir {

bool tracing() noexcept {
  return kTracing;
}

}  // namespace coir

#if COIR_TRACE

#include <errno.h>
#include <unistd.h>

#include "fiber/describe.h"
#include "schedule/trace_ring.h"
#include "schedule/visit.h"

namespace coir {

namespace {

// The file shows two processes: the tracks of one are workers, those of the other are fibers.
constexpr std::uint64_t kWorkers = 1, kFibers = 2;

// JsonFile writes the events of the file one by one, each as an object on a line of its own.
class JsonFile {
 public:
  explicit JsonFile(int fd) noexcept : fd_(fd) { text("{\"displayTimeUnit\":\"ns\",\"traceEvents\":["); }

  JsonFile& text(const char* s) noexcept {
    while (*s != '\0') put(*s++);
    return *this;
  }
  // quoted writes any string as JSON; a byte that is not ASCII becomes a question mark.
  JsonFile& quoted(const char* s) noexcept {
    put('"');
    for (; *s != '\0'; ++s) {
      if (*s == '"' || *s == '\\') put('\\');
      put(*s >= ' ' && *s <= '~' ? *s : '?');
    }
    put('"');
    return *this;
  }
  JsonFile& number(std::uint64_t value, unsigned digits = 1) noexcept {
    char reversed[20];
    std::size_t count = 0;
    for (; value != 0 || count < digits; value /= 10) reversed[count++] = static_cast<char>('0' + value % 10);
    while (count > 0) put(reversed[--count]);
    return *this;
  }
  // micros writes nanoseconds as the file's unit.
  JsonFile& micros(std::uint64_t ns) noexcept { return number(ns / 1000).text(".").number(ns % 1000, 3); }

  // event begins one: {"ph":...,"ts":...,"pid":...,"tid":..., and what the caller adds before `end`.
  JsonFile& event(const char* phase, std::uint64_t ns, std::uint64_t process, std::uint64_t track) noexcept {
    text(first_ ? "\n" : ",\n");
    first_ = false;
    text("{\"ph\":\"").text(phase).text("\",\"ts\":").micros(ns);
    return text(",\"pid\":").number(process).text(",\"tid\":").number(track);
  }
  JsonFile& name(const char* s) noexcept { return text(",\"name\":").quoted(s); }
  JsonFile& field(const char* key, std::uint64_t value) noexcept {
    return text(",\"").text(key).text("\":").number(value);
  }
  void end() noexcept { put('}'); }

  // label names a process or a track.
  void label(const char* what, std::uint64_t process, std::uint64_t track, const char* prefix,
             const std::uint64_t* index) noexcept {
    event("M", 0, process, track).name(what).text(",\"args\":{\"name\":\"").text(prefix);
    if (index != nullptr) number(*index);
    text("\"}").end();
  }

  bool finish(std::uint64_t forgotten) noexcept {
    text("\n],\"otherData\":{\"forgotten\":").number(forgotten).text("}}\n");
    flush();
    return error_ == 0;
  }
  int error() const noexcept { return error_; }

 private:
  void put(char c) noexcept {
    if (used_ == sizeof buffer_) flush();
    buffer_[used_++] = c;
  }
  void flush() noexcept {
    for (std::size_t at = 0; at < used_ && error_ == 0;) {
      const ssize_t n = write(fd_, buffer_ + at, used_ - at);
      if (n >= 0) {
        at += static_cast<std::size_t>(n);
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
    used_ = 0;
  }

  int fd_;
  int error_ = 0;
  bool first_ = true;
  std::size_t used_ = 0;
  char buffer_[512];
};

// Track belongs to one worker, or to all other threads. The slice of a fiber is written when the fiber has left.
class Track {
 public:
  Track(JsonFile& file, std::uint64_t index) noexcept : file_(file), index_(index) {}

  void tell(const TraceEvent& event) noexcept {
    switch (event.kind) {
      case TraceKind::spawned:
        instant(event, "spawned");
        file_.event("M", 0, kFibers, event.fiber).name("thread_name");
        file_.text(",\"args\":{\"name\":").quoted(trace_name(event.name)).text("}").end();
        break;
      case TraceKind::run:
        close(event.at_ns, "");  // what it left by was forgotten
        open_ = event;
        break;
      case TraceKind::parked:
        close(event.at_ns, wait_name(event.wait));
        break;
      case TraceKind::yielded:
        close(event.at_ns, "yield");
        break;
      case TraceKind::ended:
        close(event.at_ns, "end");
        break;
      case TraceKind::woken:
        woken(event);
        break;
      case TraceKind::stolen:
        instant(event, "stolen");
        break;
      case TraceKind::idle:
        slice(event.since_ns, event.at_ns, index_, kWorkers, "idle", "worker");
        file_.end();
        break;
    }
    last_ns_ = event.at_ns;
  }

  void finish() noexcept { close(last_ns_, ""); }

 private:
  void slice(std::uint64_t from, std::uint64_t to, std::uint64_t track, std::uint64_t process, const char* name,
             const char* category) noexcept {
    file_.event("X", from, process, track).name(name).text(",\"dur\":").micros(to > from ? to - from : 0);
    file_.text(",\"cat\":").quoted(category);
  }

  // close writes the slice of the fiber that ran until now, and `why` it left.
  void close(std::uint64_t at_ns, const char* why) noexcept {
    if (open_.fiber == 0) return;
    slice(open_.at_ns, at_ns, index_, kWorkers, trace_name(open_.name), "run");
    file_.text(",\"args\":{\"fiber\":").number(open_.fiber).text(",\"left by\":").quoted(why).text("}").end();
    if (open_.flow != 0) {
      file_.event("f", open_.at_ns, kWorkers, index_).name("wake").text(",\"cat\":\"wake\",\"bp\":\"e\"");
      file_.field("id", open_.flow).end();
    }
    open_.fiber = 0;
  }

  void woken(const TraceEvent& event) noexcept {
    if (event.since_ns != 0) {
      slice(event.since_ns, event.at_ns, event.fiber, kFibers, wait_name(event.wait), "wait");
      file_.text(",\"args\":{\"object\":").number(event.object).text("}").end();
    }
    file_.event("s", event.at_ns, kWorkers, index_).name("wake").text(",\"cat\":\"wake\"");
    file_.field("id", event.flow).end();
  }

  void instant(const TraceEvent& event, const char* what) noexcept {
    file_.event("i", event.at_ns, kWorkers, index_)
        .name(what)
        .text(",\"s\":\"t\",\"cat\":\"fiber\",\"args\":{\"fiber\":");
    file_.number(event.fiber).text(",\"name\":").quoted(trace_name(event.name)).text("}").end();
  }

  JsonFile& file_;
  std::uint64_t index_;
  std::uint64_t last_ns_ = 0;
  TraceEvent open_{};
};

}  // namespace

std::expected<std::uint64_t, Error> write_trace(int fd) noexcept {
  const Visit run;  // the rings end with it
  const unsigned rings = run ? trace_rings() : 0;
  if (rings == 0) return std::unexpected(Error{ErrorCode::unsupported});
  JsonFile file(fd);
  file.label("process_name", kWorkers, 0, "workers", nullptr);
  file.label("process_name", kFibers, 0, "fibers", nullptr);
  std::uint64_t forgotten = 0;
  for (std::uint64_t i = 0; i < rings; ++i) {
    file.label("thread_name", kWorkers, i, i + 1 < rings ? "worker " : "other threads ", &i);
    const TraceRing& ring = trace_ring(static_cast<unsigned>(i));
    const std::uint64_t end = ring.written();
    Track track(file, i);
    TraceEvent event;
    std::uint64_t n = ring.first();
    forgotten += n;
    for (; n < end; ++n) {
      if (ring.read(n, event)) {
        track.tell(event);
      } else {
        ++forgotten;  // overwritten since
      }
    }
    track.finish();
  }
  if (!file.finish(forgotten)) return std::unexpected(Error::from_errno(file.error()));
  return forgotten;
}

}  // namespace coir

#else

namespace coir {

std::expected<std::uint64_t, Error> write_trace(int) noexcept {
  return std::unexpected(Error{ErrorCode::unsupported});
}

}  // namespace coir

#endif
