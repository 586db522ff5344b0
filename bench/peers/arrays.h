// Rows of single operations: dispatch, collectives, products, elementwise functions, reductions, random numbers.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>

#include "../lstm.h"
#include "work.h"

namespace peers {

inline sa::Array eight_numbers() { return sa::arange(8, sa::float32); }

inline Works dispatch_jit(std::int64_t) {
  return result_of(sa::jit([](const sa::Array& x) { return x + 1.0; }), eight_numbers());
}
inline Works dispatch_eager(std::int64_t) {
  return result_of([](const sa::Array& x) { return x + 1.0; }, eight_numbers());
}
inline Works dispatch_pmap(std::int64_t) {
  const auto f = sa::pmap([](const sa::Array& x) { return x + 1.0; });
  return result_of(f, f(eight_numbers()));  // made by pmap, so that each row is on its device
}

/// Every device has n floats and gets the sum of all.
inline Works all_reduce(std::int64_t n) {
  const auto mesh = sa::make_mesh({{"x", 8}});
  const auto f = sa::jit(sa::shard_map([](const sa::Array& x) { return sa::psum(x, "x"); },
                                       {.mesh = mesh, .in_specs = sa::P("x"), .out_specs = sa::P("x")}));
  return result_of(f, sa::device_put(normal(1, {8, n}), sa::NamedSharding(mesh, sa::P("x"))));
}

inline Works matmul(std::int64_t n) {
  return result_of(sa::jit([](const sa::Array& a, const sa::Array& b) { return sa::matmul(a, b); }),
                   matrix(1, {n, n}), matrix(2, {n, n}));
}

/// Every way to shard A, B and C of C = A B over one axis.
inline Works layouts(std::int64_t n) {
  const auto mesh = sa::make_mesh({{"x", 8}});
  const std::array<std::pair<const char*, sa::Sharding>, 3> cuts{
      {{"..", sa::NamedSharding(mesh, sa::P())},
       {"x.", sa::NamedSharding(mesh, sa::P("x"))},
       {".x", sa::NamedSharding(mesh, sa::P(sa::none, "x"))}}};
  const sa::Array a = matrix(1, {n, n}), b = matrix(2, {n, n});
  Works all;
  for (const auto& [a_name, a_cut] : cuts)
    for (const auto& [b_name, b_cut] : cuts)
      for (const auto& [c_name, c_cut] : cuts) {
        const auto f = sa::jit([](const sa::Array& p, const sa::Array& q) { return sa::matmul(p, q); },
                               {.out_shardings = c_cut});
        all.push_back(result_of(f, sa::device_put(a, a_cut), sa::device_put(b, b_cut)).front());
        all.back().name = std::string(a_name) + "," + b_name + "," + c_name;
      }
  return all;
}

inline Works gelu(std::int64_t n) {
  return result_of(sa::jit([](const sa::Array& x) { return sa::gelu(x); }), normal(1, {n}));
}
inline Works sum(std::int64_t n) {
  return result_of(sa::jit([](const sa::Array& x) { return sa::sum(x); }), uniform(1, {n}));
}
inline Works softmax(std::int64_t rows) {
  return result_of(sa::jit([](const sa::Array& x) { return sa::softmax(x, -1); }),
                   normal(1, {rows, (1 << 22) / rows}));
}
inline Works layer_norm(std::int64_t rows) {
  const auto f = sa::jit([](const sa::Array& x, const sa::Array& scale, const sa::Array& shift) {
    const sa::Array d = x - sa::mean(x, {.axis = -1, .keepdims = true});
    return d * sa::rsqrt(sa::mean(d * d, {.axis = -1, .keepdims = true}) + 1e-5) * scale + shift;
  });
  return result_of(f, normal(1, {rows, 1024}), normal(2, {1024}), normal(3, {1024}));
}
inline Works transpose(std::int64_t rows) {
  return result_of(sa::jit([](const sa::Array& x) { return sa::transpose(x); }), normal(1, {rows, 1024}));
}
inline Works sort(std::int64_t n) {
  return result_of(sa::jit([](const sa::Array& x) { return sa::sort(x); }), normal(1, {n}));
}
inline Works argsort(std::int64_t n) {
  return result_of(sa::jit([](const sa::Array& x) { return sa::argsort(x); }), normal(1, {n}));
}
inline Works top_k(std::int64_t n) {
  return result_of(sa::jit([](const sa::Array& x) { return sa::top_k(x, 64).first; }), normal(1, {n}));
}
inline Works cumsum(std::int64_t n) {
  return result_of(sa::jit([](const sa::Array& x) { return sa::cumsum(x); }), normal(1, {n}));
}
/// n random indices of n rows.
inline sa::Array places(std::int64_t n) { return (uniform(2, {n}) * n).astype(sa::int32); }
/// Gathers rows of 64 elements.
inline Works gather(std::int64_t n) {
  return result_of(sa::jit([](const sa::Array& x, const sa::Array& at) { return sa::take(x, at, 0); }),
                   normal(1, {n, 64}), places(n));
}
inline Works scatter(std::int64_t n) {
  const auto f = sa::jit([n](const sa::Array& x, const sa::Array& at) {
    return sa::zeros({n, 64}).at(at).add(x);
  });
  return result_of(f, normal(1, {n, 64}), places(n));
}
/// A table of n rows of 32; each step of a loop adds to one row.
inline Works rows_in_loop(std::int64_t n) {
  const auto f = sa::jit([n](const sa::Array& table, const sa::Array& x) {
    const auto step = [&](const sa::Array& i, const sa::Array& t) { return t.at(i).add(x[i] * 0.5); };
    return sa::fori_loop(0, n, step, table);
  });
  return result_of(f, normal(1, {n, 32}), normal(2, {n, 32}));
}
/// n random numbers of n.
inline Works numbers_taken(std::int64_t n) {
  return result_of(sa::jit([](const sa::Array& x, const sa::Array& at) { return x[at]; }), normal(1, {n}),
                   places(n));
}
/// n numbers into 1,000 sums.
inline Works numbers_added(std::int64_t n) {
  const auto f =
      sa::jit([](const sa::Array& x, const sa::Array& at) { return sa::zeros(1000).at(at % 1000).add(x); });
  return result_of(f, normal(1, {n}), places(n));
}
/// n steps on a number, each one of two.
inline Works number_steps(std::int64_t n) {
  using sa::Array;
  const auto step = [](const Array& c, const Array& x) {
    const Array next = sa::cond(
        x > 0, [](const Array& a) { return a + 1; }, [](const Array& a) { return a * 0.5f; }, c);
    return std::pair(next, next);
  };
  return result_of(sa::jit([step](const Array& x) { return sa::scan(step, sa::zeros({}), x).second; }),
                   normal(1, {n}));
}
/// n numbers written to places that the steps of a loop choose.
inline Works numbers_written(std::int64_t n) {
  using sa::Array;
  const auto step = [n](const Array& i, const Array& t) { return t.at((i * 7919) % n).set(i); };
  return result_of(sa::jit([n, step](const Array& t) { return sa::fori_loop(0, n, step, t); }),
                   sa::zeros(n, sa::int32));
}
/// n vectors of 3, relative to their mean.
inline Works vectors_of_3(std::int64_t n) {
  return result_of(sa::jit([](const sa::Array& x, const sa::Array& c) { return x - c; }), normal(1, {n, 3}),
                   normal(2, {3}));
}
/// 100 updates of one row of n in a loop.
inline Works row_updates(std::int64_t n) {
  const auto f = sa::jit([](const sa::Array& x) {
    return sa::fori_loop(
        0, 100, [](const sa::Array&, const sa::Array& t) { return t.at(5).add(1); }, x);
  });
  return result_of(f, normal(1, {n, 1000}));
}
/// int32 [n, n] times [n, n].
inline Works integer_product(std::int64_t n) {
  const auto f = sa::jit([](const sa::Array& a, const sa::Array& b) { return sa::matmul(a, b); });
  const auto numbers = [&](int seed) { return (normal(seed, {n, n}) * 100).astype(sa::int32); };
  return result_of(f, numbers(1), numbers(2));
}
inline Works solve(std::int64_t n) {
  const auto f = sa::jit([n](const sa::Array& a, const sa::Array& b) {
    return sa::linalg::solve(a + 2 * std::sqrt(static_cast<double>(n)) * sa::eye(n), b);
  });
  return result_of(f, normal(1, {n, n}), normal(2, {n, 64}));
}
inline Works fft(std::int64_t n) {
  const sa::Shape shape = n == 1000 ? sa::Shape{n, 1000} : n == 64 ? sa::Shape{10'000, n} : sa::Shape{n};
  return result_of(sa::jit([](const sa::Array& x) { return sa::fft::irfft(sa::fft::rfft(x)); }),
                   normal(1, shape));
}
inline Works cholesky(std::int64_t matrices) {
  const auto f = sa::jit([](const sa::Array& a) {
    return sa::linalg::cholesky(a + sa::swapaxes(a, -1, -2) + 64 * sa::eye(64));
  });
  return result_of(f, normal(1, {matrices, 64, 64}));
}

inline Works cholesky_of_one(std::int64_t n) {
  const auto f = sa::jit([n](const sa::Array& a) {
    return sa::linalg::cholesky(a + sa::transpose(a) + 4 * std::sqrt(static_cast<double>(n)) * sa::eye(n));
  });
  return result_of(f, normal(1, {n, n}));
}
/// n queries, keys and values of 8 heads with 64 features.
inline Works attention(std::int64_t n) {
  const auto f = sa::jit([](const sa::Array& q, const sa::Array& k, const sa::Array& v) {
    return sa::nn::dot_product_attention(q, k, v);
  });
  const sa::Shape shape{1, n, 8, 64};
  return result_of(f, normal(1, shape), normal(2, shape), normal(3, shape));
}
/// n steps of a GRU: 256 hidden and 128 input features for 32 sequences; from 10,000 steps on 32 and 32 for one sequence.
inline Works gru(std::int64_t n) {
  const bool is_long = n >= 10'000;
  const std::int64_t batch = is_long ? 1 : 32, inputs = is_long ? 32 : 128, hidden = is_long ? 32 : 256;
  const auto f = sa::jit([=](const sa::Array& x, const sa::Array& of_input, const sa::Array& of_memory) {
    const auto step = [&](const sa::Array& h, const sa::Array& row) {
      const auto in = sa::split(row, 3, -1), past = sa::split(sa::matmul(h, of_memory), 3, -1);
      const sa::Array reset = sa::sigmoid(in[0] + past[0]), update = sa::sigmoid(in[1] + past[1]);
      return std::pair(update * h + (1 - update) * sa::tanh(in[2] + reset * past[2]), sa::none);
    };
    return sa::scan(step, sa::zeros({batch, hidden}), sa::matmul(x, of_input)).first;
  });
  const double root = std::sqrt(static_cast<double>(hidden));
  return result_of(f, normal(1, {n, batch, inputs}), normal(2, {inputs, 3 * hidden}) / root,
                   normal(3, {hidden, 3 * hidden}) / root);
}

/// Gradients of n steps of an LSTM with 64 hidden and 16 input features, for 16 sequences: unrolled, while JAX uses a scan.
inline Works lstm(std::int64_t n) {
  const auto f = sa::jit([](const sa::Array& w, const sa::Array& u, const sa::Array& x) {
    const auto loss = [&x](const sa::Array& a, const sa::Array& b) { return bench::lstm_loss(a, b, x); };
    const auto [dw, du] = sa::grad(loss, {.argnums = {0, 1}})(w, u);
    return sa::concatenate({dw, du});
  });
  return result_of(f, normal(1, {16, 256}) * 0.2, normal(2, {64, 256}) * 0.1, normal(3, {n, 16, 16}));
}

/// n images of 32 x 32 and 64 channels to 64 channels.
inline sa::Array convolved(const sa::Array& x, const sa::Array& kernel) {
  return sa::conv(x, kernel, {}, "SAME");
}
inline Works conv(std::int64_t n) {
  return result_of(sa::jit(convolved), normal(1, {n, 64, 32, 32}), normal(2, {64, 64, 3, 3}));
}
inline Works conv_gradients(std::int64_t n) {
  const auto f = sa::jit([](const sa::Array& x, const sa::Array& kernel) {
    const auto loss = [](const sa::Array& a, const sa::Array& b) {
      return sa::sum(sa::square(convolved(a, b)));
    };
    const auto [dx, dk] = sa::grad(loss, {.argnums = {0, 1}})(x, kernel);
    return sa::concatenate({sa::ravel(dx), sa::ravel(dk)});
  });
  return result_of(f, normal(1, {n, 64, 32, 32}), normal(2, {64, 64, 3, 3}));
}
inline Works random_bits(std::int64_t n) {
  return result_of(sa::jit([n](const sa::Array& key) { return sa::random::bits(key, {n}); }),
                   sa::random::key(3));
}
inline Works random_normal(std::int64_t n) {
  return result_of(sa::jit([n](const sa::Array& key) { return sa::random::normal(key, {n}); }),
                   sa::random::key(3));
}

/// n operations on 1024 elements, one after the other.
inline Works chain(std::int64_t n) {
  const auto f = sa::jit([n](sa::Array x, const sa::Array& y) {
    for (std::int64_t k = 0; k < n; k += 4) x = sa::tanh(x * 1.5 + y) - y;
    return x;
  });
  return result_of(f, normal(1, {1024}), normal(2, {1024}));
}

}  // namespace peers
