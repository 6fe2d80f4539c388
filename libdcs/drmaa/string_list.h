#pragma once
// The lists of strings that programs get and release.
#include <string>
#include <vector>

struct StringList {
    std::vector<std::string> texts;
    std::size_t next = 0;
};
struct drmaa_attr_names_s : StringList {};
struct drmaa_attr_values_s : StringList {};
struct drmaa_job_ids_s : StringList {};
