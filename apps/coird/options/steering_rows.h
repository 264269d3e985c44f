#pragma once

#include <coir/config.h>

#include "../board_parts.h"
#include "../dashboard/dashboard.h"
#include "options.h"
#include "row.h"
#include "take.h"

inline bool take_log_level(const Setting& setting, Options& options) noexcept {
  const auto level = coir::log_level_of(setting.text);
  if (!level) return setting.wrong({"not error, warning, notice or info"});
  options.log_level = *level;
  return true;
}

// kSteeringRows are the options, at the end of section [process] of all_rows, by which people see and steer coird and the
// board.
inline constexpr Row kSteeringRows[] = {
    row(Section::process, Kind::text, "log-level", "LEVEL",
        "the least important level of lines in the log: error, warning, notice or info, which includes all lines "
        "(default: info). The lines of --access-log are info",
        take_log_level)
        .reloads(),
    row(Section::process, Kind::file, "log-file", "FILE",
        "also write the log to FILE, as key=value. When it is full, FILE becomes FILE.1, FILE.1 becomes FILE.2. If "
        "another program renames FILE, coird makes it again. While the disk is full or read-only, or the folder is "
        "missing, lines wait in memory, and those that do not fit are lost and counted (default: none)",
        built(coir::kFibers, take_file<&Options::log_file>))
        .of("fibers"),
    row(Section::process, Kind::number, "log-size", "SIZE", "the largest size of FILE (default: 256K)",
        built(coir::kFibers, take_number<&Options::log_size>))
        .within(16 * 1024, std::uint64_t{1} << 40)
        .of("fibers"),
    row(Section::process, Kind::number, "log-count", "N", "how many full files are kept (default: 2)",
        built(coir::kFibers, take_number<&Options::log_count>))
        .within(1, 99)
        .of("fibers"),
    row(Section::process, Kind::file, "syslog", "PATH",
        "also send the log to the syslog daemon that listens there, usually /dev/log (default: none)",
        built(coir::kFibers, take_file<&Options::syslog>))
        .of("fibers"),
    row(Section::process, Kind::file, "control", "PATH",
        "answer coirctl on a Unix socket, usually /run/coird.sock, for root and coird's own user alone. It works when "
        "connections or memory have run out (default: none)",
        take_file<&Options::control>),
    row(Section::process, Kind::text, "control-readers", "GROUP",
        "the members of this group may use the socket of --control, too, except for reload, drain, stop and "
        "switching pins (default: none)",
        built(coir::kFibers, take_file<&Options::control_readers>))
        .of("fibers"),
    row(Section::process, Kind::text, "dashboard", "PATH",
        "show the state of coird on a page at PATH, usually /dashboard, to people who type the token of "
        "--dashboard-token-file. The credentials of --auth do not open it (default: none)",
        take_dashboard)
        .of("COIR_DASHBOARD"),
    row(Section::process, Kind::file, "dashboard-token-file", "FILE",
        "the first line is the token for --dashboard, 20 characters or more. Only the owner may be able to read FILE",
        built(COIR_DASHBOARD, take_file<&Options::dashboard_token_file>))
        .of("COIR_DASHBOARD"),
    row(Section::process, Kind::text, "pin", "NAME",
        "a pin that coirctl pins may read and switch: a name of the board such as GP14, CONTROLLER:LINE, or a number "
        "of sysfs; up to 16 times",
        built(coir::kFibers, take_pin))
        .of("fibers")
        .repeats(),
    row(Section::process, Kind::file, "sysfs", "DIR",
        "the folder with the board's sensors, lights and pins (default: /sys). With another folder the pins of /dev "
        "are not used",
        take_given_file<&Options::sysfs, &Options::sysfs_given>),
};
