// What every test file includes, compiled once.
#pragma once
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#if __has_include("shardarray/shardarray.h")
#include "shardarray/shardarray.h"
#endif
