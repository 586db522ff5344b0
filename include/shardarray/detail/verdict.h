// What a template says of arguments that it cannot take: one sentence, and few lines of the compiler's around it.
//
// A verdict is a type with `good` and `Complaint`, whose ok() has a static_assert with the sentence. They are judged where the user's call
// arrives, so that the way there, which compilers list, is short.
#pragma once
#include <concepts>

namespace shardarray::detail {

/// Of what is good.
struct NoComplaint {
  static consteval bool ok() { return true; }
};
/// Of what another call has complained already.
struct SaidBefore {
  static consteval bool ok() { return false; }
};
template <class... Verdicts> struct FirstComplaint { using type = NoComplaint; };
template <bool good, class V, class... More> struct ComplaintOf { using type = typename V::Complaint; };
template <class V, class... More> struct ComplaintOf<true, V, More...> : FirstComplaint<More...> {};
template <class V, class... More> struct FirstComplaint<V, More...> : ComplaintOf<V::good, V, More...> {};

/// `if constexpr (Judged<...>::ok())`: are all verdicts good? The sentence of the first that is not; those behind it are not asked.
template <class... Verdicts> using Judged = typename FirstComplaint<Verdicts...>::type;
/// Several verdicts as one.
template <class... Verdicts> struct AllGood {
  using Complaint = Judged<Verdicts...>;
  static constexpr bool good = std::same_as<Complaint, NoComplaint>;
};

}  // namespace shardarray::detail
