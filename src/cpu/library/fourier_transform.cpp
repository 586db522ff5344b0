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

constexpr std::int64_t largest_kernel = 13;  // with a kernel of its own

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
  for (std::int64_t p = largest_kernel + 2; p * p <= n; p += 2)
    while (n % p == 0) take(p);
  if (n > 1) take(n);
  return all;
}

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

/// How a prime number of elements is transformed: by the sums themselves (0) or as a convolution of so many elements. Costs are for an
/// element, in passes with kernels, measured.
struct PrimeWay {
  std::int64_t size;
  double cost;
};
double passes_cost(std::int64_t n);
PrimeWay way_of_prime(std::int64_t r) {
  PrimeWay best{0, 0.5 + 0.13 * static_cast<double>(r)};
  for (const std::int64_t m : {r - 1, convenient_size(2 * r - 1)}) {
    const double cost = static_cast<double>(m) / static_cast<double>(r) * 2 * (passes_cost(m) + 1) + 1;
    if (cost < best.cost) best = {m, cost};
  }
  return best;
}
double passes_cost(std::int64_t n) {
  double cost = 0;
  for (const std::int64_t r : radices_of(n)) cost += r <= largest_kernel ? 1 : way_of_prime(r).cost;
  return cost;
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
    const double passes = passes_cost(d) + passes_cost(n / d);
    const double cost = static_cast<double>(padded(d)) * (2 + passes + 0.1 * uneven);
    if (best == 0 || cost < best_cost) best = d, best_cost = cost;
  }
  for (std::int64_t d = least - 1; best == 0 && d > 1; d--)  // times a large prime
    if (n % d == 0) best = d;
  return best;
}

/// Shorter lines are transformed together with their neighbours.
constexpr std::int64_t shortest_two_steps = 2049, most_in_table = std::int64_t{1} << 15;

bool goes_in_two_steps(std::int64_t n) { return n >= shortest_two_steps && rows_of(n) != 0; }

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

std::vector<FourierNumber> chirp_of(std::int64_t n) {
  std::vector<FourierNumber> chirp;
  for (std::int64_t j = 0, square = 0; j < n; j++) {  // j^2 mod 2 n
    chirp.push_back(std::conj(half_turns(square, n)));
    square = (square + 2 * j + 1) % (2 * n);
  }
  return chirp;
}
std::vector<FourierNumber> chirp_filter(const std::vector<FourierNumber>& chirp, std::int64_t m) {
  std::vector<FourierNumber> centred(static_cast<std::size_t>(m));
  for (std::size_t j = 0; j < chirp.size(); j++)
    centred[j] = centred[(centred.size() - j) % centred.size()] =
        std::conj(chirp[j]) / static_cast<double>(m);
  return centred;
}

struct DirectFourier::Convolution {
  Convolution(std::int64_t r, std::int64_t m) : inner(m) {
    if (m >= 2 * r - 1) {
      chirp = chirp_of(r);
      filter = chirp_filter(chirp, m);
    } else {
      filter.resize(static_cast<std::size_t>(m));
      const std::vector<std::int32_t> powers = powers_of_root(r);
      for (std::size_t i = 0; i < powers.size(); i++) {
        from.push_back(powers[i]);
        to.push_back(powers[(powers.size() - i) % powers.size()]);
        filter[i] = turn_back(to[i], r) / static_cast<double>(m);
      }
    }
    const FourierRoom room(inner.room());
    auto* const numbers = reinterpret_cast<double*>(filter.data());
    fourier_lines(FourierLines<double, double>{inner.passes(), 1, numbers, 1, m, numbers, 1, m, false, false,
                                               1, nullptr, room.data()});
    all = {inner.passes(), numbers, chirp.empty() ? nullptr : reinterpret_cast<const double*>(chirp.data()),
           from.data(), to.data()};
  }
  Convolution(const Convolution&) = delete;
  /// The powers of a number that has r - 1 different ones mod r.
  static std::vector<std::int32_t> powers_of_root(std::int64_t r) {
    for (std::int64_t root = 2;; root++) {
      std::vector<std::int32_t> powers{1};
      for (std::int64_t power = root; power != 1; power = power * root % r)
        powers.push_back(static_cast<std::int32_t>(power));
      if (std::ssize(powers) == r - 1) return powers;
    }
  }

  DirectFourier inner;
  std::vector<FourierNumber> chirp, filter;
  std::vector<std::int32_t> from, to;
  FourierConvolution all{};
};

DirectFourier::DirectFourier(std::int64_t n) {
  std::int64_t rest = n, s = 1;
  for (const std::int64_t r : radices_of(n)) {
    std::vector<double> turns, roots;
    const auto put = [](std::vector<double>& to, FourierNumber w) {
      to.push_back(w.real());
      to.push_back(w.imag());
    };
    for (std::int64_t p = 0; p < rest / r; p++)
      for (std::int64_t k = 1; k < r; k++) put(turns, turn_back(p * k, rest));
    FourierPass pass{r, rest / r, s, turns.data(), nullptr};
    if (const std::int64_t m = r > largest_kernel ? way_of_prime(r).size : 0; m > 0) {
      if (all_.empty() || all_.back().radix != r)
        convolutions_.push_back(std::make_shared<const Convolution>(r, m));
      pass.convolution = &convolutions_.back()->all;
      room_ = std::max(room_, 16 * m + convolutions_.back()->inner.passes()->room);
    } else if (r > largest_kernel) {
      for (std::int64_t k = 1; k <= r / 2; k++)
        for (std::int64_t j = 1; j <= r / 2; j++) put(roots, turn_back(j * k, r));
      room_ = std::max(room_, 8 * r);
    } else {
      for (std::int64_t k = 0; k < r; k++) put(roots, turn_back(k, r));
    }
    pass.roots = roots.data();
    all_.push_back(pass);
    numbers_.push_back(std::move(turns));
    numbers_.push_back(std::move(roots));
    rest /= r;
    s *= r;
  }
  passes_ = {n, std::ssize(all_), all_.data(), room_};
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
  if (goes_in_steps(n)) {
    if (goes_in_two_steps(n)) two_ = std::make_unique<const TwoStepFourier>(n);
    else direct_ = std::make_unique<const DirectFourier>(n);
    return;
  }
  const std::int64_t m = convenient_size(2 * n - 1);
  inner_ = std::make_unique<const Fourier>(m);
  chirp_ = chirp_of(n);
  const Numbers centred = chirp_filter(chirp_, m);
  filter_.resize(centred.size());
  const FourierRoom room(inner_->room());
  inner_->lines(1, reinterpret_cast<const double*>(centred.data()), m,
                reinterpret_cast<double*>(filter_.data()), m, false, 1, room.data());
}

double Fourier::cost_ns() const {
  if (inner_) return 2 * inner_->cost_ns() + 10 * static_cast<double>(n_);
  return 20 + static_cast<double>(n_) * (1.5 + 0.7 * passes_cost(n_));
}
std::int64_t Fourier::room() const {
  if (direct_) return direct_->room();
  if (two_) return room_between() + two_->room();
  return 2 * together() * inner_->size() + inner_->room();
}

}  // namespace shardarray
