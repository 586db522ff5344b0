// Every exception that the library throws.
//
// Messages have one shape: `<function>: <what is wrong, with values>. <the rule>. <what to do>. (file:line)`, and name the path of
// the leaf (`0.layers[1].weight`) when the value stood in a tree. The place is that of the user's call; inside of functions that
// are traced or derived it is the innermost one; where a value is computed later than it was written, the line that wrote it is
// named, and the function that was called there. `!x`, a condition and `<<` have no place for a line of their own: theirs is that of the array.
#pragma once
#include <cstddef>
#include <new>
#include <stdexcept>

#include "shardarray/export.h"
#include "shardarray/where.h"

namespace shardarray {

/// The root of all exceptions of the library. Thrown itself for what has no class below: an absent array (`Array()`) is used,
/// groups, permutations, formats or callbacks that are none, what has no derivative.
class SHARDARRAY_API Error : public std::runtime_error {
 public:
  /// The message gets the place of the call that runs on this thread.
  explicit Error(const std::string& text)
      : Error(text, detail::place_of_call != nullptr ? detail::place_of_call() : Where()) {}
  /// The place that the message ends with; line 0: unknown, as in a thread that runs nobody's call.
  [[nodiscard]] Where where() const noexcept { return where_; }
  /// The message without its place.
  [[nodiscard]] std::string text() const {
    const std::string all = what();
    return all.substr(0, all.size() - detail::with_place("", where_).size());
  }
  /// Says in front of its place which leaf of a tree it is about.
  void add_path(const std::string& path) {
    const std::string said = text() + " At `" + path + "`.";
    static_cast<std::runtime_error&>(*this) = std::runtime_error(detail::with_place(said, where_));
  }
  /// Gives it the place `w`, if it has none.
  void add_place(Where w) {
    if (where_.line || !w.line) return;
    static_cast<std::runtime_error&>(*this) = std::runtime_error(detail::with_place(what(), w));
    where_ = w;
  }

 private:
  Error(const std::string& text, Where w) : std::runtime_error(detail::with_place(text, w)), where_(w) {}
  Where where_;
};
/// Shapes, ranks, axes, indices or sizes that do not fit.
class SHARDARRAY_API ShapeError : public Error {
 public:
  using Error::Error;
};
/// A dtype that the operation does not take.
class SHARDARRAY_API DTypeError : public Error {
 public:
  using Error::Error;
};
/// A mesh, partition spec or sharding that cannot be built, or does not fit the value.
class SHARDARRAY_API ShardingError : public Error {
 public:
  using Error::Error;
};
/// Devices that do not exist or have failed, or two sets of devices that cannot meet.
class SHARDARRAY_API DeviceError : public Error {
 public:
  using Error::Error;
};
/// An array that was donated is used, or donated twice.
class SHARDARRAY_API DonationError : public Error {
 public:
  using Error::Error;
};
/// A value is read inside a trace, or an array outlived the trace it belongs to.
class SHARDARRAY_API TraceError : public Error {
 public:
  using Error::Error;
};
/// Trees whose structures differ, and options (axes, positions of arguments) that do not fit a call's arguments.
class SHARDARRAY_API TreeError : public Error {
 public:
  using Error::Error;
};
/// A file that is missing, truncated, too large or not what it should be.
class SHARDARRAY_API IoError : public Error {
 public:
  using Error::Error;
};
/// A program that cannot be compiled.
class SHARDARRAY_API CompileError : public Error {
 public:
  using Error::Error;
};
/// A plan that is not the one which a file holds fast (plan_lock).
class SHARDARRAY_API PlanError : public Error {
 public:
  using Error::Error;
};
/// A transfer between devices or processes that failed.
class SHARDARRAY_API TransportError : public Error {
 public:
  using Error::Error;
};
/// Memory that could not be had, of a device or of the process. Recording, evaluating, reading and loading throw it, never
/// std::bad_alloc or std::length_error.
class SHARDARRAY_API OutOfMemory : public Error {
 public:
  using Error::Error;
};
/// A broken rule inside the library itself: please report it with the message.
class SHARDARRAY_API InternalError : public Error {
 public:
  using Error::Error;
};

namespace detail {
[[noreturn]] SHARDARRAY_API void refuse_memory(const char* function, std::size_t bytes);
/// f(), which takes about `bytes` of the process' memory (0: unknown). What the standard library throws when they cannot be
/// had becomes OutOfMemory in the name of `function`.
template <class F> decltype(auto) with_memory(const char* function, std::size_t bytes, const F& f) {
  try {
    return f();
  } catch (const std::bad_alloc&) { refuse_memory(function, bytes); } catch (const std::length_error&) {
    refuse_memory(function, bytes);
  }
}
}  // namespace detail

}  // namespace shardarray
