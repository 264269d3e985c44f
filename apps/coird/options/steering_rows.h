#pragma once

#include <coir/config.h>

#include "../board_parts.h"
#include "../dashboard/dashboard.h"
#include "options.h"
#include "row.h"
#include "take.h"

// kSteeringRows are the options, at the end of section [process] of all_rows, by which people see and steer coird and the
// board.
inline constexpr Row kSteeringRows[] = {
    row(Section::process, Kind::file, "control", "PATH",
        "answer coirctl on a Unix socket, usually /run/coird.sock, for root and coird's own user alone. It works when "
        "connections or memory have run out (default: none)",
        take_file<&Options::control>),
    row(Section::process, Kind::text, "control-readers", "GROUP",
        "the members of this group may use the socket of --control, too, but for reload, drain, stop and switching "
        "pins (default: none)",
        built(coir::kFibers, take_file<&Options::control_readers>))
        .of("fibers"),
    row(Section::process, Kind::text, "dashboard", "PATH",
        "show the state of coird on a page at PATH, usually /dashboard, to people who type the token of "
        "--dashboard-token-file, and not those of --auth (default: none)",
        take_dashboard)
        .of("COIR_DASHBOARD"),
    row(Section::process, Kind::file, "dashboard-token-file", "FILE",
        "the first line is the token for --dashboard, 20 characters or more. Only the owner may be able to read FILE",
        built(COIR_DASHBOARD, take_file<&Options::dashboard_token_file>))
        .of("COIR_DASHBOARD"),
    row(Section::process, Kind::text, "pin", "NAME",
        "a pin that coirctl pins may read and switch: a name of the board such as GP14, CONTROLLER:LINE, or a number "
        "of "
        "sysfs; up to 16 times",
        built(coir::kFibers, take_pin))
        .of("fibers")
        .repeats(),
    row(Section::process, Kind::file, "sysfs", "DIR",
        "the folder with the board's sensors, lights and pins (default: /sys). With another folder pins of /dev do not "
        "count",
        take_given_file<&Options::sysfs, &Options::sysfs_given>),
};
