#pragma once
// The scheduler's rows in the structs of C: the one place where they are copied. Answers are blocks with all that they
// point to, laid out for the structs as the program knows them (base/sized.h).
#include "base/status.h"
#include "dcs.h"
#include "wire/message.h"

namespace dcs::client {

// The sizes of a program's structs, checked.
Result<d_row_sizes> known_sizes(const d_row_sizes *from);

d_info *info_of(const d_row_sizes &sizes, wire::QueryReply reply, std::string user);
void free_info(d_info *info);

d_explanation *explanation_of(const d_row_sizes &sizes, wire::Explanation answer);
void free_explanation(d_explanation *explanation);

d_result result_of(wire::GrainResult &result);  // its texts are those of `result`

}  // namespace dcs::client
