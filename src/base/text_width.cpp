#include "base/text_width.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace shardarray {
namespace {

struct Letter {
  std::size_t bytes, columns;
};

// The first letter of a non-empty text. A byte that does not start one counts as one letter.
Letter first_letter(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t bytes = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  std::uint32_t code = bytes == 1 ? first : first & (0x7fU >> bytes);
  std::size_t n = 1;
  for (; n < bytes && n < text.size() && (text[n] & 0xc0) == 0x80; n++)
    code = code << 6 | (static_cast<unsigned char>(text[n]) & 0x3fU);
  struct Range {
    std::uint32_t first, last;
  };
  // Unicode's East Asian Width W and F, as blocks, and emoji.
  static constexpr std::array wide{Range{0x1100, 0x115f},   Range{0x2329, 0x232a},   Range{0x2e80, 0xa4cf},
                                   Range{0xac00, 0xd7a3},   Range{0xf900, 0xfaff},   Range{0xfe10, 0xfe19},
                                   Range{0xfe30, 0xfe6f},   Range{0xff00, 0xff60},   Range{0xffe0, 0xffe6},
                                   Range{0x1f300, 0x1f64f}, Range{0x1f900, 0x1f9ff}, Range{0x20000, 0x3fffd}};
  const bool is_wide = code != 0x303f && std::ranges::any_of(wide, [&](const Range& r) {
                         return code >= r.first && code <= r.last;
                       });
  return {n, is_wide ? std::size_t{2} : std::size_t{1}};
}

}  // namespace

std::size_t text_width(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Letter l = first_letter(text);
    columns += l.columns;
    text.remove_prefix(l.bytes);
  }
  return columns;
}

std::size_t beginning_of(std::string_view text, std::size_t columns) {
  std::size_t bytes = 0, used = 0;
  while (bytes < text.size()) {
    const Letter l = first_letter(text.substr(bytes));
    if (bytes > 0 && used + l.columns > columns) break;
    used += l.columns;
    bytes += l.bytes;
  }
  return bytes;
}

}  // namespace shardarray
