#pragma once
// What is wrong with the files of a submission; the control program and the scheduler ask the same.
#include "base/status.h"
#include "wire/user_calls.h"

namespace dcs::wire {

// A name below a grain's working directory: relative, no empty part, no "." or "..", no NUL.
bool good_file_name(const std::string &name);
Status check_files(const GrainSpec &spec);
// Its standard input, if that is a content; else null.
const GrainFile *input_of(const GrainSpec &spec);
// Length of its standard input, wherever it lies.
std::uint64_t input_length(const GrainSpec &spec);

}  // namespace dcs::wire
