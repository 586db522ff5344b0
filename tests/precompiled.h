// What every test file includes, compiled once.
#pragma once
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shardarray/shardarray.h"
