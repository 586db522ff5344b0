// The .npy format, also of the members of .npz.
// Source: numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
#pragma once
#include <string>

#include "lib/files/arrays.h"

namespace shardarray::files {

/// The header before an array's bytes.
struct NpyHeader {
  Type type;
  Order order;
  std::uint64_t bytes = 0;  ///< of the header itself
};
/// Reads it: `fill` provides the first bytes of a record of `size` bytes; `name`: of a member of an archive, or empty, for messages.
/// Throws IoError, also if the record is not as long as header and array.
NpyHeader read_npy_header(const FileReader& file, const std::string& name, std::uint64_t size, Fill fill);
/// The header of a row-major array.
std::string npy_header(const Type& t);

}  // namespace shardarray::files
