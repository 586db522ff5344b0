#include "runtime/modes.h"

#include <deque>
#include <mutex>
#include <utility>

#include "base/env.h"
#include "shardarray/detail/mode_guard.h"
#include "shardarray/device.h"

namespace shardarray {

namespace {

constinit thread_local const Modes* modes_of_thread = nullptr;  // null: initial_modes()

const Modes& initial_modes() {
  static const auto& initial = *new Modes{.flush_denormals = env_flag("SHARDARRAY_FLUSH_DENORMALS", false)};
  return initial;  // never destroyed
}

// One object per combination in use: a few for each device.
const Modes* interned(const Modes& m) {
  if (m == initial_modes()) return &initial_modes();
  static auto* mutex = new std::mutex;
  static auto* all = new std::deque<Modes>;
  const std::lock_guard lock(*mutex);
  for (const Modes& known : *all)
    if (known == m) return &known;
  return &all->emplace_back(m);
}

const Modes* exchange_modes(const Modes* m) {
  const Modes* before = std::exchange(modes_of_thread, m);
  return before ? before : &initial_modes();
}

}  // namespace

const Modes& current_modes() { return modes_of_thread ? *modes_of_thread : initial_modes(); }
const Modes& set_modes(const Modes& m) { return *exchange_modes(interned(m)); }

// Sets one of this thread's modes; returns its previous value.
static bool exchange_mode(bool Modes::*mode, bool on) {
  Modes m = current_modes();
  m.*mode = on;
  return set_modes(m).*mode;
}
detail::ModeGuard::ModeGuard(bool Modes::*mode, bool on) : mode_(mode), previous_(exchange_mode(mode, on)) {}
detail::ModeGuard::~ModeGuard() { exchange_mode(mode_, previous_); }

ScopedModes::ScopedModes(const Modes* m) : before_(exchange_modes(m)) {}
ScopedModes::~ScopedModes() { exchange_modes(before_); }

const Device& default_device_of(const Modes& m) {
  if (m.default_device) return *m.default_device;
  static const auto* first = new Device(local_devices({}).front());
  return *first;
}

}  // namespace shardarray
