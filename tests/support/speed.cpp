// scripts/test compiles this file to measure a machine, so that its times compare with another's. Do not change it.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

struct Item {
  std::string name;
  std::vector<int> values;
};

int sum(const std::map<std::string, std::unique_ptr<Item>>& items, const std::function<int(int)>& weigh) {
  int total = 0;
  for (const auto& [name, item] : items) {
    for (const int value : item->values) total += weigh(value) + static_cast<int>(name.size());
  }
  return total;
}

}  // namespace

int measure(int count) {
  std::map<std::string, std::unique_ptr<Item>> items;
  for (int i = 0; i < count; ++i) {
    auto item = std::make_unique<Item>();
    item->name = std::to_string(i);
    for (int j = count; j > 0; --j) item->values.push_back(i ^ j);
    std::sort(item->values.begin(), item->values.end());
    items.emplace(item->name, std::move(item));
  }
  return sum(items, [count](int value) { return value % count; });
}
