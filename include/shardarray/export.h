// Symbols that leave the shared library. Everything else is hidden (-fvisibility=hidden).
#pragma once
/// On what the library exports.
#define SHARDARRAY_API __attribute__((visibility("default")))
