#pragma once
// How role and name stand in a certificate.
#include <string>
#include <string_view>

#include "pki/certificate.h"

namespace dcs::pki {

// Letters, digits, '.', '_', '-', not a leading '.' or '-'; at most limits::name_bytes.
bool good_subject(std::string_view name);
// The same, or USER/HOST/IDENT of a program.
bool good_subject(Role role, const std::string &name);
std::string subject_uri(Role role, const std::string &name);

}  // namespace dcs::pki
