// Symbols exported by the shared library. Everything else is hidden (-fvisibility=hidden).
#pragma once
/// Marks exported symbols.
#define SHARDARRAY_API __attribute__((visibility("default")))
