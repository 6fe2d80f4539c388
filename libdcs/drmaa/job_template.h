#pragma once
// Job templates: the attributes of the standard that this library has, with the format of each.
#include <map>
#include <string>
#include <vector>

#include "call.h"

struct drmaa_job_template_s {
    std::map<std::string, std::string> values;
    std::map<std::string, std::vector<std::string>> lists;
};

namespace dcs::drmaa {

using Template = drmaa_job_template_s;

const std::vector<std::string> &attribute_names();
const std::vector<std::string> &list_attribute_names();

Outcome set(Template &job, const std::string &name, const std::string &value);
Outcome set(Template &job, const std::string &name, const std::vector<std::string> &values);

// An empty text if it is not set.
std::string value_of(const Template &job, const char *name);
const std::vector<std::string> &list_of(const Template &job, const char *name);

// [[[[CC]YY/]MM/]DD] hh:mm[:ss] [{-|+}UU:uu] as seconds since 1970, -1 if it is none. What it leaves out is such that
// it is not in the past.
long start_time(const std::string &text, long now);

// hh:mm[:ss] or seconds, as seconds; -1 if it is none.
long duration(const std::string &text);

}  // namespace dcs::drmaa
