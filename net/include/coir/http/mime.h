#pragma once

#include <string_view>

namespace coir::http {

// media_type returns the Content-Type for a file name by its extension, compared without case;
// "application/octet-stream" when it has none or an unknown one. Text is declared to be UTF-8. The view is static.
std::string_view media_type(std::string_view file_name) noexcept;

}  // namespace coir::http
