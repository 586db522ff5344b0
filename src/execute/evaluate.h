// Forcing: the unevaluated nodes below some arrays run as one program.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "execute/launch.h"

namespace shardarray {

/// Computes the present arrays of `roots`. Throws DonationError, TraceError naming `what`.
void evaluate(std::span<const Array> roots, const char* what);
/// The value of an evaluated array. Throws DonationError if it was donated.
ValueRef value_of(const Array& a);
/// evaluate, then value_of.
ValueRef force(const Array& a, const char* what);
/// All elements, computed, row-major on the host. Throws as force, OutOfMemory, and as gather_to_host.
std::vector<std::byte> host_elements(const Array& a, const char* what);
/// A leaf that holds `v`.
Array leaf_array(const Type& t, ValueRef v, Where w);
/// Takes the place of a donated array: it knows the type, and the function that took it.
Array tombstone(const Type& t, const char* donor);

}  // namespace shardarray
