// A secret that is drawn at its first use.

#include "base/first_secret.h"

#include <coir/config.h>
#include <string.h>
#if !COIR_NO_ASYNC
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/task.h>
#endif

#include <CppUTest/TestHarness.h>

#include <memory>

#include "tests/support/child.h"
#include "tests/support/no_randomness.h"

namespace first_secret_test {

using coir::Deadline;
using coir::FirstSecret;
using coir::test::Entropy;
using coir::test::in_child;
using coir::test::set_entropy;

namespace {

// Copy is a secret as it is now.
struct Copy {
  explicit Copy(FirstSecret& secret) : there(secret.copy(bytes)) {}
  bool operator==(const Copy& other) const { return memcmp(bytes, other.bytes, sizeof bytes) == 0; }

  char bytes[FirstSecret::kBytes] = {};
  bool there;
};

}  // namespace

// clang-format off: the groups are not declarations.
TEST_GROUP(FirstSecret) {};
// clang-format on

TEST(FirstSecret, is_drawn_once_and_anew_when_it_was_forgotten) {
  FirstSecret secret;
  CHECK_FALSE(Copy(secret).there);
  CHECK(secret.draw());
  const Copy first(secret);
  CHECK(first.there);
  CHECK(secret.draw());
  CHECK(Copy(secret) == first);
  CHECK(secret.view() == std::string_view(first.bytes, sizeof first.bytes));
  secret.forget();
  CHECK_FALSE(Copy(secret).there);
  CHECK(secret.draw());
  CHECK_FALSE(Copy(secret) == first);
}

TEST(FirstSecret, is_another_in_each_place) {
  FirstSecret one, other;
  CHECK(one.draw() && other.draw());
  CHECK_FALSE(one.view() == other.view());
}

TEST(FirstSecret, is_wiped_at_its_end) {
  alignas(FirstSecret) static char room[sizeof(FirstSecret)];
  auto* const secret = std::construct_at(reinterpret_cast<FirstSecret*>(room));
  CHECK(secret->draw());
  const Copy drawn(*secret);
  CHECK(memmem(room, sizeof room, drawn.bytes, 8) != nullptr);
  std::destroy_at(secret);
  CHECK(memmem(room, sizeof room, drawn.bytes, 8) == nullptr);
}

TEST(FirstSecret, is_not_there_while_the_kernel_has_no_random_numbers) {
  const auto end = in_child([] {
    FirstSecret secret;
    set_entropy(Entropy::none);
    if (secret.draw(Deadline::now()) || Copy(secret).there) return 1;
    set_entropy(Entropy::none_yet);
    return secret.draw() && Copy(secret).there ? 0 : 2;
  });
  CHECK_EQUAL(0, end.status);
}

#if !COIR_NO_ASYNC
TEST(FirstSecret, is_the_same_for_all_that_draw_it_at_once) {
  bool same = true;
  const int status = coir::run([&] {
    FirstSecret secret;
    constexpr int kFibers = 16;
    coir::Task<bool> drawn[kFibers];
    char seen[kFibers][FirstSecret::kBytes];
    for (int i = 0; i < kFibers; ++i)
      drawn[i] = coir::spawn([&secret, &into = seen[i]] { return secret.draw() && secret.copy(into); });
    for (int i = 0; i < kFibers; ++i) same = *drawn[i].await() && same;
    for (const auto& each : seen) same = same && memcmp(each, seen[0], sizeof each) == 0;
    return 0;
  });
  CHECK_EQUAL(0, status);
  CHECK(same);
}
#endif

}  // namespace first_secret_test
