#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// Records of FastCGI 1.0: what a web server and an application say to each other.
namespace coir::http {

enum class FastCgiType : std::uint8_t {
  begin_request = 1,
  abort_request = 2,
  end_request = 3,
  params = 4,
  input = 5,   // stdin
  output = 6,  // stdout
  errors = 7,  // stderr
};

inline constexpr std::size_t kFastCgiHeader = 8;
inline constexpr std::size_t kMostFastCgiContent = 65'535;

// write_fastcgi_header writes the head of a record with `bytes` of content (kMostFastCgiContent at most) and no padding.
void write_fastcgi_header(std::span<char, kFastCgiHeader> into, FastCgiType type, std::uint16_t id,
                          std::size_t bytes) noexcept;

// FastCgiParams writes a request's parameters into `memory`, as the content of one record. If a parameter does not fit,
// fits() is false for good.
class FastCgiParams {
 public:
  explicit FastCgiParams(std::span<char> memory) noexcept : memory_(memory) {}

  void add(std::string_view name, std::string_view value) noexcept;

  // A value in parts: begin, any number of append, end.
  void begin(std::string_view name) noexcept;
  void append(std::string_view part) noexcept;
  void end() noexcept;

  bool fits() const noexcept { return fits_; }
  std::size_t size() const noexcept { return used_; }

 private:
  void put(std::string_view bytes) noexcept;

  std::span<char> memory_;
  std::size_t used_ = 0;
  std::size_t value_at_ = 0;  // where the value's length stands, in four bytes, before end
  std::size_t data_at_ = 0;
  bool fits_ = true;
};

// FastCgiEnd is how a request has ended, by an end_request record.
enum class FastCgiEnd : std::uint8_t { complete, cannot_multiplex, overloaded, unknown_role };

// FastCgiEvent is what FastCgiReader has found.
struct FastCgiEvent {
  enum class Kind : std::uint8_t { none, output, errors, ended, bad };
  Kind kind = Kind::none;
  std::span<char> bytes = {};  // of output and errors, not empty; in the bytes given
  FastCgiEnd end = FastCgiEnd::complete;
};

// FastCgiReader takes the records of one request out of what an application sends, however it is cut. Records of other
// requests (a stray end of the one before) and of types that are none of its are left out.
class FastCgiReader {
 public:
  explicit FastCgiReader(std::uint16_t id = 1) noexcept : id_(id) {}

  // next takes the next event off the front of `bytes`; none: they are used up. bad: a record of another version, or
  // an end whose size is wrong; there is no way on.
  FastCgiEvent next(std::span<char>& bytes) noexcept;

 private:
  bool read_header(std::span<char>& bytes) noexcept;

  std::uint16_t id_;
  std::uint8_t header_[kFastCgiHeader] = {};
  std::uint8_t end_[8] = {};
  std::uint8_t have_ = 0;      // of the header
  std::uint8_t end_have_ = 0;  // of an end's content
  std::uint16_t left_ = 0;     // of a record's content
  std::uint8_t padding_ = 0;   // still to come
};

}  // namespace coir::http
