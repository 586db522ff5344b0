// conv_general_dilated, conv, conv_transpose: padding, holes, groups and dimension numbers, in terms of the op conv.
#include "shardarray/convolution.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/count_text.h"
#include "ops/windows.h"

namespace shardarray {

namespace {

/// The checked dimension numbers of three terms, with the position of each dimension of the canonical order.
class DimensionNumbers {
 public:
  DimensionNumbers(const char* function, const ConvDimensionNumbers& given, std::size_t rank,
                   bool channels_last)
      : function_(function), terms_{given.lhs, given.rhs, given.out} {
    const std::string spatial = letters_of_space(rank - 2);
    const std::string defaults[] = {channels_last ? "N" + spatial + "C" : "NC" + spatial,
                                    channels_last ? spatial + "IO" : "OI" + spatial,
                                    channels_last ? "N" + spatial + "C" : "NC" + spatial};
    for (std::size_t k = 0; k < 3; k++)
      if (terms_[k].empty()) terms_[k] = defaults[k];
    for (std::size_t k = 0; k < 3; k++) check(k, rank);
  }

  char batch(std::size_t term) const { return term == 1 ? 'O' : 'N'; }
  char channels(std::size_t term) const { return term == 1 ? 'I' : 'C'; }
  std::size_t place(std::size_t term, char letter) const { return terms_[term].find(letter); }
  /// The positions of the spatial dimensions, in the kernel's order.
  Shape spatial(std::size_t term) const {
    Shape r;
    for (const char c : terms_[1])
      if (is_spatial(1, c)) r.push_back(static_cast<std::int64_t>(place(term, c)));
    return r;
  }
  /// The letters for the op conv, with these letters for batch and channels.
  std::string letters(std::size_t term, const std::string& batch_letters,
                      const std::string& channel_letters) const {
    std::string r;
    for (const char c : terms_[term]) {
      if (c == batch(term)) r += batch_letters;
      else if (c == channels(term)) r += channel_letters;
      else r += space_letter(c);
    }
    return r;
  }

 private:
  bool is_spatial(std::size_t term, char c) const { return c != batch(term) && c != channels(term); }
  char space_letter(char c) const {
    char r = 'A';
    for (const char x : terms_[1]) {
      if (x == c) break;
      r = static_cast<char>(r + is_spatial(1, x));
    }
    return r;
  }
  /// H, W and D as in JAX, digits for more.
  static std::string letters_of_space(std::size_t rank) {
    std::string r = rank == 1 ? "H" : rank == 2 ? "HW" : rank == 3 ? "HWD" : "";
    for (std::size_t k = 0; rank > 3 && k < rank; k++) r += static_cast<char>('0' + k);
    return r;
  }
  void check(std::size_t k, std::size_t rank) const {
    const std::string& term = terms_[k];
    const auto has_twice = [&](char c) { return std::count(term.begin(), term.end(), c) != 1; };
    const auto is_missing = [&](char c) { return is_spatial(k, c) && has_in_kernel(c) != 1; };
    if (term.size() != rank || has_twice(batch(k)) || has_twice(channels(k)) ||
        std::any_of(term.begin(), term.end(), has_twice) || std::any_of(term.begin(), term.end(), is_missing))
      throw Error(
          fmt::format("{}: dimension numbers \"{}\", \"{}\", \"{}\" of arrays of rank {}. Each has a letter "
                      "for every dimension: N and C (of the kernel O and I), and the same spatial letters, "
                      "once each. Correct them.",
                      function_, terms_[0], terms_[1], terms_[2], rank));
  }
  std::int64_t has_in_kernel(char c) const {
    return is_spatial(1, c) ? std::count(terms_[1].begin(), terms_[1].end(), c) : 0;
  }

  const char* function_;
  std::string terms_[3];
};

Shape sizes_at(const Shape& shape, const Shape& places) {
  Shape r;
  for (const std::int64_t d : places) r.push_back(shape[static_cast<std::size_t>(d)]);
  return r;
}
Shape reaches_of(const Shape& windows, const Shape& dilation) {
  Shape r;
  for (std::size_t d = 0; d < windows.size(); d++) r.push_back(windows::reach(windows[d], dilation[d]));
  return r;
}

/// Splits a dimension into (parts, rest).
Array split_groups(const Array& x, std::size_t dim, std::int64_t parts) {
  Shape shape = x.shape();
  shape[dim] /= parts;
  shape.insert(dim, parts);
  return primitive::reshape(x, shape);
}

struct ConvSizes {
  std::int64_t batch, channels, outputs, inputs;
};

void check_groups(const char* function, const Array& lhs, const Array& rhs, const ConvSizes& s,
                  std::int64_t features, std::int64_t batches) {
  const auto misfit = [&](const std::string& what) {
    throw ShapeError(fmt::format("{}: lhs {} and rhs {} with {} feature groups and {} batch groups. {}",
                                 function, to_string(type_of(lhs)), to_string(type_of(rhs)), features,
                                 batches, what));
  };
  if (features < 1 || batches < 1 || (features > 1 && batches > 1))
    misfit("There is 1 group or more, and one of both numbers is 1. Correct them.");
  if (s.channels % features != 0 || s.channels / features != s.inputs)
    misfit(
        fmt::format("The {} of lhs are those of all feature groups, and the kernel has the {} of one. Check "
                    "the dimension numbers and the groups.",
                    count_text(s.channels, "channel"), s.inputs));
  if (s.outputs % features != 0 || s.outputs % batches != 0 || s.batch % batches != 0)
    misfit(
        fmt::format("Groups divide the {} output channels, batch groups also the batch of {}. Check the "
                    "dimension numbers and the groups.",
                    s.outputs, s.batch));
}

void need_operands(const char* function, const Array& lhs, const Array& rhs) {
  const Type &a = type_of(lhs, function), &b = type_of(rhs, function);
  if (a.shape.size() < 2 || a.shape.size() != b.shape.size())
    throw ShapeError(
        fmt::format("{}: lhs {} and rhs {}. Both have one rank, which is 2 or more: a batch and channels "
                    "beside the spatial dimensions. Insert the batch with expand_dims.",
                    function, to_string(a), to_string(b)));
  for (const Array* x : {&lhs, &rhs})
    if (x->dtype() == DType::bool_) api::refuse_dtype(function, *x, "It takes numbers");
}

Array convolved(const char* function, const Array& lhs, const Array& rhs, const ConvOptions& o,
                const DimensionNumbers& numbers, const windows::Widths* known) {
  const Shape space = numbers.spatial(0), window = sizes_at(rhs.shape(), numbers.spatial(1));
  const Shape stride = windows::per_dimension(function, "strides", o.window_strides, space.size()),
              holes = windows::per_dimension(function, "lhs_dilation", o.lhs_dilation, space.size()),
              dilation = windows::per_dimension(function, "rhs_dilation", o.rhs_dilation, space.size());
  const auto size = [&](const Array& x, std::size_t term, char letter) {
    return x.shape()[numbers.place(term, letter)];
  };
  const ConvSizes s{size(lhs, 0, 'N'), size(lhs, 0, 'C'), size(rhs, 1, 'O'), size(rhs, 1, 'I')};
  check_groups(function, lhs, rhs, s, o.feature_group_count, o.batch_group_count);
  const windows::Widths widths = known ? *known
                                       : windows::widths_of(function, o.padding, sizes_at(lhs.shape(), space),
                                                            reaches_of(window, dilation), stride);
  const WeakType t = api::promoted(function, {&lhs, &rhs});
  Array x = windows::surrounded(function, api::cast(lhs, t), space, widths, holes),
        kernel = api::cast(rhs, t);
  std::string batch = "n", channels = "c", outputs = "o", out_channels = "o";
  const std::int64_t groups = std::max(o.feature_group_count, o.batch_group_count);
  if (groups > 1) {
    (o.feature_group_count > 1 ? channels : batch).insert(0, "g");
    x = split_groups(x, numbers.place(0, o.feature_group_count > 1 ? 'C' : 'N'), groups);
    kernel = split_groups(kernel, numbers.place(1, 'O'), groups);
    outputs = out_channels = "go";
  }
  Array y = primitive::conv(numbers.letters(0, batch, channels) + "," + numbers.letters(1, outputs, "c") +
                                "->" + numbers.letters(2, "n", out_channels),
                            x, kernel, stride, dilation);
  if (groups == 1) return y;
  Shape shape = y.shape();
  const std::size_t at = numbers.place(2, 'C');
  shape.erase(at);
  shape[at] = s.outputs;
  return primitive::reshape(y, shape);
}

}  // namespace

Array conv_general_dilated_fn::operator()(const Array& lhs, const Array& rhs, const ConvOptions& o,
                                          Where w) const {
  const Site site(w, "conv_general_dilated");
  need_operands("conv_general_dilated", lhs, rhs);
  const DimensionNumbers numbers("conv_general_dilated", o.dimension_numbers, lhs.shape().size(), false);
  const bool has_holes =
      std::any_of(o.lhs_dilation.begin(), o.lhs_dilation.end(), [](auto n) { return n != 1; });
  if (has_holes && !o.padding.rule().empty())
    throw Error(
        fmt::format("conv_general_dilated: padding \"{}\" with lhs_dilation {}. Rules are those of arrays "
                    "without holes. Give widths, or use conv_transpose.",
                    o.padding.rule(), to_string(o.lhs_dilation)));
  return convolved("conv_general_dilated", lhs, rhs, o, numbers, nullptr);
}

Array conv_fn::operator()(const Array& lhs, const Array& rhs, const Shape& window_strides,
                          const Padding& padding, Where w) const {
  const Site site(w, "conv");
  need_operands("conv", lhs, rhs);
  const DimensionNumbers numbers("conv", {}, lhs.shape().size(), false);
  return convolved("conv", lhs, rhs, {.window_strides = window_strides, .padding = padding}, numbers,
                   nullptr);
}

Array conv_transpose_fn::operator()(const Array& lhs, const Array& rhs, const ConvTransposeOptions& o,
                                    Where w) const {
  constexpr const char* function = "conv_transpose";
  const Site site(w, function);
  need_operands(function, lhs, rhs);
  const DimensionNumbers numbers(function, o.dimension_numbers, lhs.shape().size(), true);
  const Shape space = numbers.spatial(0), places = numbers.spatial(1), window = sizes_at(rhs.shape(), places);
  const Shape stride = windows::per_dimension(function, "strides", o.strides, space.size()),
              reaches = reaches_of(
                  window, windows::per_dimension(function, "rhs_dilation", o.rhs_dilation, space.size()));
  const std::string rule = windows::rule_of(function, o.padding);
  if (rule == "SAME_LOWER")
    throw Error(
        "conv_transpose: padding \"SAME_LOWER\". The rules are \"VALID\" and \"SAME\" here. Give widths.");
  windows::Widths widths =
      windows::widths_of(function, o.padding, sizes_at(lhs.shape(), space), reaches, stride);
  for (std::size_t d = 0; d < space.size(); d++) {
    const std::int64_t k = reaches[d], s = stride[d];
    auto& [lo, hi] = widths[d];
    if (rule == "SAME") {
      lo = s > k - 1 ? k - 1 : (k + s - 1) / 2;
      hi = k - 1 - lo + (s - 1);
    } else if (rule == "VALID") {
      lo = k - 1;
      hi = s - 1 + std::max<std::int64_t>(k - s, 0);
    } else if (o.use_consistent_padding) {
      lo = k - 1 - lo;
      hi = k - 1 - hi;
    }
  }
  Array kernel = rhs;
  if (o.transpose_kernel) {
    Shape turned, order;
    for (std::size_t d = 0; d < rhs.shape().size(); d++) order.push_back(static_cast<std::int64_t>(d));
    for (const std::int64_t d : places) turned.push_back(d - static_cast<std::int64_t>(order.size()));
    std::swap(order[numbers.place(1, 'O')], order[numbers.place(1, 'I')]);
    kernel = primitive::transpose(primitive::reverse(rhs, turned), order);
  }
  return convolved(function, lhs, kernel, {.lhs_dilation = stride, .rhs_dilation = o.rhs_dilation}, numbers,
                   &widths);
}

}  // namespace shardarray
