// The version of the library; CMakeLists.txt reads it from here.
#pragma once

/// Semantic version.
#define SHARDARRAY_VERSION_MAJOR 0
#define SHARDARRAY_VERSION_MINOR 1
#define SHARDARRAY_VERSION_PATCH 0
/// major * 10000 + minor * 100 + patch, for `#if`.
#define SHARDARRAY_VERSION \
  (SHARDARRAY_VERSION_MAJOR * 10000 + SHARDARRAY_VERSION_MINOR * 100 + SHARDARRAY_VERSION_PATCH)
