#include "cpu/library/fourier_transform.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "cpu/loops/loops.h"
#include "runtime/fourier_sizes.h"

namespace shardarray {
namespace {

using FourierNumber = std::complex<double>;

/// Without std::complex's checks for infinities.
FourierNumber complex_product(FourierNumber a, FourierNumber b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
/// exp(-2 pi i k / n).
FourierNumber turn_back(std::int64_t k, std::int64_t n) { return std::conj(half_turns(2 * (k % n), n)); }

std::vector<std::int64_t> radices_of(std::int64_t n) {
  std::vector<std::int64_t> all;
  const auto take = [&](std::int64_t r) { all.push_back(r), n /= r; };
  int twos = 0;
  for (std::int64_t rest = n; rest % 2 == 0; rest /= 2) twos++;
  if (twos % 3 == 1 && twos > 1) take(4), take(4), twos -= 4;
  else if (twos % 3 == 2) take(4);
  while (n % 8 == 0) take(8);
  for (const std::int64_t p : {13, 11, 7, 5, 3, 2})
    while (n % p == 0) take(p);
  return all;
}

/// The divisor of n, near its square root, that fills vectors best; 0 if there is none.
std::int64_t rows_of(std::int64_t n) {
  constexpr std::int64_t whole = 4, least = 8;
  const auto padded = [&](std::int64_t d) {
    return ceil_div(d, whole) * whole * (ceil_div(n / d, whole) * whole);
  };
  std::int64_t best = 0;
  double best_cost = 0;
  for (std::int64_t d = least; d * d <= n; d++) {
    if (n % d != 0) continue;
    const double uneven = static_cast<double>(n / d) / static_cast<double>(d);
    const auto passes = static_cast<double>(radices_of(d).size() + radices_of(n / d).size());
    const double cost = static_cast<double>(padded(d)) * (2 + passes + 0.1 * uneven);
    if (best == 0 || cost < best_cost) best = d, best_cost = cost;
  }
  return best;
}

/// Shorter lines are transformed together with their neighbours.
constexpr std::int64_t shortest_two_steps = 2049, most_in_table = std::int64_t{1} << 15;

bool goes_in_two_steps(std::int64_t n) { return n >= shortest_two_steps && rows_of(n) != 0; }

/// The cheapest length >= n with small factors.
std::int64_t convenient_size(std::int64_t n) {
  std::int64_t best = 1;
  while (best < n) best *= 2;
  for (std::int64_t odd : {1, 3, 5, 9, 15, 25, 27, 45, 75, 81, 125, 135, 225}) {
    while (odd < n) odd *= 2;
    if (odd % 8 == 0) best = std::min(best, odd);
  }
  return best;
}

}  // namespace

const FourierTable& fourier_table() {
#if defined(__x86_64__)
  if (has_v3()) return fourier_v3;
#endif
  return fourier_baseline;
}

FourierNumber half_turns(std::int64_t k, std::int64_t n) {
  const std::int64_t eighth = 4 * k / n;  // 0 .. 7
  const auto angle = [&](std::int64_t part) {
    return std::numbers::pi * static_cast<double>(part) / static_cast<double>(4 * n);
  };
  const std::int64_t past = 4 * k - eighth * n;  // in quarters of pi / n
  const FourierNumber first =
      eighth % 2 == 0 ? std::polar(1.0, angle(past)) : std::polar(1.0, angle(n - past));
  const double c = first.real(), s = first.imag();
  switch (eighth) {
    case 0: return {c, s};
    case 1: return {s, c};
    case 2: return {-s, c};
    case 3: return {-c, s};
    case 4: return {-c, -s};
    case 5: return {-s, -c};
    case 6: return {s, -c};
    default: return {c, -s};
  }
}

SmoothFourier::SmoothFourier(std::int64_t n) {
  std::int64_t rest = n, s = 1;
  for (const std::int64_t r : radices_of(n)) {
    std::vector<double> turns, roots;
    const auto put = [](std::vector<double>& to, FourierNumber w) {
      to.push_back(w.real());
      to.push_back(w.imag());
    };
    for (std::int64_t p = 0; p < rest / r; p++)
      for (std::int64_t k = 1; k < r; k++) put(turns, turn_back(p * k, rest));
    for (std::int64_t k = 0; k < r; k++) put(roots, turn_back(k, r));
    all_.push_back({r, rest / r, s, turns.data(), roots.data()});
    numbers_.push_back(std::move(turns));
    numbers_.push_back(std::move(roots));
    rest /= r;
    s *= r;
  }
  passes_ = {n, std::ssize(all_), all_.data()};
}

TwoStepFourier::TwoStepFourier(std::int64_t n) : columns_(rows_of(n)), rows_(n / columns_.size()) {
  const std::int64_t m = columns_.size();
  const auto put = [&](std::vector<double>& to, std::int64_t column) {  // the block from that column on
    const auto first = static_cast<std::ptrdiff_t>(to.size());
    to.resize(to.size() + static_cast<std::size_t>(2 * fourier_block * m));
    for (std::int64_t k = 0; k < m; k++)
      for (std::int64_t l = 0; l < fourier_block; l++) {
        const FourierNumber w = turn_back(k * (column + l), n);
        double* const at = to.data() + first + 2 * fourier_block * k + l;
        at[0] = w.real();
        at[fourier_block] = w.imag();
      }
  };
  if (n <= most_in_table) {
    for (std::int64_t b = 0; b < column_blocks(); b++) put(every_, b * fourier_block);
    return;
  }
  put(near_, 0);
  for (std::int64_t k = 0; k < m; k++) fine_.push_back(turn_back(k, n));
  for (std::int64_t k = 0; k <= rows_.size(); k++) coarse_.push_back(turn_back(k * m, n));
}

const double* TwoStepFourier::turns(std::int64_t block, double* room) const {
  const std::int64_t m = columns_.size(), n = m * rows_.size();
  if (!every_.empty()) return every_.data() + block * 2 * fourier_block * m;
  double* const at = room + 2 * fourier_block * m;
  for (std::int64_t k = 0, turned = 0; k < m; k++) {
    const FourierNumber w = complex_product(fine_[static_cast<std::size_t>(turned % m)],
                                            coarse_[static_cast<std::size_t>(turned / m)]);
    at[2 * k] = w.real();
    at[2 * k + 1] = w.imag();
    turned += block * fourier_block;
    if (turned >= n) turned -= n;
  }
  fourier_table().spread(m, near_.data(), at, room);
  return room;
}

Fourier::Fourier(std::int64_t n) : n_(n) {
  if (has_small_factors(n)) {
    if (goes_in_two_steps(n)) two_ = std::make_unique<const TwoStepFourier>(n);
    else smooth_ = std::make_unique<const SmoothFourier>(n);
    return;
  }
  const std::int64_t m = convenient_size(2 * n - 1);
  inner_ = std::make_unique<const Fourier>(m);
  for (std::int64_t j = 0, square = 0; j < n; j++) {  // j^2 mod 2 n
    chirp_.push_back(std::conj(half_turns(square, n)));
    square = (square + 2 * j + 1) % (2 * n);
  }
  Numbers centred(static_cast<std::size_t>(m));
  for (std::int64_t j = 0; j < n; j++)
    centred[static_cast<std::size_t>(j)] = centred[static_cast<std::size_t>((m - j) % m)] =
        std::conj(chirp_[static_cast<std::size_t>(j)]) / static_cast<double>(m);
  filter_.resize(centred.size());
  const FourierRoom room(inner_->room());
  inner_->lines(1, reinterpret_cast<const double*>(centred.data()), m,
                reinterpret_cast<double*>(filter_.data()), m, false, 1, room.data());
}

double Fourier::cost_ns() const {
  if (inner_) return 2 * inner_->cost_ns() + 10 * static_cast<double>(n_);
  return 20 + static_cast<double>(n_) * std::log2(static_cast<double>(n_) + 1) * 0.3;
}
std::int64_t Fourier::room() const {
  if (smooth_) return fourier_room(n_);
  if (two_) return room_between() + two_->room();
  return 2 * together() * inner_->size() + inner_->room();
}

}  // namespace shardarray
