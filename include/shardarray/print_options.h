// How arrays are printed.
#pragma once
#include <cstdint>

#include "shardarray/export.h"
#include "shardarray/where.h"

namespace shardarray {

/// NumPy's print options, with its defaults.
struct ArrayFormat {
  int precision = 8;              ///< digits after the point, at most
  std::int64_t threshold = 1000;  ///< larger arrays print only the ends of every dimension
  int edge_items = 3;             ///< number of entries at each end
  int line_width = 75;            ///< columns
  bool suppress = false;          ///< print small numbers without an exponent, possibly as 0
};

/// While it lives, sets how this thread prints arrays (streams, to_string, debug::print); scalars have all digits. Guards nest.
///
///     sa::print_options here({.precision = 3, .suppress = true});
///
/// Throws Error for a precision outside of [0, 100], edge items or a line width below 1, a negative threshold.
class SHARDARRAY_API print_options {
 public:
  explicit print_options(const ArrayFormat& format, Where w = Where::here());
  ~print_options();
  print_options(const print_options&) = delete;
  print_options& operator=(const print_options&) = delete;

 private:
  ArrayFormat previous_;
};

}  // namespace shardarray
