// All exceptions thrown by the library.
//
// Messages have one form: `<function>: <what is wrong, with values>. <the rule>. <what to do>. (file:line)`, and include the path of the
// leaf (`0.layers[1].weight`) if the value was part of a tree. The location is that of the user's call, inside traced or differentiated
// functions the innermost one; for a value computed later than it was written, the line that wrote it and the function called there.
// `!x`, a condition and `<<` have no location of their own: theirs is that of the array.
#pragma once
#include <cstddef>
#include <new>
#include <stdexcept>

#include "shardarray/export.h"
#include "shardarray/where.h"

namespace shardarray {

/// Base of all exceptions of the library. Thrown directly if no subclass fits: use of an absent array (`Array()`); invalid groups,
/// permutations, formats or callbacks; operations without derivatives.
class SHARDARRAY_API Error : public std::runtime_error {
 public:
  /// Appends the location of the call running on this thread to the message.
  explicit Error(const std::string& text)
      : Error(text, detail::place_of_call != nullptr ? detail::place_of_call() : Where()) {}
  /// The location at the end of the message; line 0: unknown, as in a thread that runs no user call.
  [[nodiscard]] Where where() const noexcept { return where_; }
  /// The message without its location.
  [[nodiscard]] std::string text() const {
    const std::string all = what();
    return all.substr(0, all.size() - detail::with_place("", where_).size());
  }
  /// Inserts before the location which leaf of a tree is meant.
  void add_path(const std::string& path) {
    const std::string said = text() + " At `" + path + "`.";
    static_cast<std::runtime_error&>(*this) = std::runtime_error(detail::with_place(said, where_));
  }
  /// Adds location `w` if there is none.
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
/// A dtype that the operation does not support.
class SHARDARRAY_API DTypeError : public Error {
 public:
  using Error::Error;
};
/// A mesh, partition spec or sharding that is invalid, or does not fit the value.
class SHARDARRAY_API ShardingError : public Error {
 public:
  using Error::Error;
};
/// Devices that do not exist or have failed, or incompatible sets of devices.
class SHARDARRAY_API DeviceError : public Error {
 public:
  using Error::Error;
};
/// Use of an array that was donated, or double donation.
class SHARDARRAY_API DonationError : public Error {
 public:
  using Error::Error;
};
/// A value is read inside a trace, or an array outlives its trace.
class SHARDARRAY_API TraceError : public Error {
 public:
  using Error::Error;
};
/// Trees with different structures, and options (axes, argument positions) that do not fit a call's arguments.
class SHARDARRAY_API TreeError : public Error {
 public:
  using Error::Error;
};
/// A file that is missing, truncated, too large or malformed.
class SHARDARRAY_API IoError : public Error {
 public:
  using Error::Error;
};
/// A program that cannot be compiled.
class SHARDARRAY_API CompileError : public Error {
 public:
  using Error::Error;
};
/// A plan that differs from the pinned one (plan_lock).
class SHARDARRAY_API PlanError : public Error {
 public:
  using Error::Error;
};
/// A failed transfer between devices or processes.
class SHARDARRAY_API TransportError : public Error {
 public:
  using Error::Error;
};
/// Memory of a device or the process could not be allocated. Thrown by recording, evaluating, reading and loading instead of
/// std::bad_alloc or std::length_error.
class SHARDARRAY_API OutOfMemory : public Error {
 public:
  using Error::Error;
};
/// A violated invariant of the library: please report it with the message.
class SHARDARRAY_API InternalError : public Error {
 public:
  using Error::Error;
};

namespace detail {
[[noreturn]] SHARDARRAY_API void refuse_memory(const char* function, std::size_t bytes);
/// Runs f(), which takes about `bytes` of process memory (0: unknown). Converts the standard library's allocation errors to OutOfMemory,
/// naming `function`.
template <class F> decltype(auto) with_memory(const char* function, std::size_t bytes, const F& f) {
  try {
    return f();
  } catch (const std::bad_alloc&) { refuse_memory(function, bytes); } catch (const std::length_error&) {
    refuse_memory(function, bytes);
  }
}
}  // namespace detail

}  // namespace shardarray
