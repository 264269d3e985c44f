#pragma once

#include <chrono>

// The supervisor that NOTIFY_SOCKET of the environment names, as systemd does, hears of coird's state by datagrams
// (sd_notify(3)). Without that variable nothing happens. Each call is one system call that never waits.

// open_notify reads the variables and removes them, so that no program that coird starts takes them for its own.
void open_notify() noexcept;

// notify_watchdog is the time within which the supervisor wants to hear that coird is alive; 0: it does not.
std::chrono::microseconds notify_watchdog() noexcept;

void notify_ready() noexcept;      // it serves, from now on or again
void notify_reloading() noexcept;  // until it is ready again
void notify_stopping() noexcept;
void notify_alive() noexcept;
