// Source lines: where in the user's program something was written.
#pragma once

namespace shardarray {

/// A place in a source file. `std::source_location` is missing in clang 14 with libstdc++ 12; the two builtins are everywhere.
class Where {
 public:
  const char* file = "";  ///< as the compiler was given it; lives as long as the program
  int line = 0;           ///< from 1; 0: unknown
  /// As a default argument: the place of the call.
  static constexpr Where here(const char* f = __builtin_FILE(), int l = __builtin_LINE()) {
    return Where(f, l);
  }
  /// Nowhere.
  constexpr Where() = default;

 private:
  constexpr Where(const char* f, int l) : file(f), line(l) {}
};

}  // namespace shardarray
