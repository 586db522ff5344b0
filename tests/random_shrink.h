// Shrinks a failing program as long as it still fails.
#pragma once
#include "random_program.h"

namespace shardarray::testing {

/// Without the lines that no output needs.
inline RandomProgram without_dead_lines(const RandomProgram& p) {
  std::vector<bool> live(p.lines.size(), false);
  for (int v : p.outputs) live[static_cast<std::size_t>(v)] = true;
  for (std::size_t v = p.lines.size(); v-- > 0;)
    if (live[v])
      for (int o : p.lines[v].in) live[static_cast<std::size_t>(o)] = true;
  RandomProgram r = p;
  r.lines.clear();
  std::vector<int> place(p.lines.size(), -1);
  for (std::size_t v = 0; v < p.lines.size(); v++) {
    if (!live[v]) continue;
    place[v] = static_cast<int>(r.lines.size());
    r.lines.push_back(p.lines[v]);
    for (int& o : r.lines.back().in) o = place[static_cast<std::size_t>(o)];
  }
  for (int& v : r.outputs) v = place[static_cast<std::size_t>(v)];
  return r;
}

/// Every program that is one step simpler: fewer results, a line that becomes a leaf of the same values or its own operand,
/// nothing placed, no options.
inline std::vector<RandomProgram> simpler(const RandomProgram& p) {
  std::vector<RandomProgram> list;
  for (std::size_t k = 0; k < p.outputs.size() && p.outputs.size() > 1; k++) {
    list.push_back(p);
    list.back().outputs.erase(list.back().outputs.begin() + static_cast<std::ptrdiff_t>(k));
  }
  const std::vector<Plain> values = plain_values(p);
  for (std::size_t v = p.lines.size(); v-- > 0;) {
    const Line& l = p.lines[v];
    if (l.apply) {  // becomes a leaf
      list.push_back(p);
      Line leaf;
      leaf.text = "leaf";
      leaf.shape = l.shape;
      leaf.dtype = l.dtype;
      leaf.leaf = values[v];
      for (Element& e : leaf.leaf.data) e = {e.value, 0, 0};
      list.back().lines[v] = std::move(leaf);
    }
    if (l.sharding) {
      list.push_back(p);
      list.back().lines[v].sharding.reset();
    }
  }
  for (bool RandomProgram::*option :
       {&RandomProgram::donate, &RandomProgram::reproducible, &RandomProgram::lazy}) {
    if (!(p.*option)) continue;
    list.push_back(p);
    list.back().*option = false;
  }
  if (!p.share) {
    list.push_back(p);
    list.back().share = true;
  }
  for (RandomProgram& q : list) q = without_dead_lines(q);
  return list;
}

/// Empty: the program does not fail.
using Fails = std::function<std::string(const RandomProgram&)>;

/// The kind of a failure: its text without numbers.
inline std::string kind_of_failure(const std::string& text) {
  std::string kind;
  for (char c : text.substr(0, text.find(": element")))
    if (std::isalpha(static_cast<unsigned char>(c))) kind += c;
  return text.find("lies as") != std::string::npos            ? "lies"
         : text.find("bytes, explained") != std::string::npos ? "moved"
                                                              : kind;
}

inline RandomProgram shrink(RandomProgram p, const Fails& fails) {
  const std::string kind = kind_of_failure(fails(p));
  for (bool again = true; again;) {
    again = false;
    for (RandomProgram& q : simpler(p)) {
      const std::string text = fails(q);
      if (text.empty() || kind_of_failure(text) != kind) continue;
      p = std::move(q);
      again = true;
      break;
    }
  }
  return p;
}

}  // namespace shardarray::testing
