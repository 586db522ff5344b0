// Between what the user wrote (Sharding) and the canonical form (Layout).
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

/// The canonical form, which `s` holds, for a value of rank `rank`. Throws ShardingError by the rank rule of the sharding's class,
/// in the name of `function`, else of the class.
const Layout* layout_of(const Sharding& s, int rank, const char* function = nullptr);

/// `layout` spelled as a sharding, in the class of the first of `like` that is on the same devices and can express it
/// (the very same object when it is equivalent); otherwise SingleDevice on one device, else Positional. It holds `layout`.
Sharding spell(const Layout* layout, std::span<const Sharding> like = {});

/// Whether a value that lies so is held as summands: P(unreduced(...)).
bool is_partial(const Sharding& s);
/// The same pieces without unreduced axes: where such a value lies when it is added up.
Sharding added_up(const Sharding& s);

/// Words that are equal exactly for equal spellings (`==`).
void put_sharding(const Sharding& s, Words& words);

/// The mesh of a NamedSharding; null for other spellings.
const Mesh* mesh_of(const Sharding& s);

/// Sub-axes by the mesh axes that they are, for pictures and explain: `{x}`, `{x,y}`; a part of an axis as `x:(1)2`;
/// without a mesh (or where it does not fit) as `{1:4}`.
std::string axis_names(const AxisList& axes, const DeviceOrder* order, const Mesh* mesh);

/// A placement dimension by dimension, with the mesh's names: `[{x}, {}]`.
std::string spec_text(const Layout& layout, const Mesh* mesh);

/// A layout as a user writes it.
struct ShardingCode {
  /// `NamedSharding(mesh, P("x", none, axes("y", "z")))`, of a mesh in parts `NamedSharding(make_mesh({{"x1", 2}, {"x2", 4}},
  /// mesh.devices()), P("x2"))`; where no mesh is known or has its axes, of one of its devices in a line: `make_mesh({{"x", 8}},
  /// devices("cpu"))`, `make_mesh({{"x", 2}}, {devices("cpu")[5], devices("cpu")[1]})`; spec_text() of more than 8 devices in
  /// another order, and of described machines.
  std::string text;
  std::vector<std::string> in_parts;  ///< the axes that the mesh needs in parts
};
ShardingCode sharding_code(const Layout& layout, const Mesh* mesh);

/// The sharding part of a type string, dimension by dimension: `f32[16@data,8]` is made from "@data" and "".
/// Replicated: "". Without a mesh: "@8" (the number of tiles).
std::string dim_suffix(const Layout& layout, int d, const Mesh* mesh);
/// What stands behind the dimensions of partial sums: `{U:y}`; "" where there are none.
std::string summands_suffix(const Layout& layout, const Mesh* mesh);
/// `f32[16@data,8]`, `f32[16@data,8]{U:y}`.
std::string type_string(DType dtype, const Shape& shape, const Layout& layout, const Mesh* mesh);

}  // namespace shardarray
