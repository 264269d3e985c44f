#include <coir/trace.h>
namespace coir { std::expected<std::uint64_t, Error> write_trace(int) noexcept { return std::unexpected(Error{ErrorCode::unsupported}); } }
