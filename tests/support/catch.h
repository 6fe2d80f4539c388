#pragma once
// The one door to the test framework.
#include <catch2/catch.hpp>
