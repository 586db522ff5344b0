// What the blocks of the guides are compiled with. A heading's blocks are one function, which runs in a process of its own.
#pragma once
#include <shardarray/shardarray.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sa = shardarray;

/// In front of the output of a block.
inline void begin_block(const char* place) { std::cout << "@ " << place << "\n"; }

/// Runs the heading that the command names by its number.
inline int run_heading(void (*const* headings)(), const char* number) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);  // in one order with stderr
  std::cout << std::unitbuf;
  try {
    headings[std::atoi(number)]();
  } catch (const std::exception& e) {
    std::cout << "THROWN: " << e.what() << "\n";
    return 1;
  }
  return 0;
}
