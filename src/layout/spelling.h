// Conversion between what the user wrote (Sharding) and the canonical form (Layout).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/key.h"
#include "layout/layout.h"
#include "shardarray/dtype.h"
#include "shardarray/sharding.h"

namespace shardarray {

/// The canonical form for a value of rank `rank`, kept alive by `s`. Throws ShardingError by the rank rule of the sharding's class, in the
/// name of `function` or else of the class.
const Layout* layout_of(const Sharding& s, int rank, const char* function = nullptr);

/// `layout` as a sharding, in the class of the first of `like` that has the same devices and can express it (that very object if it is
/// equivalent); otherwise SingleDevice for one device, else Positional. It keeps `layout` alive.
Sharding spell(const Layout* layout, std::span<const Sharding> like = {});

/// Whether values with this sharding are partial sums: P(unreduced(...)).
bool is_partial(const Sharding& s);
/// The same tiles without unreduced axes: where such a value is after it is combined.
Sharding added_up(const Sharding& s);

/// Appends words that are equal exactly for equal spellings (`==`).
void put_sharding(const Sharding& s, Words& words);

/// The mesh of a NamedSharding; null for other spellings.
const Mesh* mesh_of(const Sharding& s);

/// Sub-axes as names of mesh axes, for pictures and explain: `{x}`, `{x,y}`; part of an axis as `x:(1)2`; without a mesh, or if it does not
/// fit, as `{1:4}`.
std::string axis_names(const AxisList& axes, const DeviceOrder* order, const Mesh* mesh);

/// A placement per dimension, with the mesh's names: `[{x}, {}]`.
std::string spec_text(const Layout& layout, const Mesh* mesh);

/// A layout as a user writes it.
struct ShardingCode {
  /// `NamedSharding(mesh, P("x", none, axes("y", "z")))`; if mesh axes have to be split, `NamedSharding(make_mesh({{"x1", 2}, {"x2", 4}},
  /// mesh.devices()), P("x2"))`. If the mesh is unknown or does not fit, one over the devices in a line: `make_mesh({{"x", 8}},
  /// devices("cpu"))`, `make_mesh({{"x", 2}}, {devices("cpu")[5], devices("cpu")[1]})`. For more than 8 devices in another order, and for
  /// described machines: spec_text().
  std::string text;
  std::vector<std::string> in_parts;  ///< the mesh axes that have to be split
};
ShardingCode sharding_code(const Layout& layout, const Mesh* mesh);

/// The sharding part of a type string, per dimension: `f32[16@data,8]` consists of "@data" and "". Replicated: "". Without a mesh: "@8"
/// (the number of tiles).
std::string dim_suffix(const Layout& layout, int d, const Mesh* mesh);
/// What follows the dimensions of a partial sum: `{U:y}`; "" for other values.
std::string summands_suffix(const Layout& layout, const Mesh* mesh);
/// `f32[16@data,8]`, `f32[16@data,8]{U:y}`.
std::string type_string(DType dtype, const Shape& shape, const Layout& layout, const Mesh* mesh);

}  // namespace shardarray
