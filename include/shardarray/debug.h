// Looking into running functions: prints, callbacks, shardings. Outside of traces they act immediately; inside jit after each run, in
// program order, on the caller's thread; inside pmap and shard_map once per device, in device order; inside vmap once per row. They
// survive grad; vmap, jit and pmap neither duplicate nor drop them. Inside a step of scan they throw TraceError. Arrays shown are
// evaluated. With several processes, each process that has devices of the array acts: on all of it, gathered, or, inside a map, for its
// own devices. All throw Error for an absent array and an empty function.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "shardarray/array.h"
#include "shardarray/sharding.h"

namespace shardarray {

/// The arguments of a host function.
struct SHARDARRAY_API HostValues {
  std::vector<Array> arrays;     ///< computed, on one device
  std::optional<Device> device;  ///< inside pmap and shard_map: the device of these values
};
/// The function called by callback().
using HostFunction = std::function<void(const HostValues&)>;

namespace debug {

/// An argument of print: an array, a number or a string.
struct SHARDARRAY_API Printable {
  Printable(const Array& a) {  ///< an absent one prints as `none`
    if (a.has_value()) value = a;
    else value = to_string(a);
  }
  template <std::integral I> Printable(I i) {
    if constexpr (std::is_unsigned_v<I>) value = static_cast<std::uint64_t>(i);
    else value = static_cast<std::int64_t>(i);
  }
  template <std::floating_point F> Printable(F f) : value(static_cast<double>(f)) {}
  Printable(const char* text) : value(std::string(text)) {}
  Printable(std::string text) : value(std::move(text)) {}
  Printable(const Shape& shape);  ///< as a tuple: `(2, 8)`
  std::variant<Array, std::int64_t, std::uint64_t, double, std::string> value;
};
/// Where to write; std::cout by default. The stream must outlive everything traced with it.
struct SHARDARRAY_API PrintOptions {
  std::ostream* stream = nullptr;  ///< null: std::cout
  bool device = false;             ///< id_print: adds `device: cpu:0`
};

/// A format string with the caller's line.
struct SHARDARRAY_API FormatText {
  FormatText(const char* t, Where w = Where::here()) : text(t), where(w) {}
  FormatText(std::string t, Where w = Where::here()) : text(std::move(t)), where(w) {}
  std::string text;
  Where where;
};
/// Prints a line. Supports `{}`, `{0}` and formats such as `{:.2f}` (numbers and scalars; complex ones and bools are text); arrays print
/// as in NumPy. Formats are fmt's, as in std::format, and checked when the call is traced. Throws Error for arguments that are missing,
/// unused, or do not fit: a typed format for a non-scalar array, for instance.
SHARDARRAY_API void print(const std::string& format, std::vector<Printable> args, PrintOptions options = {},
                          Where w = Where::here());
/// `print("loss {:.3f} at step {}", loss, 3)`.
template <std::convertible_to<Printable>... A> void print(const FormatText& format, const A&... args) {
  print(format.text, std::vector<Printable>{Printable(args)...}, {}, format.where);
}
/// Prints the fields, if any, sorted by name (`shape: (2, 8) step: 3`), and the value on a second line, in one write; returns x. Inside
/// vmap it prints all rows at once.
SHARDARRAY_API Array id_print(const Array& x, std::vector<std::pair<std::string, Printable>> fields = {},
                              PrintOptions options = {}, Where w = Where::here());
/// Calls `f` with the values of `args`. Exceptions of `f` propagate from the call that ran the program; its results, and everything
/// donated to it, are then lost. Throws Error for an absent array, DonationError for a donated one.
SHARDARRAY_API void callback(HostFunction f, std::vector<Array> args = {}, Where w = Where::here());

}  // namespace debug

/// Calls `f` with the sharding of x: immediately for an array that is or can be computed, inside jit once per compilation, after the
/// first run. Under a map it is that of the batched array. Throws as callback().
SHARDARRAY_API void inspect_array_sharding(const Array& x, std::function<void(const Sharding&)> f,
                                           Where w = Where::here());

}  // namespace shardarray
