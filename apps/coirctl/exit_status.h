#pragma once

#include <coir/error.h>

// Exit statuses by which a script tells a wrong address from a dead network; the verbs' help has the table.
enum Status {
  kDone,
  kCommand = 2,
  kAddress,
  kHost,
  kConnection,
  kTls,
  kTime,
  kServer,
  kResponse,
  kFile,
  kMachine,
  kTool
};

// status_of sorts the errors of a request before its response is there.
Status status_of(coir::Error error) noexcept;
