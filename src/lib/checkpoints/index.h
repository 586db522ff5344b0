// What a checkpoint says of itself: which part of which array stands where.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/node.h"
#include "lib/files/file_reader.h"

namespace shardarray::checkpoints {

constexpr std::size_t block_bytes = std::size_t{1} << 18;  ///< that one checksum is of
constexpr const char* damage_advice = "Only whole, unchanged checkpoints are read. Restore an earlier step.";
constexpr const char* index_name = "shardarray.index.json";

/// A box of an array, which a safetensors file holds as an array of its own; of a complex one as floats with a last dimension of 2.
struct Piece {
  std::string file, key;
  Shape start, shape;
  std::vector<std::uint32_t> checksums;  ///< of its blocks
};
struct StoredArray {
  Type type;
  std::vector<Piece> pieces;  ///< every element stands in one of them
};
struct Index {
  std::int64_t step = 0;
  std::string checksum = {};  ///< of what was read
  std::map<std::string, StoredArray> arrays;
  std::map<std::string, std::string> values;  ///< numbers and texts
};

/// Sizes for JSON.
inline std::vector<std::int64_t> list_of(const Shape& s) { return {s.begin(), s.end()}; }

/// As JSON. Throws IoError for paths and texts that are not UTF-8.
std::string text_of(const char* function, const std::string& path, const Index& index);
/// Reads and checks it: the pieces of an array are disjoint, and all of it. Throws IoError.
Index read_index(const files::FileReader& file);

}  // namespace shardarray::checkpoints
