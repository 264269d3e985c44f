#include <CppUTest/CommandLineTestRunner.h>
#include <CppUTest/TestRegistry.h>
#include <stdio.h>

#include <string_view>

#include "time_limit.h"

namespace {

// name_of is the last part of a path.
std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// is_of tells whether a test stands in the file of a program: tcp_test runs what is in tcp_test.cpp.
bool is_of(const UtestShell& test, std::string_view program) {
  const SimpleString file = test.getFile();
  const std::string_view source = name_of(file.asCharString());
  return source.size() == program.size() + 4 && source.starts_with(program) && source.ends_with(".cpp");
}

}  // namespace

// Unit tests of a room are one program, ROOM_tests, which runs all of them. NAME_test is a link to it: by that name it has
// the tests of NAME_test.cpp alone, and fails if there is none.
int main(int argc, char** argv) {
  coir::test::limit_time();
  const std::string_view program = name_of(argv[0]);
  if (!program.ends_with("_test")) return CommandLineTestRunner::RunAllTests(argc, argv);
  TestRegistry chosen;
  for (UtestShell* test = TestRegistry::getCurrentRegistry()->getFirstTest(); test != nullptr;) {
    UtestShell* const next = test->getNext();
    if (is_of(*test, program)) chosen.addTest(test);
    test = next;
  }
  if (chosen.countTests() == 0) {
    fprintf(stderr, "%s: this program has no test of %s.cpp\n", argv[0], argv[0]);
    return 1;
  }
  // They were added in front of each other.
  chosen.reverseTests();
  chosen.setCurrentRegistry(&chosen);
  return CommandLineTestRunner::RunAllTests(argc, argv);
}
