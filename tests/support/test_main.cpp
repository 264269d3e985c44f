#include <CppUTest/CommandLineTestRunner.h>

#include "time_limit.h"

int main(int argc, char** argv) {
  coir::test::limit_time();
  return CommandLineTestRunner::RunAllTests(argc, argv);
}
