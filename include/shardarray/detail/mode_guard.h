// The base of guards for modes that are on or off.
#pragma once
#include "shardarray/export.h"

namespace shardarray {

struct Modes;

namespace detail {

/// Sets one of this thread's modes while it lives, then restores it.
class SHARDARRAY_API ModeGuard {
 public:
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 protected:
  ModeGuard(bool Modes::*mode, bool on);
  ~ModeGuard();

 private:
  bool Modes::*mode_;
  bool previous_;
};

}  // namespace detail
}  // namespace shardarray
