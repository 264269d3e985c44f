#pragma once

#include <coir/deadline.h>
#include <coir/json.h>
#include <coir/spinlock.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>
#include <utility>

#include "mcp/message/text.h"

namespace coir::mcp::detail {

// CatalogueBlock is one list as it was had: items one behind the other, each two sizes, a name and JSON. A reader
// holds a reference.
struct CatalogueBlock {
  explicit CatalogueBlock(std::size_t most) noexcept : items({}, most) {}
  Text items;
  std::uint32_t holders = 1;  // under Catalogue::lock_
  std::uint32_t count = 0;
};

struct CatalogueItem {
  std::string_view name;  // as the upstream calls it; a resource's URI
  std::string_view json;  // as the upstream has sent it
};

// CatalogueWalk goes through the items of a block.
class CatalogueWalk {
 public:
  explicit CatalogueWalk(const CatalogueBlock* block) noexcept
      : left_(block == nullptr ? std::string_view() : block->items.view()) {}
  std::optional<CatalogueItem> next() noexcept;

 private:
  std::string_view left_;
};

// Catalogue keeps the latest list of a kind, which fibers read while another takes its place.
class Catalogue {
 public:
  Catalogue() noexcept = default;
  ~Catalogue() { put({}); }
  Catalogue(const Catalogue&) = delete;
  Catalogue& operator=(const Catalogue&) = delete;

  // Held keeps a block for a scope; null: nothing was ever listed.
  class Held {
   public:
    explicit Held(Catalogue& of) noexcept;
    ~Held();
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    const CatalogueBlock* get() const noexcept { return block_; }

   private:
    Catalogue& of_;
    CatalogueBlock* block_;
  };

  // make_block takes memory for a list; add adds an item, and put has it take the old one's place, or throws it away where
  // it is null. Errors of make_block: no_memory; of add: limit, no_memory.
  static std::expected<CatalogueBlock*, Error> make_block(std::size_t most) noexcept;
  static std::expected<void, Error> add(CatalogueBlock& block, std::string_view name, std::string_view json) noexcept;
  static void drop(CatalogueBlock* block) noexcept;
  void put(CatalogueBlock* block, std::chrono::nanoseconds fresh = {}, std::uint32_t changes = 0) noexcept;

  // changes counts how often the list was made stale. A list that was asked for before the latest change is put with the
  // count of that time, and stays stale.
  std::uint32_t changes() noexcept;

  // rest_for lets the present list serve for a while, as the server gave no new one. It stays stale.
  void rest_for(std::chrono::nanoseconds span) noexcept;

  // make_stale has the list asked for again; is_fresh: it need not be. is_due: there is a list, it is stale,
  // and does not rest. known: there is one.
  bool is_fresh() noexcept;
  bool is_due() noexcept;
  void make_stale() noexcept;
  bool known() noexcept;

 private:
  void release(CatalogueBlock* block) noexcept;

  Spinlock lock_;
  CatalogueBlock* block_ = nullptr;
  Deadline fresh_until_ = Deadline::now();
  Deadline rests_until_ = Deadline::now();
  std::uint32_t changes_ = 0;
};

}  // namespace coir::mcp::detail
