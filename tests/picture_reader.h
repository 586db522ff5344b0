// Reads pictures of shardings back: which devices stand in which block.
#pragma once
#include <cstdint>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace shardarray::testing {

using Ids = std::set<int>;

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}
/// The characters of a line; every one is a column wide.
inline std::u32string characters(const std::string& line) {
  std::u32string out;
  for (std::size_t k = 0; k < line.size();) {
    const auto c = static_cast<unsigned char>(line[k]);
    const int more = c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
    char32_t code = more == 2 ? c & 0xfU : more == 1 ? c & 0x1fU : c;
    for (int m = 1; m <= more; m++) code = code << 6 | (static_cast<unsigned char>(line[k + m]) & 0x3fU);
    out.push_back(code);
    k += static_cast<std::size_t>(more) + 1;
  }
  return out;
}
/// `text` without escape sequences.
inline std::string without_colors(const std::string& text) {
  static const std::regex sequence("\x1b\\[[0-9;]*m");
  return std::regex_replace(text, sequence, "");
}

/// `0-3, 8, 16-28:4, 0-51:4/16` as numbers; adds to `out`. False for anything else.
inline bool read_ids(const std::string& text, Ids& out) {
  static const std::regex item("(\\d+)(?:-(\\d+)(?::(?:(\\d+)/)?(\\d+))?)?"), separator("[, ]+");
  for (std::sregex_token_iterator it(text.begin(), text.end(), separator, -1), end; it != end; ++it) {
    const std::string word = it->str();
    std::smatch m;
    if (word.empty()) continue;
    if (!std::regex_match(word, m, item)) return false;
    const int first = std::stoi(m[1]), last = m[2].matched ? std::stoi(m[2]) : first;
    const int group = m[4].matched ? std::stoi(m[4]) : 1, used = m[3].matched ? std::stoi(m[3]) : 1;
    for (int id = first; id <= last; id++)
      if ((id - first) % group < used) out.insert(id);
  }
  return true;
}

/// What stands below the boxes: `A: CPU 0, 3` by letter; how many tiles are a block; `CPU 6, 7 hold nothing.`
struct PictureNotes {
  std::map<std::string, Ids> lettered;
  std::vector<std::int64_t> fold;
  Ids empty;
};
inline PictureNotes read_notes(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + " ";
  PictureNotes out;
  static const std::regex legend("([A-Z]+): CPU ([0-9,:/ -]+)"),
      fold("A block is (?:up to )?([0-9x ]+) tiles;"), empty("CPU ([0-9,:/ -]+) holds? nothing\\.");
  for (std::sregex_iterator it(all.begin(), all.end(), legend), end; it != end; ++it)
    read_ids((*it)[2], out.lettered[(*it)[1]]);
  if (std::smatch m; std::regex_search(all, m, fold)) {
    std::istringstream in(m[1]);
    std::string word;
    while (in >> word)
      if (word != "x") out.fold.push_back(std::stoll(word));
  }
  if (std::smatch m; std::regex_search(all, m, empty)) read_ids(m[1], out.empty);
  return out;
}

/// The devices of a block's label, which may have come in several lines.
inline Ids read_label(std::string label, const PictureNotes& notes) {
  Ids out;
  while (label.ends_with(' ')) label.pop_back();
  if (const auto it = notes.lettered.find(label); it != notes.lettered.end()) return it->second;
  if (label.starts_with("CPU ")) label = label.substr(4);
  if (!read_ids(label, out)) out = {-1};
  return out;
}

/// All blocks of a picture with boxes, facet by facet, row by row, and the notes below.
struct ReadPicture {
  std::vector<Ids> blocks;
  std::vector<std::string> captions;  ///< lines above the boxes
  PictureNotes notes;
};
inline ReadPicture read_picture(const std::string& text) {
  struct Box {
    std::vector<std::pair<std::size_t, std::size_t>> columns;  // from, to
    std::vector<std::string> labels;                           // of all rows
  };
  ReadPicture out;
  std::vector<std::string> labels, below;
  std::vector<Box> row;  // facets side by side
  const auto trimmed = [](const std::u32string& s) {
    std::string t;
    for (char32_t c : s) t += static_cast<char>(c);
    const auto first = t.find_first_not_of(' ');
    return first == t.npos ? "" : t.substr(first, t.find_last_not_of(' ') - first + 1);
  };
  for (const std::string& line : lines_of(text)) {
    const std::u32string chars = characters(line);
    if (line.starts_with("┌")) {
      row.clear();
      std::size_t open = 0;
      for (std::size_t k = 0; k < chars.size(); k++) {
        if (chars[k] == U'┌') row.emplace_back(), open = k + 1;
        else if (chars[k] == U'┬' || chars[k] == U'┐') row.back().columns.emplace_back(open, k), open = k + 1;
      }
      for (Box& b : row) b.labels.resize(b.columns.size());
      out.captions.insert(out.captions.end(), below.begin(), below.end());
      below.clear();
    } else if (row.empty()) {
      below.push_back(line);
    } else {
      bool open = false;  // a box that goes on
      for (Box& b : row) {
        const std::size_t left = b.columns[0].first - 1;
        const char32_t corner = left < chars.size() ? chars[left] : U' ';
        open |= corner == U'│' || corner == U'├';
        if (corner == U'├') b.labels.resize(b.labels.size() + b.columns.size());
        if (corner != U'│') continue;
        for (std::size_t c = 0; c < b.columns.size(); c++) {
          const auto [from, to] = b.columns[c];
          const std::string part = trimmed(chars.substr(from, to - from));
          if (!part.empty()) b.labels[b.labels.size() - b.columns.size() + c] += part + " ";
        }
      }
      if (open) continue;
      for (const Box& b : row) labels.insert(labels.end(), b.labels.begin(), b.labels.end());
      row.clear();
    }
  }
  out.notes = read_notes(below);
  for (const std::string& label : labels) out.blocks.push_back(read_label(label, out.notes));
  return out;
}

/// The devices of all blocks of a picture in colours.
inline Ids read_colored(const std::string& text) {
  static const std::regex painted("\x1b\\[[0-9;]+m([^\x1b]*)\x1b\\[0m");
  std::vector<std::string> below;
  Ids out;
  const std::vector<std::string> lines = lines_of(text);
  for (const std::string& line : lines)
    if (line.find('\x1b') == line.npos) below.push_back(line);
  const PictureNotes notes = read_notes(below);
  for (std::sregex_iterator it(text.begin(), text.end(), painted), end; it != end; ++it) {
    std::string label = (*it)[1];
    if (label.find_first_not_of(' ') == label.npos || label == "CPU") continue;
    label.erase(0, label.find_first_not_of(' '));
    out.merge(read_label(label, notes));
  }
  return out;
}

}  // namespace shardarray::testing
