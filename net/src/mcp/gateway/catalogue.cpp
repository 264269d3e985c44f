#include "mcp/gateway/catalogue.h"

#include <coir/mcp.h>
#include <string.h>

#include "base/charged.h"

namespace coir::mcp::detail {

namespace {

struct Sizes {
  std::uint32_t name;
  std::uint32_t json;
};

}  // namespace

std::optional<CatalogueItem> CatalogueWalk::next() noexcept {
  if (left_.empty()) return std::nullopt;
  Sizes sizes;
  memcpy(&sizes, left_.data(), sizeof sizes);
  left_.remove_prefix(sizeof sizes);
  const CatalogueItem item{left_.substr(0, sizes.name), left_.substr(sizes.name, sizes.json)};
  left_.remove_prefix(std::size_t{sizes.name} + sizes.json);
  return item;
}

std::expected<CatalogueBlock*, Error> Catalogue::make_block(std::size_t most) noexcept {
  auto* const made = construct_charged<CatalogueBlock>(account::mcp, most);
  if (made == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  return made;
}

std::expected<void, Error> Catalogue::add(CatalogueBlock& block, std::string_view name,
                                          std::string_view json) noexcept {
  const Sizes sizes{static_cast<std::uint32_t>(name.size()), static_cast<std::uint32_t>(json.size())};
  char bytes[sizeof sizes];
  memcpy(bytes, &sizes, sizeof sizes);
  for (const std::string_view part : {std::string_view(bytes, sizeof bytes), name, json}) {
    if (auto written = block.items.write(part); !written) return written;
  }
  ++block.count;
  return {};
}

void Catalogue::drop(CatalogueBlock* block) noexcept {
  destroy_charged(account::mcp, block);
}

void Catalogue::release(CatalogueBlock* block) noexcept {
  if (block == nullptr) return;
  {
    const Locked locked(lock_);
    if (--block->holders != 0) return;
  }
  drop(block);
}

std::uint32_t Catalogue::changes() noexcept {
  const Locked locked(lock_);
  return changes_;
}

void Catalogue::put(CatalogueBlock* block, std::chrono::nanoseconds fresh, std::uint32_t changes) noexcept {
  CatalogueBlock* old;
  {
    const Locked locked(lock_);
    old = std::exchange(block_, block);
    fresh_until_ = changes == changes_ ? Deadline::after(fresh) : Deadline::now();
  }
  release(old);
}

void Catalogue::rest_for(std::chrono::nanoseconds span) noexcept {
  const Locked locked(lock_);
  rests_until_ = Deadline::after(span);
}

bool Catalogue::is_fresh() noexcept {
  const Locked locked(lock_);
  return block_ != nullptr && !fresh_until_.passed();
}

bool Catalogue::is_due() noexcept {
  const Locked locked(lock_);
  return block_ != nullptr && fresh_until_.passed() && rests_until_.passed();
}

void Catalogue::make_stale() noexcept {
  const Locked locked(lock_);
  ++changes_;
  fresh_until_ = rests_until_ = Deadline::now();
}

bool Catalogue::known() noexcept {
  const Locked locked(lock_);
  return block_ != nullptr;
}

Catalogue::Held::Held(Catalogue& of) noexcept : of_(of) {
  const Locked locked(of_.lock_);
  block_ = of_.block_;
  if (block_ != nullptr) ++block_->holders;
}

Catalogue::Held::~Held() {
  of_.release(block_);
}

}  // namespace coir::mcp::detail
