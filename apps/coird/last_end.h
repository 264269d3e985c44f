#pragma once

#include <coir/end_record.h>
#include <coir/http/metrics.h>

#include "options/options.h"

// RunRecord is the record of this run in the folder of --state, and tells how the last one ended. It outlives all that
// may crash.
class RunRecord {
 public:
  // begin says how the last run ended and opens the record of this one, if --state was given. A record that cannot be
  // written is one line, and no reason not to run.
  void begin(const Options& options) noexcept;
  // stopped tells that coird was asked to stop and has drained: its end is a clean one.
  void stopped() noexcept { clean_ = true; }
  ~RunRecord() { coir::EndRecord::note(clean_ ? coir::End::clean : coir::End::failed); }

 private:
  bool clean_ = false;
};

// write_last_end adds to /metrics how runs ended, if there is a record.
void write_last_end(coir::http::MetricsText& text) noexcept;
