// Rows of op_cases(): losses, attention.
#include <cmath>

#include "op_cases.h"
#include "shardarray/losses.h"
#include "shardarray/nn/attention.h"

namespace shardarray::testing {

namespace {

using D = double;

/// f of two rows of all operands, along the last axis.
template <class F> auto over_rows(F f) {
  return [f](const Hosts& x) {
    const Shape& shape = x[0].shape;
    return build({shape[0]}, [&](const Shape& at) {
      Numbers a, b;
      for (std::int64_t k = 0; k < shape[1]; k++) {
        a.push_back(read(x[0], {at[0], k}));
        b.push_back(read(x[1], {at[0], k}));
      }
      return f(a, b);
    });
  };
}
D sum_of_products(const Numbers& a, const Numbers& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}
/// log_softmax
Numbers log_shares(Numbers x) {
  D largest = -std::numeric_limits<D>::infinity(), sum = 0;
  for (const D v : x) largest = std::max(largest, v);
  for (const D v : x) sum += std::exp(v - largest);
  for (D& v : x) v -= largest + std::log(sum);
  return x;
}
D cosine(const Numbers& a, const Numbers& b) {
  return sum_of_products(a, b) / std::sqrt(sum_of_products(a, a) * sum_of_products(b, b));
}
D divergence(const Numbers& log_predictions, const Numbers& targets, bool are_logarithms) {
  D sum = 0;
  for (std::size_t k = 0; k < targets.size(); k++) {
    const D log_target = are_logarithms ? targets[k] : std::log(targets[k]);
    sum += std::exp(log_target) * (log_target - log_predictions[k]);
  }
  return sum;
}
D huber(D a, D b, D delta) {
  const D d = std::abs(a - b);
  return d <= delta ? d * d / 2 : delta * d - delta * delta / 2;
}

/// One head: queries [t, n], keys and values [s, n].
Numbers attended(const Hosts& x) {
  const std::int64_t t = x[0].shape[0], s = x[1].shape[0], n = x[0].shape[1];
  Numbers out;
  for (std::int64_t i = 0; i < t; i++) {
    Numbers scores;
    for (std::int64_t j = 0; j < s; j++) {
      D score = 0;
      for (std::int64_t k = 0; k < n; k++) score += read(x[0], {i, k}) * read(x[1], {j, k});
      scores.push_back(score / std::sqrt(static_cast<D>(n)));
    }
    scores = log_shares(scores);
    for (std::int64_t k = 0; k < n; k++) {
      D sum = 0;
      for (std::int64_t j = 0; j < s; j++)
        sum += std::exp(scores[static_cast<std::size_t>(j)]) * read(x[2], {j, k});
      out.push_back(sum);
    }
  }
  return out;
}

}  // namespace

Cases loss_cases() {
  using S = std::span<const Array>;
  const OpInput any{rows_and_columns}, shares{rows_and_columns, 0.1, 1}, logs{rows_and_columns, -3, -0.1};
  Cases c;
  c.push_back({"mse",
               [](S x) { return losses::mse(x[0], x[1]); },
               [](const Hosts& x) {
                 D sum = 0;
                 for (std::size_t k = 0; k < x[0].data.size(); k++)
                   sum += (x[0].data[k] - x[1].data[k]) * (x[0].data[k] - x[1].data[k]);
                 return Numbers{sum / static_cast<D>(x[0].data.size())};
               },
               {any, any},
               true,
               2e-6});
  c.push_back(binary_case(
      "squared_error", [](const Array& a, const Array& b) { return losses::squared_error(a, b); },
      [](D a, D b) { return (a - b) * (a - b); }, values(-2, 2), values(-2, 2)));
  c.push_back(binary_case(
      "l2_loss", [](const Array& a, const Array& b) { return losses::l2_loss(a, b); },
      [](D a, D b) { return (a - b) * (a - b) / 2; }, values(-2, 2), values(-2, 2)));
  c.push_back(binary_case(
      "huber_loss", [](const Array& a, const Array& b) { return losses::huber_loss(a, b, 0.7); },
      [](D a, D b) { return huber(a, b, 0.7); }, values(-2, 2), values(-2, 2)));
  c.push_back(binary_case(
      "log_cosh", [](const Array& a, const Array& b) { return losses::log_cosh(a, b); },
      [](D a, D b) { return std::log(std::cosh(a - b)); }, values(-2, 2), values(-2, 2), true, 1e-6));
  c.push_back(binary_case(
      "hinge_loss", [](const Array& a, const Array& b) { return losses::hinge_loss(a, b); },
      [](D a, D b) { return std::max(0.0, 1 - a * b); }, values(-0.9, 0.9), values(-1, 1)));
  c.push_back(binary_case(
      "sigmoid_binary_cross_entropy",
      [](const Array& a, const Array& b) { return losses::sigmoid_binary_cross_entropy(a, b); },
      [](D a, D b) { return b * std::log1p(std::exp(-a)) + (1 - b) * std::log1p(std::exp(a)); },
      values(-3, 3), values(0, 1), true, 1e-6));
  c.push_back(
      {"softmax_cross_entropy",
       [](S x) { return losses::softmax_cross_entropy(x[0], x[1]); },
       over_rows([](const Numbers& a, const Numbers& b) { return -sum_of_products(log_shares(a), b); }),
       {any, shares},
       true,
       5e-6});
  c.push_back({"softmax_cross_entropy_with_integer_labels",
               [](S x) { return losses::softmax_cross_entropy_with_integer_labels(x[0], x[1]); },
               [](const Hosts& x) {
                 const std::int64_t n = x[0].shape[1];
                 return build({x[0].shape[0]}, [&](const Shape& at) {
                   Numbers row;
                   for (std::int64_t k = 0; k < n; k++) row.push_back(read(x[0], {at[0], k}));
                   const auto label = static_cast<std::int64_t>(read(x[1], at));
                   return label < n ? -log_shares(row)[static_cast<std::size_t>(label)]
                                    : std::numeric_limits<D>::quiet_NaN();
                 });
               },
               {any, {{10}, 0, 5, DType::int32}},
               true,
               5e-6});
  c.push_back({"cosine_similarity",
               [](S x) { return losses::cosine_similarity(x[0], x[1]); },
               over_rows(cosine),
               {shares, any},
               true,
               2e-6});
  c.push_back({"cosine_distance",
               [](S x) { return losses::cosine_distance(x[0], x[1]); },
               over_rows([](const Numbers& a, const Numbers& b) { return 1 - cosine(a, b); }),
               {shares, any},
               true,
               2e-6});
  c.push_back({"kl_divergence",
               [](S x) { return losses::kl_divergence(x[0], x[1]); },
               over_rows([](const Numbers& a, const Numbers& b) { return divergence(a, b, false); }),
               {logs, shares},
               true,
               5e-6});
  c.push_back({"kl_divergence_with_log_targets",
               [](S x) { return losses::kl_divergence_with_log_targets(x[0], x[1]); },
               over_rows([](const Numbers& a, const Numbers& b) { return divergence(a, b, true); }),
               {logs, logs},
               true,
               5e-6});
  c.push_back({"smooth_labels",
               [](S x) { return losses::smooth_labels(x[0], 0.3); },
               [](const Hosts& x) {
                 Numbers r;
                 for (const D v : x[0].data) r.push_back(0.7 * v + 0.3 / static_cast<D>(x[0].shape[1]));
                 return r;
               },
               {shares}});
  // One head; keys are looked at in blocks that do not divide them.
  c.push_back({"dot_product_attention",
               [](S x) {
                 const auto head = [](const Array& a) { return expand_dims(a, 1); };
                 return squeeze(
                     nn::dot_product_attention(head(x[0]), head(x[1]), head(x[2]), {.block_size = 4}), 1);
               },
               attended,
               {any, {{7, 6}}, {{7, 6}}},
               true,
               5e-6});
  return c;
}

}  // namespace shardarray::testing
