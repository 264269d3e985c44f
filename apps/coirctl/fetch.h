#pragma once

#include "fetch_options.h"

// fetch does it and returns the exit status, which fetch_help explains.
int fetch(const FetchOptions& options) noexcept;
