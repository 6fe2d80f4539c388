#pragma once
// Documents on standard output.
#include <cstdio>

#include "base/json.h"

namespace dcs::commands {

// Prints {"schema":SCHEMA,NAME:DOCUMENT} as one line.
inline void print_document(const char *schema, const char *name, const std::string &document) {
    std::printf("%s\n", JsonObject(schema).add_raw(name, document).text().c_str());
}

}  // namespace dcs::commands
