#include "ops/contraction_order.h"

namespace shardarray {

namespace {

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
using Terms = std::vector<std::string>;

bool term_has(const std::string& letters, char c) { return letters.find(c) != std::string::npos; }

class Orders {
 public:
  Orders(const std::string& result, const LetterSizes& sizes) : result_(result), sizes_(sizes) {}

  /// The letters of the product of two terms: those still needed.
  [[nodiscard]] std::string product(const Terms& terms, std::size_t i, std::size_t j) const {
    std::string letters;
    for (char c : terms[i] + terms[j])
      if (!term_has(letters, c) && needed(terms, i, j, c)) letters += c;
    return letters;
  }
  /// The number of multiplications. A letter that is only in one term and not needed later is summed first.
  [[nodiscard]] double cost(const Terms& terms, std::size_t i, std::size_t j) const {
    double n = 1;
    for (char c : terms[i])
      if (term_has(terms[j], c) || needed(terms, i, j, c)) n *= sizes_[static_cast<unsigned char>(c)];
    for (char c : terms[j])
      if (!term_has(terms[i], c) && needed(terms, i, j, c)) n *= sizes_[static_cast<unsigned char>(c)];
    return n;
  }
  [[nodiscard]] Terms after(Terms terms, std::size_t i, std::size_t j) const {
    terms[i] = product(terms, i, j);
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(j));
    return terms;
  }
  /// The cheapest sequence of pairs, and its cost.
  [[nodiscard]] std::pair<double, Pairs> cheapest(const Terms& terms) const {
    if (terms.size() < 2) return {0, {}};
    std::pair<double, Pairs> best{-1, {}};
    for (std::size_t i = 0; i < terms.size(); i++)
      for (std::size_t j = i + 1; j < terms.size(); j++) {
        auto [rest, pairs] = cheapest(after(terms, i, j));
        const double total = cost(terms, i, j) + rest;
        if (best.first >= 0 && best.first <= total) continue;
        pairs.insert(pairs.begin(), {i, j});
        best = {total, std::move(pairs)};
      }
    return best;
  }
  [[nodiscard]] std::pair<std::size_t, std::size_t> cheapest_pair(const Terms& terms) const {
    std::pair<std::size_t, std::size_t> best{0, 1};
    for (std::size_t i = 0; i < terms.size(); i++)
      for (std::size_t j = i + 1; j < terms.size(); j++)
        if (cost(terms, i, j) < cost(terms, best.first, best.second)) best = {i, j};
    return best;
  }

 private:
  [[nodiscard]] bool needed(const Terms& terms, std::size_t i, std::size_t j, char c) const {
    if (term_has(result_, c)) return true;
    for (std::size_t k = 0; k < terms.size(); k++)
      if (k != i && k != j && term_has(terms[k], c)) return true;
    return false;
  }
  const std::string& result_;
  const LetterSizes& sizes_;
};

}  // namespace

Pairs contraction_order(Terms terms, const std::string& result, const LetterSizes& sizes) {
  constexpr std::size_t most_tried = 5;  // 180 orders
  const Orders orders(result, sizes);
  Pairs pairs;
  while (terms.size() > most_tried) {
    const auto [i, j] = orders.cheapest_pair(terms);
    pairs.emplace_back(i, j);
    terms = orders.after(terms, i, j);
  }
  const Pairs last = orders.cheapest(terms).second;
  pairs.insert(pairs.end(), last.begin(), last.end());
  return pairs;
}

}  // namespace shardarray
