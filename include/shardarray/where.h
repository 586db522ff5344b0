// Source locations: where in the user's program something was written, and which of its lines is running.
#pragma once
#include <string>

#include "shardarray/export.h"

namespace shardarray {

/// A location in a source file. `std::source_location` is missing in clang 14 with libstdc++ 12; the two builtins are everywhere.
class Where {
 public:
  const char* file = "";  ///< as passed to the compiler; static lifetime
  int line = 0;           ///< from 1; 0: unknown
  /// As a default argument: the location of the call.
  [[nodiscard]] static constexpr Where here(const char* f = __builtin_FILE(), int l = __builtin_LINE()) {
    return is_invoke(f) || is_header(f) ? Where() : Where(f, l);
  }
  /// Unknown.
  constexpr Where() = default;

 private:
  constexpr Where(const char* f, int l) : file(f), line(l) {}
  // The standard library's header that calls a function object, as in jit(matmul): not the user's line. Folded at compile time.
  static constexpr bool is_invoke(const char* f) {
    const auto n = __builtin_strlen(f);
    return n > 9 && __builtin_memcmp(f + n - 9, "/invoke.h", 9) == 0;
  }
  // The library's own headers, in the folder of this one, which call user functions.
  static constexpr bool is_header(const char* f) {
    const char* const mine = __builtin_FILE();
    const auto folder = __builtin_strlen(mine) - 7;  // where.h
    return __builtin_strlen(f) > folder && __builtin_memcmp(f, mine, folder) == 0;
  }
};

namespace detail {

/// What this thread is running.
struct CallSite {
  Where line;                      ///< of the call of a public function
  const char* function = nullptr;  ///< its name; null: none is running, or it has no name
  Where around;                    ///< of the enclosing call that runs a user function
  /// The innermost known line.
  Where place() const { return line.line ? line : around; }
};
extern SHARDARRAY_API constinit thread_local CallSite call_site;
/// Its location. Weak: plug-ins do not link the library, and their exceptions get their location from the caller.
[[gnu::weak]] SHARDARRAY_API Where place_of_call();

/// The line that something was recorded for, and the public function called there.
struct RecordedLine : Where {
  RecordedLine() = default;
  RecordedLine(Where w, const char* f = nullptr) : Where(w), function(f) {}
  /// The function named in messages; null: it has no name.
  const char* function = nullptr;
};

/// The text followed by its location: ` (file:line)`.
inline std::string with_place(std::string text, Where w) {
  if (w.line) text.append(" (").append(w.file).append(":").append(std::to_string(w.line)).append(")");
  return text;
}

/// Another one while it lives.
class ScopedSite {
 public:
  explicit ScopedSite(const CallSite& s) : before_(call_site) { call_site = s; }
  ~ScopedSite() { call_site = before_; }
  ScopedSite(const ScopedSite&) = delete;
  ScopedSite& operator=(const ScopedSite&) = delete;

 private:
  CallSite before_;
};
/// Work on behalf of the recorded line `w` (unknown: the running line), where its errors are reported.
class RecordedSite : ScopedSite {
 public:
  explicit RecordedSite(Where w)
      : ScopedSite({w.line ? w : call_site.line, call_site.function, call_site.around}) {}
};
/// A user function is running, whose calls have their own lines.
class UserSite : ScopedSite {
 public:
  explicit UserSite(Where around = call_site.place()) : ScopedSite({{}, nullptr, around}) {}
};

}  // namespace detail

/// First statement of every public function: errors thrown while it lives end with its line, and ops recorded meanwhile carry it, so that
/// explain() shows the user's line; errors about sizes and numbers name `function`. The outermost one wins. For a call without a user
/// line, such as that of a layer by vmap, it is the enclosing call's.
class Site {
 public:
  /// `function` must outlive the object; null: an outer or inner one provides the name.
  explicit Site(Where w, const char* function = nullptr)
      : mine_(!detail::call_site.line.line), names_(function && !detail::call_site.function) {
    if (mine_) detail::call_site.line = w.line ? w : detail::call_site.around;
    if (names_) detail::call_site.function = function;
  }
  ~Site() {
    if (mine_) detail::call_site.line = {};
    if (names_) detail::call_site.function = nullptr;
  }
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

 private:
  bool mine_, names_;
};

}  // namespace shardarray
