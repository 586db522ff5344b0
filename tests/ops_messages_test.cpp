// The messages of the public functions, word by word.
#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "erased.h"
#include "graph/graph.h"
#include "shardarray/shardarray.h"

namespace shardarray::ops_messages_test {
namespace {

Array in(const Shape& shape, DType t = float32) { return placeholder({shape, t, false}); }

template <class E> std::string message(const shardarray::testing::Erased<void()>& f) {
  try {
    f();
  } catch (const E& e) { return e.text(); }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("messages: name the function that was called, not one that it calls") {
  const Array x = in({2, 3}), y = in({2});
  const auto begins = [](const std::string& text, const char* with) { return text.rfind(with, 0) == 0; };
  CHECK(begins(message<ShapeError>([&] { allclose(x, y); }),
               "allclose: shapes [2,3], [2] cannot be broadcast"));
  CHECK(begins(message<Error>([&] { allclose(x, Array()); }), "allclose: the array is absent."));
  CHECK(
      begins(message<ShapeError>([&] { losses::mse(x, y); }), "mse: shapes [2,3], [2] cannot be broadcast"));
  CHECK(begins(message<ShapeError>([&] { losses::softmax_cross_entropy(x, y); }),
               "softmax_cross_entropy: shapes [2], [2,3] cannot be broadcast"));
  CHECK(begins(message<ShapeError>([&] { random::bernoulli(random::key(0), x, {3}); }),
               "random::bernoulli: [2,3] does not fit into [3]."));
  CHECK(begins(
      message<TraceError>([&] { jit([](const Array& a) { return to_string(a).empty() ? a : a + 1; })(x); }),
      "to_string: "));
}

TEST_CASE("messages: elementwise") {
  const Array x = in({2, 3}), i = in({2, 3}, int32), b = in({2}, bool_), c = in({2}, complex64);
  CHECK(message<ShapeError>([&] { x + in({2}); }) ==
        "add: shapes [2,3], [2] cannot be broadcast together: sizes 3 and 2 meet. Aligned at the last "
        "dimension, sizes must be equal "
        "or 1. Insert dimensions with reshape or newaxis.");
  CHECK(message<ShapeError>([&] { where(b, x, x); }) ==
        "where: shapes [2], [2,3], [2,3] cannot be broadcast together: sizes 2 and 3 meet. Aligned at the "
        "last dimension, sizes must be "
        "equal or 1. Insert dimensions with reshape or newaxis.");
  CHECK(message<Error>([&] { x* Array(); }) ==
        "multiply: the array is absent. Array() holds nothing; ask has_value() first.");
  CHECK(message<DTypeError>([&] { x& i; }) ==
        "bitwise_and: the operand is f32[2,3]. It takes integers and bool. Cast with astype.");
  CHECK(message<DTypeError>([&] { i << x; }) ==
        "left_shift: the operand is f32[2,3]. It takes integers and bool. Cast with astype.");
  CHECK(message<DTypeError>([&] { ~x; }) ==
        "bitwise_not: the operand is f32[2,3]. It takes integers and bool. Cast with astype.");
  CHECK(message<DTypeError>([&] { in({2}, int64) | in({2}, uint64); }) ==
        "bitwise_or: the operands i64[2] and u64[2] promote to float64. It takes integers and bool. Cast one "
        "with astype.");
  CHECK(message<DTypeError>([&] { -b; }) ==
        "negative: the operand is bool[2]. It takes numbers; of bools use logical_not. Cast with astype.");
  CHECK(message<DTypeError>([&] { b - b; }) ==
        "subtract: the operand is bool[2]. It takes numbers; of bools use logical_xor. Cast with astype.");
  CHECK(message<DTypeError>([&] { sign(b); }) ==
        "sign: the operand is bool[2]. It takes numbers. Cast with astype.");
  CHECK(message<DTypeError>([&] { round(b); }) ==
        "round: the operand is bool[2]. It takes numbers. Cast with astype.");
  CHECK(message<DTypeError>([&] { c % c; }) ==
        "remainder: the operand is c64[2]. It takes real numbers. Cast with astype.");
  CHECK(message<DTypeError>([&] { floor(c); }) ==
        "floor: the operand is c64[2]. It takes real numbers. Cast with astype.");
  CHECK(message<DTypeError>([&] { power(i, -1); }) ==
        "power: the operand is i32[2,3]. Integers cannot be raised to negative powers. Cast with astype.");
  CHECK(message<DTypeError>([&] { bitcast(x, int16); }) ==
        "bitcast: f32[2,3] of 4 bytes to int16 of 2 bytes. The widths must be equal. Use astype to convert "
        "values.");
}

TEST_CASE("messages: what cannot be computed is said in the name of the function that was called") {
  const Array a = device_put(ones({4, 4}), devices()[0]), b = device_put(ones({4, 4}), devices()[1]);
  const std::vector<std::pair<std::string, shardarray::testing::Erased<Array()>>> cases{
      {"equal", [&] { return a == b; }},
      {"subtract", [&] { return a - b; }},
      {"maximum", [&] { return maximum(a, b); }},
      {"matmul", [&] { return matmul(a, b); }},
      {"einsum", [&] { return einsum("ij,kj->ik", a, b); }},
      {"stack",
       [&] {
         return stack({a, b});
       }},
      {"at.set", [&] { return a.at(0).set(b[0]); }},
      {"clip", [&] { return clip(a, b, b); }},
      {"fma", [&] { return fma(a, b, b); }},
      {"nn::Linear",
       [&] {
         return nn::Linear{a, {}}(b[0]);
       }},
      {"mse", [&] { return losses::mse(a, b); }},
      {"allclose", [&] { return Array(allclose(a, b)); }},
      {"array_equal", [&] { return Array(array_equal(a, b)); }},
      {"tree_equal", [&] { return Array(tree_equal(a, b)); }},
      {"apply_updates", [&] { return apply_updates(a, b); }},
  };
  for (const auto& [function, f] : cases) {
    const std::string said = message<DeviceError>([&f = f] { f().block_until_ready(); });
    CHECK(said.substr(0, said.find(": Received incompatible devices for one computation.")) == function);
  }
}

TEST_CASE("messages: axes and reductions") {
  const Array x = in({2, 3});
  CHECK(message<ShapeError>([&] { expand_dims(x, 7); }) ==
        "expand_dims: axis 7 is out of bounds for [2,3] and its result of rank 3. Axes count in the result, "
        "from 0, or from -1 at the end. Give one that it has.");
  CHECK(message<ShapeError>([&] { sum(x, 2); }) ==
        "sum: axis 2 is out of bounds for shape [2,3] of rank 2. Axes count from 0, or from -1 at the end. "
        "Give one that the array has.");
  CHECK(message<ShapeError>([&] {
          max(x, {.axis = {0, -2}});
        }) == "max: axes [0,-2] name dimension 0 twice. Every axis may stand once. Remove one.");
  CHECK(message<ShapeError>([&] {
          min(in({2, 0}), 1);
        }) ==
        "min: f32[2,0] has no elements along axes [1]. No element has an extremum. Check the size first.");
  CHECK(message<ShapeError>([&] {
          argmax(x, {.axis = {0, 1}});
        }) == "argmax: axes [0,1]. It takes one axis, or none for the flattened array. Reshape first.");
  CHECK(
      message<DTypeError>([&] {
        argmax(in({65536, 32769}));
      }) ==
      "argmax: the positions in an array of 2147549184 elements do not fit into int32. A position is a value "
      "of its dtype. Look along one axis.");
  CHECK(
      message<DTypeError>([&] {
        argmin(in({3, 2147483649}), 1);
      }) ==
      "argmin: the positions along a dimension of 2147483649 elements do not fit into int32. A position is a "
      "value of its dtype. Reshape so that the dimension is shorter.");
  CHECK(argmax(in({65536, 32768})).dtype() == int32);
  CHECK(message<ShapeError>([&] { argmin(in({0})); }) ==
        "argmin: f32[0] has no elements along axes [0]. No element has an extremum. Check the size first.");
  CHECK(message<ShapeError>([&] { softmax(x, -3); }) ==
        "softmax: axis -3 is out of bounds for shape [2,3] of rank 2. Axes count from 0, or from -1 at the "
        "end. Give one that the array "
        "has.");
  CHECK(message<DTypeError>([&] { mean(x, {.dtype = int32}); }) ==
        "mean: dtype int32 was asked for. The result is floating. Give a floating dtype.");
  CHECK(message<DTypeError>([&] { one_hot(x, 3); }) ==
        "one_hot: the operand is f32[2,3]. It takes integers and bool. Cast with astype.");
  CHECK(message<ShapeError>([&] { one_hot(in({2}, int32), -1); }) ==
        "one_hot: n is -1. The number of classes is not negative. Give the number of classes.");
}

TEST_CASE("messages: rearranging") {
  const Array x = in({2, 3});
  CHECK(message<ShapeError>([&] { x.reshape({4}); }) ==
        "reshape: cannot reshape [2,3] (6 elements) into [4]. The number of elements must stay. Use -1 for a "
        "size that follows from the "
        "others.");
  CHECK(
      message<ShapeError>([&] {
        x.reshape({4, -1});
      }) ==
      "reshape: cannot reshape [2,3] (6 elements) into [4,-1]. The number of elements must stay. Give sizes "
      "beside -1 whose product divides 6.");
  CHECK(message<ShapeError>([&] {
          x.reshape({-1, -1});
        }) == "reshape: sizes [-1,-1]. They are not negative; one may be -1. Give the sizes.");
  CHECK(
      message<ShapeError>([&] { x.transpose({0}); }) ==
      "transpose: permutation [0] for shape [2,3]. Every dimension must stand in it once. List all 2 axes.");
  CHECK(message<ShapeError>([&] {
          x.transpose({0, 0});
        }) == "transpose: axes [0,0] name dimension 0 twice. Every axis may stand once. Remove one.");
  CHECK(message<ShapeError>([&] {
          moveaxis(x, {0, 1}, {0});
        }) == "moveaxis: from [0,1] to [0]. Every axis needs a destination. Give two lists of one length.");
  CHECK(
      message<ShapeError>([&] { squeeze(x, 0); }) ==
      "squeeze: dimension 0 of [2,3] has size 2. Only dimensions of size 1 can go. Use reshape or an index.");
  CHECK(message<ShapeError>([&] {
          broadcast_to(x, {1, 3});
        }) ==
        "broadcast_to: [2,3] does not fit into [1,3]. Aligned at the last dimension, sizes must be equal, or "
        "1 in the operand. Give a "
        "larger shape.");
  CHECK(message<ShapeError>([&] {
          concatenate({x, in({2, 4})});
        }) ==
        "concatenate: shapes [2,3] and [2,4] along axis 0. The other sizes must agree. Reshape or slice an "
        "operand.");
  CHECK(message<ShapeError>([&] { concatenate({}); }) ==
        "concatenate: no arrays. There must be at least one. Use zeros for an empty array.");
  CHECK(message<ShapeError>([&] {
          stack({x, in({3})});
        }) == "stack: shapes [2,3] and [3]. All must be equal. Broadcast or slice an operand.");
  CHECK(message<ShapeError>([&] { split(x, 2, 1); }) ==
        "split: 3 elements into 2 pieces. The pieces must be equal. Give the positions where pieces begin.");
  CHECK(message<ShapeError>([&] {
          split(x, {2, 1}, 1);
        }) == "split: positions [2,1] for 3 elements. They must rise and lie inside. Sort them.");
  CHECK(message<ShapeError>([&] {
          pad(x, {{1, 1}});
        }) ==
        "pad: 1 pair of widths for shape [2,3]. Every dimension needs one pair. Use {0, 0} for dimensions "
        "that stay.");
  CHECK(message<ShapeError>([&] { pad(x, -1); }) ==
        "pad: widths -1 and -1. They are not negative. Use a slice to remove elements.");
  CHECK(message<ShapeError>([&] { tril(in({3})); }) ==
        "tril: shape [3]. A matrix has two dimensions at least. Reshape first.");
  CHECK(message<DTypeError>([&] { take(x, x); }) ==
        "take: the operand is f32[2,3]. Indices are integers. Cast with astype.");
}

TEST_CASE("messages: products") {
  const Array x = in({4, 3}), y = in({4, 2});
  CHECK(message<ShapeError>([&] { matmul(x, y); }) ==
        "matmul: f32[4,3] @ f32[4,2] contracts 3 with 4. The last dimension of the left operand must equal "
        "the last but one of the right one. Transpose the left operand.");
  CHECK(message<ShapeError>([&] {
          matmul(x, in({4, 3}));
        }).ends_with("right one. Transpose the left operand."));
  CHECK(message<ShapeError>([&] {
          matmul(x, in({2, 3}));
        }).ends_with("right one. Transpose the right operand."));
  CHECK(message<ShapeError>([&] {
          matmul(x, in({2, 5}));
        }).ends_with("one. Give operands that agree there."));
  CHECK(message<ShapeError>([&] { matmul(x, in({5})); }).ends_with("one. Give operands that agree there."));
  CHECK(message<ShapeError>([&] { matmul(x, 2.0); }) ==
        "matmul: operands f32[4,3] and f32[]. Scalars have no dimension to contract. Use multiply.");
  CHECK(message<ShapeError>([&] {
          matmul(in({2, 4, 3}), in({3, 3, 5}));
        }) ==
        "matmul: shapes [2], [3] cannot be broadcast together: sizes 2 and 3 meet. Aligned at the last "
        "dimension, sizes must be equal or "
        "1. Insert dimensions with reshape or newaxis.");
  CHECK(message<ShapeError>([&] { dot(x, y); }) ==
        "dot: f32[4,3] with f32[4,2]. The last dimension of the left operand must equal the last but one of "
        "the right one. Transpose an "
        "operand.");
  CHECK(message<ShapeError>([&] {
          tensordot(x, y, {0, 1}, {0, 1});
        }) ==
        "tensordot: axes [0,1] of f32[4,3] with axes [0,1] of f32[4,2]. Paired axes must have equal sizes. "
        "Give pairs that fit.");
  CHECK(message<ShapeError>([&] { tensordot(x, y, 3); }) ==
        "tensordot: 3 axes of f32[4,3] and f32[4,2]. Both operands must have that many. Give fewer.");
  CHECK(message<ShapeError>([&] { einsum("ij,ik->jk", x); }) ==
        "einsum: \"ij,ik->jk\": 2 terms for 1 operand. Every operand needs one. Separate terms by commas.");
  CHECK(message<ShapeError>([&] { einsum("i.j->j", x); }) ==
        "einsum: \"i.j->j\": '.' is no letter. A dimension is one letter, \"...\" stands for leading ones. "
        "Change the text.");
  CHECK(message<ShapeError>([&] { einsum("ij->k", x); }) ==
        "einsum: \"ij->k\": result letter 'k' stands in no operand. A result letter stands once there, and "
        "in an operand. Change the "
        "result.");
  CHECK(message<ShapeError>([&] { einsum("ij->ii", x); }) ==
        "einsum: \"ij->ii\": result letter 'i' stands twice. A result letter stands once there, and in an "
        "operand. Change the result.");
  CHECK(message<ShapeError>([&] { einsum("i->i", x); }) ==
        "einsum: \"i->i\": operand 0 is f32[4,3] for term \"i\". A term has one letter per dimension. Add or "
        "remove letters.");
  CHECK(message<ShapeError>([&] { einsum("ij,jk->ik", x, y); }) ==
        "einsum: \"ij,jk->ik\": letter 'j' is 3 and 4. One letter has one size. Check operand 1, f32[4,2].");
}

TEST_CASE("messages: creation, subscripts, collectives") {
  const Array x = in({4, 3});
  CHECK(message<ShapeError>([&] {
          zeros({2, -1});
        }) == "zeros: shape [2,-1]. Sizes are not negative. Give the number of elements of every dimension.");
  CHECK(message<ShapeError>([&] { full({2}, x); }) ==
        "full: shapes [4,3], [2] cannot be broadcast together: sizes 3 and 2 meet. Aligned at the last "
        "dimension, sizes must be equal or "
        "1. Insert dimensions with reshape or newaxis.");
  CHECK(message<ShapeError>([&] {
          full({1, 3}, x);
        }) ==
        "full: the value has shape [4,3], the result [1,3]. The value is broadcast to the result. Give a "
        "scalar.");
  CHECK(message<ShapeError>([&] { arange(0, 3, 0); }) ==
        "arange: step 0. It would never reach the end. Give a step that is not 0.");
  CHECK(message<ShapeError>([&] { arange(0, std::numeric_limits<double>::infinity()); }) ==
        "arange: 0 to inf by 1. The number of elements must be finite. Give finite bounds.");
  CHECK(message<ShapeError>([&] { linspace(0, 1, -1); }) ==
        "linspace: num is -1. The number of values is not negative. Give how many there are.");
  CHECK(message<ShapeError>([&] { x[4]; }) ==
        "index: 4 is out of bounds for dimension 0 of size 4. An index lies in [-size, size). Use a slice, "
        "which is cut off, or take.");
  CHECK(message<ShapeError>([&] {
          in({4, 3}).at(4).set(1);
        }) ==
        "at.set: 4 is out of bounds for dimension 0 of size 4. An index lies in [-size, size). Use a slice, "
        "which is cut off.");
  CHECK(message<ShapeError>([&] {
          x[{0, 0, 0}];
        }) ==
        "index: 3 indices for shape [4,3] of rank 2. There is at most one per dimension. Remove some, or add "
        "dimensions with newaxis.");
  CHECK(message<ShapeError>([&] {
          x[{ellipsis, ellipsis}];
        }) == "index: 2 ellipses. One stands for all dimensions between. Use all for single ones.");
  CHECK(message<ShapeError>([&] { x[slice(0, 4, 0)]; }) ==
        "index: step 0 in dimension 0. A slice must move. Give a step that is not 0.");
  CHECK(message<ShapeError>([&] { x.at({0}).set(in({2})); }) ==
        "at.set: shapes [2], [3] cannot be broadcast together: sizes 2 and 3 meet. Aligned at the last "
        "dimension, sizes must be equal or "
        "1. Insert dimensions with reshape or newaxis.");
  CHECK(message<ShapeError>([&] { x.at({0}).add(x); }) ==
        "at.add: a value of shape [4,3] for an indexed part of shape [3]. The value is broadcast to the "
        "part. Give a value that fits.");
  CHECK(message<TraceError>([&] { psum(x, "i"); }) ==
        "psum: unbound axis name 'i'. In scope: none. A name is bound by vmap, pmap or shard_map with "
        "axis_name.");
  CHECK(message<TraceError>([&] { axis_index("i"); }) ==
        "axis_index: unbound axis name 'i'. In scope: none. A name is bound by vmap, pmap or shard_map with "
        "axis_name.");
}

}  // namespace shardarray::ops_messages_test
