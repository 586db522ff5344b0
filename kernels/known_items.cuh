// Steps of a whole program's kernel with their numbers in the text (src/cuda/known_items.h): only addresses are looked up; loop bounds and
// divisors are constants. A `Known` is a struct of these numbers; place(bases, item, number) is the address of an operand.
#pragma once
#include "kernels/exchange.cuh"
#include "kernels/gemm.cuh"

namespace shardarray::device {

/// A number that differs between items.
template <std::uint64_t... all> SHARDARRAY_DEVICE inline std::uint64_t of_item(std::uint32_t item) {
  static constexpr std::uint64_t list[] = {all...};
  return list[item];
}

/// The interface of PrintedItem, with numbers that are the same for all items of the step.
template <class Known> class KnownItem {
 public:
  SHARDARRAY_DEVICE KnownItem(const Grid& g, const std::byte*, const Bases& bases)
      : item_(g.item), bases_(bases) {}

  static constexpr std::int64_t outer_points = Known::outer_points, inner_points = Known::inner_points;
  static constexpr std::int64_t block = Known::block;

  SHARDARRAY_DEVICE std::byte* place(std::uint32_t a) const { return Known::place(bases_, item_, a); }
  SHARDARRAY_DEVICE std::int64_t start(std::uint32_t a) const { return Known::start(item_, a); }
  SHARDARRAY_DEVICE static constexpr std::int64_t extent(std::uint32_t axis) { return Known::extent(axis); }
  SHARDARRAY_DEVICE static constexpr std::int64_t stride(std::uint32_t number) {
    return Known::stride(number);
  }

 private:
  const std::uint32_t item_;
  const Bases& bases_;
};

template <class In, class Known>
SHARDARRAY_DEVICE void known_product(const Grid& g, const std::byte*, const Bases& bases) {
  using Out = decltype(wide(In{}));
  make_elements<In>(g, Known{}, reinterpret_cast<const In*>(Known::place(bases, g.item, 0)),
                    reinterpret_cast<const In*>(Known::place(bases, g.item, 1)),
                    reinterpret_cast<Out*>(Known::place(bases, g.item, 2)));
}

template <class In, class Known>
SHARDARRAY_DEVICE void known_product_by_lanes(const Grid& g, const std::byte*, const Bases& bases) {
  using Out = decltype(wide(In{}));
  make_elements_by_lanes<In>(g, Known{}, reinterpret_cast<const In*>(Known::place(bases, g.item, 0)),
                             reinterpret_cast<const In*>(Known::place(bases, g.item, 1)),
                             reinterpret_cast<Out*>(Known::place(bases, g.item, 2)));
}

/// One piece per item: operands 0, 1, ... are its sources, and the last one is its destination.
template <class Combine, class Known>
SHARDARRAY_DEVICE void known_move(const Grid& g, const std::byte*, const Bases& bases) {
  constexpr std::uint32_t bytes = Known::bytes, sources = Known::sources;
  const Combine combine{Instruction{}};
  for (std::int64_t i = first_point(g); i < Known::units; i += point_step(g)) {
    auto unit = static_cast<std::uint32_t>(i);
    MoveDistance d;
    for (std::uint32_t x = Known::axes; x-- > 0;) {
      const MoveAxis axis{Known::axis_number(3 * x), Known::axis_number(3 * x + 1),
                          Known::axis_number(3 * x + 2)};
      const std::int64_t at =
          x == 0 ? static_cast<std::int64_t>(unit) : take_off(unit, static_cast<std::uint32_t>(axis.extent));
      d.src += at * axis.src;
      d.dst += at * axis.dst;
    }
    std::byte* const dst = Known::place(bases, g.item, sources) + d.dst;
    if constexpr (sources == 1) {
      copy_element(dst, Known::place(bases, g.item, 0) + d.src, bytes);
    } else {
      std::uint64_t all[sources];
      for (std::uint32_t s = 0; s < sources; s++)
        all[s] = read_bits(Known::place(bases, g.item, s) + d.src, bytes);
      for (std::uint32_t s = 1; s < sources; s++) all[0] = combine(all[0], all[s]);
      write_bits(dst, bytes, all[0]);
    }
  }
}

}  // namespace shardarray::device
