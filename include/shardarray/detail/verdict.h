// How templates refuse arguments that they cannot take: with one sentence, and few of the compiler's lines around it.
//
// A verdict is a type with `good` and `Complaint`, whose ok() has a static_assert with the sentence. Verdicts are judged where the user's
// call enters, so that the path there, which compilers list, is short.
#pragma once
#include <concepts>

namespace shardarray::detail {

/// The Complaint of what is good.
struct NoComplaint {
  static consteval bool ok() { return true; }
};
/// The Complaint of what was reported before.
struct SaidBefore {
  static consteval bool ok() { return false; }
};
template <class... Verdicts> struct FirstComplaint { using type = NoComplaint; };
template <bool good, class V, class... More> struct ComplaintOf { using type = typename V::Complaint; };
template <class V, class... More> struct ComplaintOf<true, V, More...> : FirstComplaint<More...> {};
template <class V, class... More> struct FirstComplaint<V, More...> : ComplaintOf<V::good, V, More...> {};

/// `if constexpr (Judged<...>::ok())`: are all verdicts good? Reports the first that is not; later ones are not instantiated.
template <class... Verdicts> using Judged = typename FirstComplaint<Verdicts...>::type;
/// Several verdicts as one.
template <class... Verdicts> struct AllGood {
  using Complaint = Judged<Verdicts...>;
  static constexpr bool good = std::same_as<Complaint, NoComplaint>;
};

}  // namespace shardarray::detail
