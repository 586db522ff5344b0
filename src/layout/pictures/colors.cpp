#include "layout/pictures/colors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace shardarray {
namespace {

Rgb tab20b(double x) {
  static constexpr std::uint32_t colors[] = {
      0x393b79, 0x5254a3, 0x6b6ecf, 0x9c9ede, 0x637939, 0x8ca252, 0xb5cf6b, 0xcedb9c, 0x8c6d31, 0xbd9e39,
      0xe7ba52, 0xe7cb94, 0x843c39, 0xad494a, 0xd6616b, 0xe7969c, 0x7b4173, 0xa55194, 0xce6dbd, 0xde9ed6};
  const std::uint32_t c = colors[std::clamp(static_cast<int>(x * 20), 0, 19)];
  return {(c >> 16) / 255.0, (c >> 8 & 255) / 255.0, (c & 255) / 255.0};
}

// The given background; text black or white, whichever is more readable.
std::string style_of(const Rgb& rgb, bool palette) {
  const int r = static_cast<int>(rgb[0] * 255), g = static_cast<int>(rgb[1] * 255),
            b = static_cast<int>(rgb[2] * 255);
  const int text = r * 0.299 + g * 0.587 + b * 0.114 > 186 ? 0 : 255;
  if (palette) {  // 6 x 6 x 6 colour cube after the 16 terminal colours; its corners are black and white
    const auto level = [](int v) { return v < 48 ? 0 : v < 115 ? 1 : (v - 35) / 40; };
    return fmt::format("\x1b[38;5;{};48;5;{}m", text == 0 ? 16 : 231,
                       16 + 36 * level(r) + 6 * level(g) + level(b));
  }
  return fmt::format("\x1b[38;2;{0};{0};{0};48;2;{1};{2};{3}m", text, r, g, b);
}

}  // namespace

// Evenly spaced values, visited in steps of about half the range so that neighbours differ.
std::vector<std::string> block_styles(std::size_t count, const std::function<Rgb(double)>& color_map,
                                      bool palette) {
  std::vector<std::string> out;
  std::size_t at = 0;
  for (std::size_t k = 0; k < count; k++) {
    const double x = count == 1 ? 0.0 : static_cast<double>(at) / static_cast<double>(count - 1);
    out.push_back(style_of(color_map ? color_map(x) : tab20b(x), palette));
    at = (at + count / 2 + (count % 2 == 0)) % count;
  }
  return out;
}

}  // namespace shardarray
