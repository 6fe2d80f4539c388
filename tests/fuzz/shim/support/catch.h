#pragma once
// Replaces the test framework where its helpers (the pool, the scripted scheduler) serve a fuzz target: what
// they require is then an expectation of the target.
#include <iostream>
#include <sstream>

#include "fuzz.h"

// NOLINTBEGIN
#define FUZZ_EXPECT(condition) ::dcs::fuzz::expect(static_cast<bool>(condition), #condition)
#define REQUIRE(...) FUZZ_EXPECT((__VA_ARGS__))
#define REQUIRE_FALSE(...) FUZZ_EXPECT(!(__VA_ARGS__))
#define CHECK(...) FUZZ_EXPECT((__VA_ARGS__))
#define INFO(...) static_cast<void>(0)
// NOLINTEND
