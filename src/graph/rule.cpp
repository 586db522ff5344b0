#include "graph/rule.h"

#include <fmt/core.h>

#include <array>

#include "graph/op.h"

namespace shardarray {

Rule pointwise_rule(const Call& c) {
  Rule r;
  std::vector<DimFactors> dims;
  const Shape& shape = c.in.empty() ? c.out[0].shape : c.in[0].shape;
  for (std::int64_t size : shape) {
    dims.push_back({static_cast<int>(r.factors.size())});
    r.factors.push_back({size});
  }
  r.operands.assign(c.in.size(), dims);
  r.results.assign(std::max<std::size_t>(1, c.out.size()), dims);
  return r;
}

Letters split_letters(const std::string& letters) {
  Letters l;
  const std::size_t arrow = letters.find("->");
  std::size_t begin = 0;
  for (std::size_t e = 0; e <= arrow; e++)
    if (e == arrow || letters[e] == ',') {
      l.in.push_back(letters.substr(begin, e - begin));
      begin = e + 1;
    }
  l.out = letters.substr(arrow + 2);
  return l;
}

DotLetters dot_letters(const Letters& l) {
  const auto has = [](const std::string& t, char c) { return t.find(c) != std::string::npos; };
  DotLetters d;
  for (char c : l.out) (has(l.in[0], c) ? (has(l.in[1], c) ? d.batch : d.m) : d.n) += c;
  for (char c : l.in[0])
    if (!has(l.out, c)) d.k += c;
  return d;
}

Rule einsum_rule(const Call& c, const std::string& letters) {
  const Letters l = split_letters(letters);
  Rule r;
  std::array<int, 128> factor, first;
  factor.fill(-1);
  auto at = [](char letter) { return static_cast<unsigned char>(letter); };
  auto dims = [&](const std::string& term, std::size_t operand) {
    std::vector<DimFactors> d;
    for (std::size_t k = 0; k < term.size(); k++) {
      int& f = factor[at(term[k])];
      const std::int64_t size = c.in[operand].shape[k];
      if (f < 0) {
        f = static_cast<int>(r.factors.size());
        r.factors.push_back({size, Role::reduce, Reducer::sum});
        first[at(term[k])] = static_cast<int>(operand);
      } else if (r.factors[static_cast<std::size_t>(f)].size != size) {
        const auto other = static_cast<std::size_t>(first[at(term[k])]);
        throw ShapeError(
            fmt::format("{}: factor '{}' of rule \"{}\" is {} in {} but {} in {}. Dimensions of one letter "
                        "must be equal.",
                        c.op->name, term[k], letters, r.factors[static_cast<std::size_t>(f)].size,
                        to_string(c.in[other]), size, to_string(c.in[operand])));
      }
      d.push_back({f});
    }
    return d;
  };
  for (std::size_t k = 0; k < l.in.size(); k++) {
    if (l.in[k].size() != c.in[k].shape.size())
      throw ShapeError(fmt::format("{}: operand {} is {}, rank {} was expected by the rule \"{}\".",
                                   c.op->name, k, to_string(c.in[k]), l.in[k].size(), letters));
    r.operands.push_back(dims(l.in[k], k));
  }
  std::vector<DimFactors> out;
  for (char letter : l.out) {
    const int f = factor[at(letter)];
    r.factors[static_cast<std::size_t>(f)].role = Role::pass;
    r.factors[static_cast<std::size_t>(f)].reducer = Reducer::none;
    out.push_back({f});
  }
  r.results.push_back(out);
  for (Factor& f : r.factors)
    if (c.attrs->uncut && f.role == Role::reduce) f = {f.size, Role::whole};
  return r;
}

}  // namespace shardarray
