#include "cuda/known_items.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "cuda/table.h"
#include "kernels/exchange.cuh"
#include "kernels/gemm.cuh"
#include "kernels/loop_table.cuh"

namespace shardarray::cuda {
namespace {

using device::Address;

constexpr std::uint32_t most_sources = 16;  // of a move: all are loaded before the first two are combined

/// A range of a launch's items.
struct Chosen {
  std::uint32_t first, count;
  template <class Item> std::vector<Item> of(const std::vector<Item>& all) const {
    return {all.begin() + first, all.begin() + first + count};
  }
};

/// all[i]: the address of an operand of item i.
using Places = std::vector<Address>;

class KnownText {
 public:
  KnownText(const KnownArenas& arenas, const std::string& name) : arenas_(arenas) {
    text_ = fmt::format("struct {} {{\n", name);
  }
  void number(const char* name, std::int64_t value) {
    text_ += fmt::format("  static constexpr std::int64_t {} = {};\n", name, value);
  }
  void small(const char* name, std::uint32_t value) {
    text_ += fmt::format("  static constexpr std::uint32_t {} = {};\n", name, value);
  }
  void numbers(const char* name, const std::vector<std::int64_t>& values) {
    text_ += fmt::format(
        "  SHARDARRAY_DEVICE static constexpr std::int64_t {}([[maybe_unused]] std::uint32_t k) {{\n"
        "    {}\n  }}\n",
        name,
        values.empty() ? "return 0;"
                       : fmt::format("constexpr std::int64_t all[] = {{{}}};\n    return all[k];",
                                     fmt::join(values, ", ")));
  }
  /// The values of index operands at point 0, by operand.
  void starts(const std::vector<Places>& operands) {
    text_ +=
        "  SHARDARRAY_DEVICE static std::int64_t start([[maybe_unused]] std::uint32_t item, std::uint32_t "
        "number) {\n"
        "    switch (number) {\n";
    for (std::size_t o = 0; o < operands.size(); o++) {
      const auto offset = [](const Address& a) { return a.offset; };
      text_ += fmt::format("      case {}: return static_cast<std::int64_t>({});\n", o,
                           by_item(operands[o], offset));
    }
    text_ += "      default: return 0;\n    }\n  }\n";
  }
  void places(const std::vector<Places>& operands) {
    text_ +=
        "  SHARDARRAY_DEVICE static std::byte* place([[maybe_unused]] const Bases& bases, [[maybe_unused]] "
        "std::uint32_t item,\n"
        "                                            std::uint32_t number) {\n    switch (number) {\n";
    for (std::size_t o = 0; o < operands.size(); o++)
      text_ += fmt::format("      case {}: return {};\n", o, place(operands[o]));
    text_ += "      default: return nullptr;\n    }\n  }\n";
  }
  /// Empty: something is not known.
  std::string take() { return is_known_ ? text_ + "};\n" : ""; }

 private:
  std::string place(const Places& all) {
    const auto in_arenas =
        std::count_if(all.begin(), all.end(), [&](const Address& a) { return a.base < arenas_.count; });
    if (in_arenas == std::ssize(all))
      return fmt::format("arenas + {}",
                         by_item(all, [&](const Address& a) { return a.base * arenas_.bytes + a.offset; }));
    if (in_arenas > 0) is_known_ = false;  // mixed: a table is needed
    return fmt::format("address_of(bases, {{static_cast<std::uint32_t>({}), {}}})",
                       by_item(all, [](const Address& a) { return std::uint64_t{a.base}; }),
                       by_item(all, [](const Address& a) { return a.offset; }));
  }
  /// An expression in `item`.
  template <class Number> std::string by_item(const Places& all, const Number& number) {
    constexpr std::size_t most_listed = 64;
    const std::uint64_t first = number(all[0]), step = all.size() > 1 ? number(all[1]) - first : 0;
    bool even = true;
    for (std::size_t i = 0; i < all.size(); i++) even = even && number(all[i]) == first + i * step;
    if (even && step == 0) return fmt::format("{}ull", first);
    if (even) return fmt::format("({}ull + {}ull * item)", first, step);
    if (all.size() > most_listed) is_known_ = false;
    std::string list;
    for (const Address& a : all) list += fmt::format("{}{}ull", list.empty() ? "" : ", ", number(a));
    return fmt::format("of_item<{}>(item)", list);
  }

  bool is_known_ = true;
  const KnownArenas& arenas_;
  std::string text_;
};

template <class Item, class Same> bool all_same(const std::vector<Item>& items, const Same& same) {
  return std::all_of(items.begin(), items.end(), [&](const Item& i) { return same(i, items[0]); });
}

std::string known_loop(const KernelLaunch& l, const Chosen& chosen, const KnownArenas& arenas,
                       const std::string& name) {
  for (const KernelArg& a : l.loop->args)
    if (a.indirect) return "";
  const TableReader table(l.table);
  const auto head = table.head<device::LoopTable>();
  const std::vector<device::LoopItem> items = chosen.of(table.list(head.items));
  const LoopOperands operands(*l.loop);
  const auto extents = [&](const device::LoopItem& i) { return table.list<std::int64_t>(i.extents, i.axes); };
  const auto strides = [&](const device::LoopItem& i) {
    return table.list<std::int64_t>(i.strides, operands.count() * i.axes);
  };
  if (!all_same(items, [&](const device::LoopItem& a, const device::LoopItem& b) {
        return a.outer_points == b.outer_points && a.inner_points == b.inner_points && a.axes == b.axes &&
               extents(a) == extents(b) && strides(a) == strides(b);
      }))
    return "";
  std::vector<Places> places(operands.count());
  for (const device::LoopItem& i : items) {
    const auto all = table.list<device::LoopArgument>(i.arguments, operands.count());
    for (std::size_t o = 0; o < all.size(); o++) places[o].push_back(all[o].address);
  }
  KnownText text(arenas, name);
  text.number("outer_points", items[0].outer_points);
  text.number("inner_points", items[0].inner_points);
  text.number("block", head.block);
  text.numbers("extent", extents(items[0]));
  text.numbers("stride", strides(items[0]));
  text.starts(places);
  places.resize(operands.arguments);
  text.places(places);
  return text.take();
}

std::string known_products(const KernelLaunch& l, const Chosen& chosen, const KnownArenas& arenas,
                           const std::string& name) {
  const TableReader table(l.table);
  const std::vector<device::ProductItem> items =
      chosen.of(table.list(table.head<device::ProductTable>().items));
  constexpr std::pair<const char*, std::int64_t device::ProductItem::*> numbers[] = {
      {"m", &device::ProductItem::m},
      {"n", &device::ProductItem::n},
      {"k", &device::ProductItem::k},
      {"batch", &device::ProductItem::batch},
      {"a_row", &device::ProductItem::a_row},
      {"a_col", &device::ProductItem::a_col},
      {"a_batch", &device::ProductItem::a_batch},
      {"b_row", &device::ProductItem::b_row},
      {"b_col", &device::ProductItem::b_col},
      {"b_batch", &device::ProductItem::b_batch},
      {"c_row", &device::ProductItem::c_row},
      {"c_batch", &device::ProductItem::c_batch},
      {"lanes", &device::ProductItem::lanes}};
  KnownText text(arenas, name);
  for (const auto& [number, member] : numbers) {
    if (!all_same(items, [member = member](const auto& a, const auto& b) { return a.*member == b.*member; }))
      return "";
    text.number(number, items[0].*member);
  }
  std::vector<Places> places(3);
  for (const device::ProductItem& i : items) {
    places[0].push_back(i.a);
    places[1].push_back(i.b);
    places[2].push_back(i.c);
  }
  text.places(places);
  return text.take();
}

std::string known_moves(const KernelLaunch& l, const Chosen& chosen, const KnownArenas& arenas,
                        const std::string& name) {
  const TableReader table(l.table);
  const std::vector<device::MoveItem> items = chosen.of(table.list(table.head<device::MoveTable>().items));
  std::vector<device::MovePiece> pieces;
  for (const device::MoveItem& i : items) {
    if (i.pieces.count != 1 || i.units != items[0].units || i.units >> 32 != 0) return "";
    pieces.push_back(table.list(i.pieces)[0]);
  }
  const std::uint32_t sources = pieces[0].sources.count;
  const auto axes = [&](const device::MovePiece& p) {
    std::vector<std::int64_t> all;
    for (const device::MoveAxis& x : table.list(p.axes)) all.insert(all.end(), {x.extent, x.src, x.dst});
    return all;
  };
  if (sources > most_sources ||
      !all_same(pieces, [&](const device::MovePiece& a, const device::MovePiece& b) {
        return a.sources.count == b.sources.count && a.bytes == b.bytes && axes(a) == axes(b);
      }))
    return "";
  std::vector<Places> places(sources + 1);
  for (const device::MovePiece& p : pieces) {
    const std::vector<Address> all = table.list(p.sources);
    for (std::uint32_t s = 0; s < sources; s++) places[s].push_back(all[s]);
    places[sources].push_back(p.dst);
  }
  KnownText text(arenas, name);
  text.number("units", items[0].units);
  text.small("bytes", pieces[0].bytes);
  text.small("sources", sources);
  text.small("axes", pieces[0].axes.count);
  text.numbers("axis_number", axes(pieces[0]));
  text.places(places);
  return text.take();
}

}  // namespace

std::string known_items(const KernelLaunch& l, std::uint32_t first, std::uint32_t count,
                        const KnownArenas& arenas, const std::string& name) {
  const std::string_view kernel = l.any_block_kernel;
  const Chosen chosen{first, count};
  if (l.loop) return known_loop(l, chosen, arenas, name);
  if (kernel.starts_with("shardarray_product_")) return known_products(l, chosen, arenas, name);
  if (kernel == "shardarray_copy" || kernel.starts_with("shardarray_move"))
    return known_moves(l, chosen, arenas, name);
  return "";
}

}  // namespace shardarray::cuda
