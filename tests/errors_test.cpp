// Where errors say they come from: the line of the user's call.
#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "erased.h"
#include "messages.h"
#include "shardarray/shardarray.h"

namespace shardarray::errors_test {
namespace {

Array numbers(const Shape& shape) { return arange(num_elements(shape), float32).reshape(shape); }
Mesh mesh8() { return make_mesh({{"x", 4}, {"y", 2}}); }
NamedSharding cut(const PartitionSpec& spec) { return NamedSharding(mesh8(), spec); }

struct Said {
  std::string text;
  int line = 0;
};
Said said(const shardarray::testing::Erased<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    const std::string place = " (" + std::string(e.where().file) + ":" + std::to_string(e.where().line) + ")";
    const std::string all = e.what();
    const bool ends_so = all.size() > place.size() && all.substr(all.size() - place.size()) == place;
    const bool here = std::filesystem::path(e.where().file).filename() == "errors_test.cpp";
    if (ends_so && here && all == e.text() + place) return {e.text(), e.where().line};
    return {"ends with another place: " + all, 0};
  }
  return {"nothing was thrown", 0};
}

struct Call {
  int line;
  const char* text;
  shardarray::testing::Erased<void()> f;
};
struct Pair {
  Array a, b;
};

}  // namespace

// One call a line: that line is expected.
#define CALL(...)                                                   \
  Call {                                                            \
    __LINE__, #__VA_ARGS__, [&] { static_cast<void>(__VA_ARGS__); } \
  }
// clang-format off
TEST_CASE("errors: every public function that throws names the line of its call") {
  const Array x = numbers({2, 3}), y = numbers({4, 5}), none_, b = array({true, false}), i = array({1, 2}), key = random::key(0);
  const Sharding s = cut(P("x"));
  const PositionalSharding grid(devices());
  const std::vector<Array> leaves{x};
  const Pair pair{x, y}, half{x, Array()};
  const NestedList ragged{{1, 2}, {3}};
  const std::vector<int> three{1, 2, 3};
  const Explanation plan = explain(exp, x);
  const auto norm_of = [](const Array& a) { return sum(a * a); };
  Array given_away = x + 0;
  static_cast<void>(jit([](const Array& a) { return a; })(std::move(given_away)));
  using V = std::vector<Array>;
  const std::vector<Call> calls{
      // math.h
      CALL(add(x, y)), CALL(x + y), CALL(x - y), CALL(x * y), CALL(x / y), CALL(x % y), CALL(-b), CALL(~x), CALL(x & x), CALL(x | x), CALL(x ^ x),
      CALL(x << x), CALL(x >> x), CALL(x == y), CALL(x != y), CALL(x < y), CALL(x <= y), CALL(x > y), CALL(x >= y), CALL(exp(none_)), CALL(1 + none_),
      CALL(fma(x, y, x)),
      CALL(round(b)),
      CALL(clip(x, y, x)),
      CALL(clamp(x, y, x)),
      CALL(gelu(none_)),
      CALL(divmod(x, y)),
      CALL(fmod(x, y)),
      CALL(gcd(x, x)),
      CALL(log2(none_)),
      CALL(hypot(x, y)),
      CALL(modf(none_)),
      CALL(frexp(none_)),
      CALL(ldexp(x, x)),
      CALL(nan_to_num(none_)),
      CALL(select({}, {})),
      CALL(select({b}, {x})),
      // special.h, activations.h
      CALL(digamma(none_)), CALL(xlogy(x, y)), CALL(softplus(none_)), CALL(elu(x, y)), CALL(celu(x, y)),
      CALL(leaky_relu(x, y)), CALL(squareplus(x, y)), CALL(glu(x)), CALL(standardize(x, 5)),
      CALL(where(x, y, y)), CALL(astype(none_, int8)), CALL(none_.astype(int8)), CALL(bitcast(x, int8)),
      CALL(stop_gradient(none_)), CALL(Array(array({1}, uint8) + 300)),
      // ops.h
      CALL(sum(x, 5)), CALL(mean(x, {0, 7})), CALL(max(x, {.axis = 4})), CALL(x.sum({4})),
      CALL(x.any({.axis = 9})), CALL(var(x, 7)), CALL(argmax(x, {0, 1})), CALL(logsumexp(x, 3)),
      CALL(softmax(x, 3)), CALL(log_softmax(x, 3)), CALL(one_hot(x, 3)), CALL(matmul(x, y)),
      CALL(dot(x, y)), CALL(tensordot(x, y)), CALL(tensordot(x, y, {0}, {0})),
      CALL(einsum("ij,jk", x, y)), CALL(reshape(x, {5})), CALL(reshape(x, 5, 5)), CALL(x.reshape({5})),
      CALL(x.reshape(7)), CALL(x.reshape(7, 2)), CALL(transpose(x, {0})), CALL(x.transpose({5, 6})),
      CALL(none_.T()), CALL(swapaxes(x, 0, 5)), CALL(moveaxis(x, 0, 5)), CALL(moveaxis(x, {0, 1}, {0})),
      CALL(expand_dims(x, 9)), CALL(squeeze(x, {0, 1})), CALL(broadcast_to(x, {5})),
      CALL(concatenate({x, y})), CALL(stack({x, y})), CALL(split(x, 5)), CALL(split(x, {9})),
      CALL(flip(x, {0, 7})), CALL(rot90(x, 1, {0, 0})), CALL(roll(x, 1, 7)), CALL(roll(x, {1}, {0, 1})),
      CALL(pad(x, -1)), CALL(tril(i)), CALL(triu(i)), CALL(cumsum(x, 4)), CALL(take(x, x)),
      CALL(sort(Array(1))), CALL(argsort(Array(1))), CALL(zeros({-1})), CALL(zeros(-1)),
      CALL(ones({-1})), CALL(linspace(0, 1, 3, {.dtype = complex64})), CALL(full({-1}, 1)),
      CALL(zeros_like(none_)), CALL(ones_like(none_)), CALL(full_like(x, y)), CALL(arange(0, 1, 0)),
      CALL(linspace(0, 1, -1)), CALL(eye(-1)),
      // statistics.h, rearrange.h, products.h, ordering.h
      CALL(shardarray::std(x, 7)), CALL(ptp(b)), CALL(count_nonzero(x, 7)), CALL(average(x, y)), CALL(quantile(x, 2)), CALL(percentile(x, -1)), CALL(median(x, 7)), CALL(nansum(x, 7)), CALL(nanmax(x, 7)), CALL(nanvar(x, 7)), CALL(nanargmin(x, {0, 1})), CALL(nancumsum(x, 7)), CALL(cumlogsumexp(x, 7)),
      CALL(vector_norm(x, {.axis = 7})), CALL(norm(x, {.ord = 3})), CALL(max(x, {.where = x})), CALL(pad(x, -1, PadMode::wrap)), CALL(sort(x, {.axis = 7})), CALL(argsort(x, {.axis = 7})), CALL(tile(x, -1)), CALL(repeat(x, -1)), CALL(repeat(x, {1, 2, 3}, 0)), CALL(repeat(x, y)), CALL(pad_general(x, {})), CALL(ravel(none_)), CALL(atleast_2d(none_)), CALL(broadcast_arrays({x, y})), CALL(hstack({x, y})), CALL(vstack({x, y})),
      CALL(dstack({x, y})), CALL(column_stack({x, y})), CALL(append(x, y, 0)), CALL(array_split(x, 0)), CALL(fliplr(i)), CALL(flipud(Array(1))), CALL(diagonal(i)), CALL(diag(Array(1))), CALL(shardarray::trace(i)), CALL(tri(-1)), CALL(shardarray::identity(-1)), CALL(meshgrid({x})), CALL(shardarray::indices({-1})),
      CALL(logspace(0, 1, -1)), CALL(geomspace(0, 1)), CALL(outer(none_, x)), CALL(inner(x, y)), CALL(vdot(x, y)), CALL(kron(none_, x)), CALL(cross(x, y)), CALL(matrix_power(x, 2)), CALL(multi_dot({x, y})), CALL(diff(x, -1)), CALL(diff(x, {.append = y})), CALL(gradient(x, 7)), CALL(gradient(x, 0, y)), CALL(trapezoid(x, y)), CALL(trapezoid(x, 1, 7)), CALL(interp(x, x, y)),
      CALL(polyval(x, y)), CALL(convolve(x, y)), CALL(correlate(x, y)), CALL(lexsort({x, y})), CALL(sort({x, y})), CALL(histogram(x, y, {.weights = x})), CALL(top_k(x, 9)), CALL(searchsorted(x, y)), CALL(digitize(x, y)), CALL(bincount(x, 3)), CALL(bincount(i, x, 3)), CALL(histogram(x, y)), CALL(histogram(x, 0)), CALL(take_along_axis(x, x, 0)), CALL(segment_sum(x, x, 3)),
      CALL(segment_prod(x, x, 3)), CALL(segment_max(x, x, 3)), CALL(segment_min(x, x, 3)),
      // linalg.h
      CALL(linalg::cholesky(x)), CALL(linalg::lu(i)), CALL(linalg::qr(i)), CALL(linalg::eigh(x)), CALL(linalg::eigvalsh(x)), CALL(linalg::svd(i)), CALL(linalg::svdvals(i)), CALL(linalg::solve(x, y)), CALL(linalg::triangular_solve(x, y)), CALL(linalg::solve_triangular(x, y)), CALL(linalg::inv(x)), CALL(linalg::pinv(i)), CALL(linalg::lstsq(x, y)),
      CALL(linalg::matrix_rank(x, {.hermitian = true})), CALL(linalg::cond(i)), CALL(linalg::slogdet(x)), CALL(linalg::det(x)), CALL(linalg::expm(x)),
      // indexing.h
      // sets.h, polynomials.h, window_functions.h, apply.h, and what came to others with them
      CALL(unique(x, -1)), CALL(unique_all(x, -1)), CALL(isin(x, none_)), CALL(union1d(x, x, -1)), CALL(intersect1d(x, x, -1)), CALL(setdiff1d(x, x, -1)), CALL(setxor1d(x, x, -1)),
      CALL(polyadd(x, y)), CALL(polysub(x, y)), CALL(polymul(x, y)), CALL(polyder(x)), CALL(polyint(x)), CALL(poly(x)), CALL(vander(x)), CALL(polyfit(x, x, 1)),
      CALL(bartlett(-1)), CALL(hanning(-1)), CALL(hamming(-1)), CALL(blackman(-1)), CALL(kaiser(-1, 2)),
      CALL(apply_along_axis(sum, 5, x)), CALL(apply_over_axes(sum, x, {5})), CALL(piecewise(x, {x > 0, x > 1}, 1)),
      CALL(cov(x, y)), CALL(cov(none_)), CALL(corrcoef(x, y)), CALL(corrcoef(none_)), CALL(nanquantile(x, 2.0)), CALL(nanpercentile(x, {101.0})), CALL(nanmedian(x, 5)), CALL(nancumprod(x, 5)),
      CALL(histogram_bin_edges(x, 0)), CALL(histogramdd(x, {})), CALL(histogramdd(x, {}, x)), CALL(histogram2d(x, y, x, y)), CALL(insert(x, 9, 1)), CALL(insert(x, {9}, 1)), CALL(delete_(x, 9)), CALL(fill_diagonal(i, 1)),
      CALL(tril_indices(-1)), CALL(triu_indices(-1)), CALL(packbits(x)), CALL(unpackbits(x)), CALL(vsplit(x, 7)), CALL(hsplit(x, 7)), CALL(hsplit(x, {9})), CALL(dsplit(x, 1)), CALL(unstack(x, 5)), CALL(block({{x}, {y}})), CALL(block_diag({})), CALL(matrix_transpose(i)),
      CALL(vecdot(x, y)), CALL(matvec(i, i)), CALL(vecmat(i, i)), CALL(ediff1d(none_)), CALL(unwrap(x, {.axis = 5})), CALL(linalg::tensorinv(x)), CALL(linalg::tensorsolve(x, y)), CALL(linalg::matrix_norm(i)),
      CALL(multigammaln(x, 0)), CALL(log_ndtr(none_)), CALL(betaln(x, y)), CALL(rel_entr(x, y)), CALL(kl_div(x, y)), CALL(factorial(none_)), CALL(log1mexp(none_)), CALL(logmeanexp(x, 5)),
      CALL(random::multivariate_normal(key, x, x)), CALL(random::orthogonal(key, -1)),
      CALL(nonzero(x, -1)), CALL(nonzero(Array(1))), CALL(flatnonzero(x, -1)), CALL(argwhere(x, -1)), CALL(compress(x, x, -1)), CALL(extract(x, y, 1)), CALL(unravel_index(x, {2})), CALL(ravel_multi_index({x}, {2})), CALL(put_along_axis(x, x, x, 0)), CALL(choose(x, {x})), CALL(dynamic_slice(x, {x}, {1})), CALL(dynamic_update_slice(x, x, {x})),
      CALL(dynamic_slice_in_dim(x, x, 1)), CALL(dynamic_update_slice_in_dim(x, x, x)), CALL(dynamic_index_in_dim(x, x)), CALL(x[x]), CALL(x.at(x).set(1)),
      // convolution.h, pooling.h, image.h, nn/
      CALL(conv(x, y)), CALL(conv_general_dilated(x, i)), CALL(conv_transpose(x, y)), CALL(max_pool(x, {})), CALL(min_pool(x, {})), CALL(sum_pool(x, {})), CALL(avg_pool(x, {})), CALL(adaptive_max_pool(x, {9})), CALL(adaptive_avg_pool(x, {9})), CALL(resize(x, {}, ResizeMethod::linear)),
      CALL(nn::Conv1d::init(-1, 1, {1}, key)), CALL(nn::Conv1d{}(i)), CALL(nn::ConvTranspose1d::init(-1, 1, {1}, key)), CALL(nn::ConvTranspose1d{}(i)), CALL(nn::MaxPool2d{{1}}(x)), CALL(nn::AvgPool2d{{1}}(x)), CALL(nn::AdaptiveMaxPool2d{{1}}(x)), CALL(nn::AdaptiveAvgPool2d{{1}}(x)),
      // array.h
      CALL(none_.shape()),
      CALL(none_.dtype()),
      CALL(none_.ndim()),
      CALL(none_.size()),
      CALL(none_.nbytes()),
      CALL(none_.weak_type()),
      CALL(none_.type_string()),
      CALL(none_.sharding()),
      CALL(none_.committed()),
      CALL(none_.devices()),
      CALL(none_.is_fully_replicated()),
      CALL(none_.addressable_shards()),
      CALL(x.addressable_data(3)),
      CALL(none_.block_until_ready()),
      CALL(x.item<float>()),
      CALL(none_.to_vector<float>()),
      CALL(x[5]),
      CALL(x[{0, 5}]),
      CALL(x[{0, 0, 0}]),
      CALL(x.at(5).get()),
      CALL(x.at({0, 7}).set(1)),
      CALL(i.at(0).set(2.7)),
      CALL(x.at(0).add(y)),
      CALL(x.at(0).mul(y)),
      CALL(x.at(0).min(y)),
      CALL(x.at(0).max(y)),
      CALL(static_cast<bool>(x + 1)),
      // placement.h, filter_shard.h, tree.h
      CALL(array(ragged)),
      CALL(array({1, 2}, {3})),
      CALL(array(three, {2, 2})),
      CALL(asarray(300, uint8)),
      CALL(make_array_from_callback({5}, s, [&](const ShardIndex&) { return x; })),
      CALL(make_array_from_single_device_arrays({4}, s, leaves)),
      CALL(make_array_from_process_local_data(s, x, {1, 2, 3, 4, 5})),
      CALL(filter_shard(x, cut(P(none, none, "x")))),
      CALL(device_put(x, cut(P(none, none, "x")))),
      CALL(device_put(x, Device{99})),
      CALL(apply_updates(pair, Pair{y, x})),
      CALL(tree_map([](const Array& p, const Array&) { return p; }, pair, half)),
      CALL(combine(V{x}, V{x, x})),
      CALL(with_leaves(pair, leaves)),
      CALL(tree_equal(V{given_away}, V{x})), CALL(hvp(exp, x, x)), CALL(hvp(norm_of, x, y)), CALL(hvp(norm_of, std::tuple(x), std::tuple(y))),
      // processes.h, plan_lock.h
      CALL(gather_from_processes(V{given_away})), CALL(broadcast_one_to_all(V{x}, 7)), CALL(broadcast_one_to_all(V{given_away})),
      CALL(plan_lock("no such file", plan)), CALL(plan_lock("/", plan)), CALL(transfers(matmul, x, y)), CALL(explain(matmul, x, y)), CALL(print_graph(matmul, x, y)),
      // sharding.h, device.h, visualize.h
      CALL(NamedSharding(mesh8(), P("z"))),
      CALL(Mesh({{3}, devices()}, {"x"})),
      CALL(mesh8().axis_size("z")),
      CALL(make_mesh({{"x", 0}})),
      CALL(make_mesh({{"x", 99}})),
      CALL(PositionalSharding(std::vector<Device>{})),
      CALL(grid.reshape({3, 3})),
      CALL(grid.transpose({4})),
      CALL(grid.replicate(4)),
      CALL(s.shard_shape({-1})),
      CALL(s.shard_shape({4}, Device{99})),
      CALL(s.devices_indices_map({})),
      CALL(s.replica_ids({})),
      CALL(s.is_equivalent_to(s, -1)),
      CALL(s.is_fully_replicated(-1)),
      CALL(devices("tpu")),
      CALL(set_cpu_device_count(0)),
      CALL(default_device(Device{99})),
      CALL(create_device_mesh({3})),
      CALL(render_sharding({8}, s, {.scale = -1})),
      CALL(render_diff({}, s, s)),
      CALL(visualize_diff({-1}, s, s)),
      CALL(visualize_diff(x, y)),
      CALL(visualize_diff(x, grid)),
      CALL(sharding_table({}, s)),
      CALL(visualize_array_sharding(x, {.scale = -1})),
      // random.h, nn.h, losses.h, optim.h, data.h
      CALL(random::split(x)),
      CALL(random::split<2>(x)),
      CALL(random::fold_in(x, 1)),
      CALL(random::bits(x)),
      CALL(random::uniform(x)),
      CALL(random::normal(key, {-1})),
      CALL(random::randint(x, {}, 0, 1)),
      CALL(random::bernoulli(x)),
      CALL(random::permutation(key, -1)),
      CALL(random::choice(key, -1)),
      CALL(random::categorical(key, i)),
      CALL(random::truncated_normal(x, 0, 1)),
      CALL(random::exponential(x)),
      CALL(random::gumbel(x)),
      CALL(random::laplace(x)), CALL(random::logistic(x)), CALL(random::cauchy(x)), CALL(random::rademacher(x)), CALL(random::maxwell(x)),
      CALL(random::double_sided_maxwell(x, 0, 1)), CALL(random::weibull_min(x, 1, 1)), CALL(random::pareto(x, 1)), CALL(random::rayleigh(x, 1)),
      CALL(random::wald(x, 1)), CALL(random::triangular(x, 0, 1, 2)), CALL(random::lognormal(x)), CALL(random::geometric(x, 0.5)),
      CALL(random::gamma(key, x, {7})), CALL(random::loggamma(x, 1)), CALL(random::beta(key, x, y)), CALL(random::dirichlet(key, 1)),
      CALL(random::chisquare(x, 1)), CALL(random::t(x, 1)), CALL(random::f(key, x, y)), CALL(random::generalized_normal(x, 2)),
      CALL(random::ball(key, -1)), CALL(random::poisson(x, 1)), CALL(random::binomial(key, x, y)), CALL(random::multinomial(key, 1, 1)),
      CALL(nn::Linear::init(-1, 1, key)),
      CALL(nn::Linear{x, Array()}(y)),
      CALL(nn::MLP<>{}(x)),
      CALL(nn::MLP<>::init(1, 1, 1, -1, key)),
      CALL(nn::Dropout{}(x)), CALL(nn::Embedding::init(-1, 1, key)), CALL(nn::Embedding{x}(i)), CALL(nn::PReLU{y}(x)),
      CALL(nn::LayerNorm::init(-1)), CALL(nn::LayerNorm::init(1)(x)), CALL(nn::RMSNorm::init({-1})), CALL(nn::RMSNorm::init(1)(x)),
      CALL(nn::GroupNorm::init(0)), CALL(nn::GroupNorm::init(3, 3)(x)), CALL(nn::BatchNorm::init(-1, "i")), CALL(nn::BatchNorm::init(1, "i")(x, {})),
      CALL(nn::GRUCell::init(1, 0, key)), CALL(nn::GRUCell::init(1, 1, key)(x, x)), CALL(nn::LSTMCell::init(1, 0, key)),
      CALL(nn::LSTMCell::init(1, 1, key)(x, {x, x})), CALL(nn::sequential(nn::LayerNorm::init(1), relu)(x)),
      CALL(nn::dot_product_attention(x, x, x)), CALL(nn::RotaryPositionalEmbedding{3}(x)), CALL(nn::KeyValueCache::init(-1, 1, 1, 1)),
      CALL(nn::KeyValueCache{x, x, i}.attend(x, x, x)), CALL(nn::MultiheadAttention::init(0, 1, key)), CALL(nn::MultiheadAttention{}(none_, x, x)),
      CALL(nn::initializers::zeros(x, {1})), CALL(nn::initializers::ones(x, {1})), CALL(nn::initializers::constant(1)(x, {1})),
      CALL(nn::initializers::normal()(x, {1})), CALL(nn::initializers::he_normal()(key, {1})),
      CALL(losses::mse(x, y)),
      CALL(losses::softmax_cross_entropy(x, y)),
      CALL(losses::softmax_cross_entropy_with_integer_labels(x, y)),
      CALL(optim::adam(1).update(pair, optim::adam(1).init(half))),
      CALL(optim::adamw(1).update(pair, optim::adamw(1).init(half), pair)),
      CALL(optim::trace(1).update(pair, optim::trace(1).init(half))),
      CALL(optim::multi_steps(optim::sgd(1), 2).update(pair, optim::multi_steps(optim::sgd(1), 2).init(half))),
      CALL(optim::masked(optim::trace(1), is_array).update(pair, optim::masked(optim::trace(1), is_array).init(half))),
      CALL(optim::apply_every(0)), CALL(optim::multi_steps(optim::sgd(1), 0)), CALL(optim::lookahead(optim::sgd(1), 0, 1)),
      CALL(optim::cosine_decay_schedule(1, 0)), CALL(optim::cosine_decay_schedule(1, 1)(none_)), CALL(optim::warmup_cosine_decay_schedule(1, 1, 2, 1)),
      CALL(optim::piecewise_constant_schedule(1, {{1, -1}})), CALL(optim::join_schedules(std::tuple(optim::constant_schedule(1)), {1})),
      CALL(optim::sgdr_schedule({})), CALL(optim::linear_onecycle_schedule(0, 1)), CALL(optim::cosine_onecycle_schedule(0, 1)), CALL(losses::l2_loss(x, y)),
      CALL(losses::squared_error(x, y)), CALL(losses::huber_loss(x, y)), CALL(losses::log_cosh(x, y)), CALL(losses::cosine_similarity(x, y)),
      CALL(losses::cosine_distance(x, y)), CALL(losses::sigmoid_binary_cross_entropy(i, i)), CALL(losses::hinge_loss(x, y)),
      CALL(losses::kl_divergence(x, y)), CALL(losses::kl_divergence_with_log_targets(x, y)), CALL(losses::smooth_labels(Array(1), 1)),
      CALL(data::loader(std::tuple(x, y))),
      CALL(data::load_csv("no such file")), CALL(data::load_table("no such file", {})), CALL(data::save_csv("/", x)), CALL(data::save_table("/", {{"x"}, {y}})),
      CALL(data::Table().at("x")), CALL(to_dlpack(none_)), CALL(to_dlpack_legacy(none_)), CALL(from_dlpack(DlpackTensor())), CALL(from_dlpack(LegacyDlpackTensor())),
      CALL((host_view<float, 1>(none_))), CALL((host_view<float, 1>(arange(1.0)).at(1))),
      CALL(load_npy("no such file")), CALL(save_npy("/", x)), CALL(load_npz("no such file")), CALL(save_npz("/", {{"x", x}})),
      CALL(load_safetensors("no such file")), CALL(save_safetensors("/", {{"x", x}})), CALL(save("/", pair)), CALL(load("no such file", pair)),
      CALL(checkpoints::save("/no such folder", -1, pair)), CALL(checkpoints::save("/dev/null", 1, pair)), CALL(checkpoints::async_save("/dev/null", 1, pair)), CALL(checkpoints::async_save("/no such folder", -1, pair)),
      CALL(checkpoints::restore("no such folder", pair)), CALL(checkpoints::restore("no such folder", pair, {.step = 3})), CALL(checkpoints::convert("no such folder", "/")),
      CALL(checkpoints::steps(std::string(5000, 'a'))), CALL(checkpoints::latest(std::string(5000, 'a'))),
      CALL(*data::loader(std::tuple(x), {.batch = 1}).end()),
      CALL(isclose(x, y)),
      CALL(allclose(x, y)),
      CALL(array_equal(x, none_)),
      // debug.h, collectives.h, tpmap.h
      CALL(debug::print("{}")),
      CALL(debug::print("{}", 1, x)),
      CALL(debug::id_print(none_)),
      CALL(debug::callback(nullptr)),
      CALL(inspect_array_sharding(x, nullptr)),
      CALL(psum(x, "q")),
      CALL(psum(pair, "q")),
      CALL(all_gather(x, "q")), CALL(pmean(x, "q")), CALL(pmax(x, "q")), CALL(pmin(x, "q")), CALL(pshuffle(x, "q", {0})), CALL(pbroadcast(x, "q", 0)), CALL(pswapaxes(x, "q", 0)),
      CALL(ppermute(x, "q", ring(2))), CALL(psum_scatter(x, "q")), CALL(all_to_all(x, "q", {.split_axis = 0, .concat_axis = 0})),
      CALL(with_sharding_constraint(Array(1), s)), CALL(reshard(Array(1), s)), CALL(fft::fftfreq(0)), CALL(machine("no such machine")),
      CALL(axis_index("q")),
      CALL(ring(0)),
      CALL(print_options({.precision = -1})),
      CALL(time_it([] {}, {.runs = 0})),
      CALL(axis_size("q")),
      CALL(split_leading_axis(5, x)),
      CALL(flatten_leading_axes(x, 9)),
      CALL(join_batches(i)),
      CALL(unshard(V{})),
      CALL(assert_replica_integrity(Array(1), {.is_device_replicated = true})),
      CALL(eval(none_ + 1)),
      CALL(block_until_ready(none_ + 1)),
  };
  for (const Call& c : calls) {
    const Said got = said(c.f);
    CAPTURE(std::string(c.text));
    CAPTURE(got.text);
    CHECK(got.line == c.line);
  }
}

TEST_CASE("errors: what transforms return names the line of its call, and of nested calls the innermost") {
  const Array x = numbers({4, 3}), y = numbers({5, 6});
  int inside = 0, outside = 0;
  const auto bad = [&](const Array& a) { inside = __LINE__; return matmul(a, numbers({7, 7})); };
  const auto loss = [&](const Array& a) { return sum(bad(a)); };
  const auto same = [](const Array& a) { return a; };
  // the function's own line, through any number of transforms
  CHECK(said([&] { jit(bad)(x); }).line == inside);
  CHECK(said([&] { jit(jit(bad))(x); }).line == inside);
  CHECK(said([&] { grad(loss)(x); }).line == inside);
  CHECK(said([&] { value_and_grad(loss)(x); }).line == inside);
  CHECK(said([&] { vjp(bad, x); }).line == inside);
  CHECK(said([&] { jvp(bad, x, x); }).line == inside);
  CHECK(said([&] { vmap(bad)(numbers({2, 4, 3})); }).line == inside);
  CHECK(said([&] { jit(vmap(bad))(numbers({2, 4, 3})); }).line == inside);
  CHECK(said([&] { pmap(bad)(numbers({2, 4, 3})); }).line == inside);
  CHECK(said([&] { jit(grad(loss))(x); }).line == inside);
  CHECK(said([&] { shard_map(bad, {.mesh = mesh8(), .in_specs = P("x"), .out_specs = P("x")})(x); }).line == inside);
  CHECK(said([&] { scan([&](const Array& c, const Array&) { return std::pair(bad(c), none); }, x, x); }).line == inside);
  CHECK(said([&] { jacrev(bad)(x); }).line == inside);
  CHECK(said([&] { linearize(bad, x); }).line == inside);
  CHECK(said([&] { eval_shape(bad, x); }).line == inside);
  CHECK(said([&] { jit(checkpoint(bad))(x); }).line == inside);
  CHECK(said([&] { cond(x[0][0] > 0, same, bad, x); }).line == inside);
  CHECK(said([&] { while_loop([](const Array& c) { return sum(c) > 0; }, bad, x); }).line == inside);
  CHECK(said([&] { shardarray::map(bad, numbers({2, 4, 3})); }).line == inside);
  CHECK(said([&] { tpmap(bad, {.args = {broadcast}})(x); }).line == inside);
  CHECK(said([&] { explain(bad, x); }).line == inside);
  // what the transform itself refuses
  outside = __LINE__; CHECK(said([&] { vmap(same)(Array(1)); }).line == outside);
  outside = __LINE__; CHECK(said([&] { vmap(same, {.in_axes = {0, 0}})(x); }).line == outside);
  outside = __LINE__; CHECK(said([&] { pmap(same)(numbers({99})); }).line == outside);
  outside = __LINE__; CHECK(said([&] { shard_map(same, {.mesh = mesh8(), .in_specs = P("q"), .out_specs = P()})(x); }).line == outside);
  outside = __LINE__; CHECK(said([&] { grad(same)(x); }).line == outside);
  outside = __LINE__; CHECK(said([&] { grad<1>([](const Array& a, const Array&) { return sum(a); }, {.has_aux = true})(x, y); }).line == outside);
  outside = __LINE__; CHECK(said([&] { jit(same, {.static_args = {0}})(x); }).line == outside);
  outside = __LINE__; CHECK(said([&] { explain(jit(same, {.static_args = {0}}), x); }).line == outside);
  outside = __LINE__; CHECK(said([&] { vjp(same, x).second(y); }).line == outside);
  outside = __LINE__; CHECK(said([&] { jvp(same, x, y); }).line == outside);
  outside = __LINE__; CHECK(said([&] { tpmap(same, {.args = {shard}})(x[slice(3)]); }).line == outside);
  outside = __LINE__; CHECK(said([&] { scan([](const Array& c, const Array&) { return std::pair(c, none); }, x, Array(1)); }).line == outside);
  outside = __LINE__; CHECK(said([&] { fori_loop(0, 2, [](const Array&, const Array&) { return numbers({9}); }, x); }).line == outside);
  outside = __LINE__; CHECK(said([&] { jacfwd([](const Array& a) { return a > 0; })(x); }).line == outside);
  outside = __LINE__; CHECK(said([&] { linearize(same, x).second(y); }).line == outside);
  outside = __LINE__; CHECK(said([&] { shape_dtype_struct({-1}); }).line == outside);
  outside = __LINE__; CHECK(said([&] { shape_dtype_struct({}, float32, cut(P("x"))); }).line == outside);
  outside = __LINE__; CHECK(said([&] { machine("abacus"); }).line == outside);
  outside = __LINE__; CHECK(said([&] { machine_from_json("{}"); }).line == outside);
  outside = __LINE__; CHECK(said([&] { Machine().devices(); }).line == outside);
  outside = __LINE__; CHECK(said([&] { shardarray::map(same, x, {.batch_size = 0}); }).line == outside);
  outside = __LINE__; CHECK(said([&] { associative_scan([](const Array& a, const Array&) { return a; }, x, {.axis = 7}); }).line == outside);
  outside = __LINE__; CHECK(said([&] { cond(x, same, same, x); }).line == outside);
  outside = __LINE__; CHECK(said([&] { switch_(x, std::tuple(same, same), x); }).line == outside);
  outside = __LINE__; CHECK(said([&] { while_loop(same, same, x); }).line == outside);
  const auto reverse_only = custom_vjp(same, [](const Array& a) { return std::pair(a, none); }, [](none_t, const Array& g) { return g; });
  outside = __LINE__; CHECK(said([&] { jvp(reverse_only, x, x); }).line == outside);
  // function objects of the library have the line of the transform's call
  outside = __LINE__; CHECK(said([&] { jit(matmul)(x, y); }).line == outside);
  outside = __LINE__; CHECK(said([&] { jit(vmap(matmul))(x, y); }).line == outside);
  const auto mlp = nn::MLP<>::init(2, 2, 2, 1, random::key(0));
  outside = __LINE__; CHECK(said([&] { vmap(mlp)(x); }).line == outside);
  // a donated array
  const auto f = jit(same, {.donate = Donate::all});
  Array moved = x + 0;
  const Array taken = jit(same)(std::move(moved));
  outside = __LINE__; CHECK(said([&] { f(moved); }).line == outside);
  const auto many = jit([](Array a, int, int, int, int, int, int, int) { return a; });
  outside = __LINE__; CHECK(said([&] { many(moved, 1, 2, 3, 4, 5, 6, 7); }).line == outside);
  const auto nine = jit([](Array a, int, int, int, int, int, int, int, int) { return a; });
  outside = __LINE__; CHECK(said([&] { nine(moved, 1, 2, 3, 4, 5, 6, 7, 8); }).line == outside);
  const auto sixteen = jit([](Array a, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int) { return a; });
  outside = __LINE__; CHECK(said([&] { sixteen(moved, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }).line == outside);
  const auto seventeen = jit([](Array a, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int) { return a; });
  CHECK(said([&] { seventeen(moved, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16); }).text.starts_with("ends with another place"));
}
// clang-format on

TEST_CASE("errors: what is found when a value is asked for names the line that wrote it") {
  const Array left = device_put(numbers({4}), devices()[0]), right = device_put(numbers({4}), devices()[1]);
  const int line = __LINE__ + 1;
  const Array both = left * right;
  const Said got = said([&] { static_cast<void>(both.to_vector<float>()); });
  CHECK(got.line == line);
  CHECK(got.text ==
        "multiply: Received incompatible devices for one computation. Got an array f32[4] with device ids "
        "[0] on "
        "platform cpu and an array f32[4] with device ids [1] on platform cpu. All committed arrays, "
        "constraints and outputs of one computation must be on the same devices. Move one with "
        "device_put(x, sharding).");
}

TEST_CASE("errors: strict names the line of the operation, and a sharding that is code") {
  const Array a = device_put(numbers({8, 8}), cut(P("x"))), b = device_put(numbers({8, 8}), cut(P("y")));
  const policy::strict here;
  int line = 0;
  const auto f = jit([&](const Array& u, const Array& v) {
    line = __LINE__ + 1;
    return u + v;
  });
  const Said got = said([&] { static_cast<void>(f(a, b)); });
  CHECK(got.line == line);
  CAPTURE(got.text);
  CHECK(got.text.find("add: policy strict refuses an implicit ") == 0);
  CHECK(got.text.find("Cheapest fix: reshard(operand 1, NamedSharding(mesh, P(") != std::string::npos);
}

TEST_CASE("errors: arrays that outlive their trace name the line that recorded them") {
  Array kept;
  const int call = __LINE__ + 1;
  static_cast<void>(jit([&](const Array& a) { return kept = a; })(numbers({3})));
  const int line = __LINE__ + 1;
  const Said got = said([&] { static_cast<void>(kept.to_vector<float>()); });
  CHECK(got.line == line);
  CHECK(got.text.find("to_vector: an array f32[3] escaped from the trace it was recorded in (") == 0);
  CHECK(got.text.find("errors_test.cpp:" + std::to_string(call) + "). Values") != std::string::npos);
}

TEST_CASE("errors: reading in a trace names what reads, and what to do instead") {
  const Array x = numbers({2});
  std::ostringstream out;
  const auto text = [&](const auto& f) {
    return testing::message_of<TraceError>([&] { static_cast<void>(jit(f)(x)); });
  };
  CHECK(text([&](const Array& a) {
          out << a;
          return a;
        }) ==
        "<<: reading a value inside a trace: f32[2] has no value while the function is traced. Print it with "
        "debug::print(\"{}\", x), or return it.");
  CHECK(text([](const Array& a) { return to_string(a).empty() ? a : -a; }).find("to_string: reading") == 0);
  CHECK(
      text([](const Array& a) { return a[0] ? a : -a; }) ==
      "bool: reading a value inside a trace: f32[2] has no value while the function is traced. Return it and "
      "read it outside; choose between values with where(condition, a, b).");
}

TEST_CASE("errors: an array that an option gave away is not said to have been moved") {
  const auto f = jit([](const Array& a) { return a + 1; }, {.donate = Donate::all, .name = "step"});
  const Array x = block_until_ready(numbers({4}) + 0);
  static_cast<void>(f(x));
  REQUIRE(x.is_deleted());
  CHECK(testing::message_of<DonationError>([&] { static_cast<void>(x + 1); }) ==
        "add: Array has been deleted with shape=f32[4]: it was donated to step. Leave it out of the options "
        "donate and donate_args to keep it, or use the result.");
}

TEST_CASE("errors: a function object's line in explain is that of the call") {
  const int line = __LINE__ + 1;
  const std::string text = explain(jit(matmul), numbers({2, 2}), numbers({2, 2})).to_string();
  CHECK(text.find("errors_test.cpp:" + std::to_string(line)) != std::string::npos);
  CHECK(text.find("invoke.h") == std::string::npos);
}

TEST_CASE("errors: ops in mapped functions keep their own lines") {
  int line = 0;
  const auto f = [&](const Array& a) {
    line = __LINE__ + 1;
    return tanh(a);
  };
  const std::string text = explain(vmap(f), numbers({2, 2})).to_string();
  CHECK(text.find("errors_test.cpp:" + std::to_string(line)) != std::string::npos);
}

}  // namespace shardarray::errors_test
