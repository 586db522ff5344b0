// The index of a checkpoint: which part of which array is where.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/node.h"
#include "lib/files/file_reader.h"

namespace shardarray::checkpoints {

constexpr std::size_t block_bytes = std::size_t{1} << 18;  ///< per checksum
constexpr const char* damage_advice = "Only whole, unchanged checkpoints are read. Restore an earlier step.";
constexpr const char* index_name = "shardarray.index.json";

/// A box of an array, stored as an array of its own in a safetensors file; complex ones as floats with a last dimension of 2.
struct Piece {
  std::string file, key;
  Shape start, shape;
  std::vector<std::uint32_t> checksums;  ///< of its blocks
};
struct StoredArray {
  Type type;
  std::vector<Piece> pieces;  ///< every element is in exactly one of them
};
struct Index {
  std::int64_t step = 0;
  std::string checksum = {};  ///< of the index that was read
  std::map<std::string, StoredArray> arrays;
  std::map<std::string, std::string> values;  ///< numbers and texts
};

/// Sizes for JSON.
inline std::vector<std::int64_t> list_of(const Shape& s) { return {s.begin(), s.end()}; }

/// The index as JSON. Throws IoError for paths and texts that are not UTF-8.
std::string text_of(const char* function, const std::string& path, const Index& index);
/// Reads and checks an index: the pieces of an array are disjoint and cover it. Throws IoError.
Index read_index(const files::FileReader& file);

}  // namespace shardarray::checkpoints
