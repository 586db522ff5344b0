// What the guards of modes that are on or off have in common.
#pragma once
#include "shardarray/export.h"

namespace shardarray {

struct Modes;

namespace detail {

/// One of this thread's modes is set while it lives, then it is what it was.
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
