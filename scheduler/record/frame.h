#pragma once
// What all records on disk have in common: see codec.h.
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"

namespace dcs::record {

Status damaged(const std::string &what);
std::string framed(const std::string &body);
// Takes one record off the front of `in`, verified: its body.
Result<std::string_view> next_body(std::string_view &in);

}  // namespace dcs::record
