#include "job_template.h"

#include <algorithm>
#include <ctime>

#include "base/text.h"

namespace dcs::drmaa {
namespace {

const char *const elsewhere[] = {DRMAA_TRANSFER_FILES, DRMAA_DEADLINE_TIME, DRMAA_WCT_SLIMIT, DRMAA_DURATION_SLIMIT};

bool contains(const std::vector<std::string> &names, const std::string &name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

Outcome unknown_attribute(const std::string &name, bool of_lists) {
    if (contains(of_lists ? attribute_names() : list_attribute_names(), name))
        return {DRMAA_ERRNO_INVALID_ARGUMENT,
                name + (of_lists ? " has one value, not a list: drmaa_set_attribute sets it"
                                 : " is a list: drmaa_set_vector_attribute sets it")};
    if (std::find(std::begin(elsewhere), std::end(elsewhere), name) != std::end(elsewhere))
        return {DRMAA_ERRNO_INVALID_ARGUMENT, name + " is an optional attribute that DCS does not have"};
    return {DRMAA_ERRNO_INVALID_ARGUMENT, "there is no attribute " + name};
}

Outcome wrong_value(const std::string &name, const std::string &value, const std::string &rule) {
    return {DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE, name + " is \"" + value + "\": it must be " + rule};
}

Outcome wrong_format(const std::string &name, const std::string &value, const std::string &rule) {
    return {DRMAA_ERRNO_INVALID_ATTRIBUTE_FORMAT, name + " is \"" + value + "\": it must be " + rule};
}

Outcome check_value(const std::string &name, const std::string &value) {
    if (name == DRMAA_JS_STATE && value != DRMAA_SUBMISSION_STATE_ACTIVE && value != DRMAA_SUBMISSION_STATE_HOLD)
        return wrong_value(name, value, DRMAA_SUBMISSION_STATE_ACTIVE " or " DRMAA_SUBMISSION_STATE_HOLD);
    if (name == DRMAA_JOIN_FILES && value != "y" && value != "n") return wrong_value(name, value, "y or n");
    if (name == DRMAA_BLOCK_EMAIL && value != "0" && value != "1") return wrong_value(name, value, "0 or 1");
    if ((name == DRMAA_INPUT_PATH || name == DRMAA_OUTPUT_PATH || name == DRMAA_ERROR_PATH) &&
        value.find(':') == std::string::npos)
        return wrong_format(name, value, "[HOST]:PATH, such as :" + value);
    if (name == DRMAA_START_TIME && start_time(value, std::time(nullptr)) < 0)
        return wrong_format(name, value, "[[[[CC]YY/]MM/]DD] hh:mm[:ss] [{-|+}UU:uu]");
    if ((name == DRMAA_WCT_HLIMIT || name == DRMAA_DURATION_HLIMIT) && duration(value) < 0)
        return wrong_format(name, value, "hh:mm[:ss], or seconds");
    return {};
}

// Two or more numbers between separators, such as 12:30:00 or 2026/11/24; empty if it is something else.
std::vector<long> numbers(std::string_view text, char separator, std::size_t least, std::size_t most) {
    std::vector<long> found;
    std::size_t at = 0;
    while (at <= text.size()) {
        const std::size_t end = std::min(text.find(separator, at), text.size());
        unsigned number = 0;
        if (end - at > 4 || !read_number(text.substr(at, end - at), number)) return {};
        found.push_back(number);
        at = end + 1;
    }
    return found.size() >= least && found.size() <= most ? found : std::vector<long>{};
}

// The minutes of +01:30 before UTC; false if it is none.
bool read_zone(std::string_view text, long &minutes) {
    if (text.empty() || (text[0] != '+' && text[0] != '-')) return false;
    const auto zone = numbers(text.substr(1), ':', 2, 2);
    if (zone.empty() || zone[1] > 59 || zone[0] > 14) return false;
    minutes = (text[0] == '-' ? -1 : 1) * (zone[0] * 60 + zone[1]);
    return true;
}

int next_of(StringList *list, char *value, size_t length) {
    if (!list || !value) return DRMAA_ERRNO_INVALID_ARGUMENT;
    if (list->next >= list->texts.size()) return DRMAA_ERRNO_NO_MORE_ELEMENTS;
    copy_text(list->texts[list->next++], value, length);
    return DRMAA_ERRNO_SUCCESS;
}

int number_of_elements(const StringList *list, int *size) {
    if (!list || !size) return DRMAA_ERRNO_INVALID_ARGUMENT;
    *size = static_cast<int>(list->texts.size());
    return DRMAA_ERRNO_SUCCESS;
}

template <class List> Outcome give(List **to, const std::vector<std::string> &texts) {
    if (!to) return missing("the place of the list");
    *to = new List;
    (*to)->texts = texts;
    return {};
}

Outcome not_set(const char *name) {
    return {DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE, std::string(name) + " is not set in this template"};
}

}  // namespace

const std::vector<std::string> &attribute_names() {
    static const std::vector<std::string> names{
        DRMAA_REMOTE_COMMAND, DRMAA_JS_STATE,   DRMAA_WD,         DRMAA_JOB_CATEGORY,   DRMAA_NATIVE_SPECIFICATION,
        DRMAA_BLOCK_EMAIL,    DRMAA_START_TIME, DRMAA_JOB_NAME,   DRMAA_INPUT_PATH,     DRMAA_OUTPUT_PATH,
        DRMAA_ERROR_PATH,     DRMAA_JOIN_FILES, DRMAA_WCT_HLIMIT, DRMAA_DURATION_HLIMIT};
    return names;
}

const std::vector<std::string> &list_attribute_names() {
    static const std::vector<std::string> names{DRMAA_V_ARGV, DRMAA_V_ENV, DRMAA_V_EMAIL};
    return names;
}

Outcome set(Template &job, const std::string &name, const std::string &value) {
    if (!contains(attribute_names(), name)) return unknown_attribute(name, false);
    if (Outcome o = check_value(name, value); !o.good()) return o;
    job.values[name] = value;
    return {};
}

Outcome set(Template &job, const std::string &name, const std::vector<std::string> &values) {
    if (!contains(list_attribute_names(), name)) return unknown_attribute(name, true);
    if (name == DRMAA_V_ENV)
        for (const std::string &value : values)
            if (value.find('=') == std::string::npos || value[0] == '=') return wrong_format(name, value, "NAME=VALUE");
    job.lists[name] = values;
    return {};
}

std::string value_of(const Template &job, const char *name) {
    const auto found = job.values.find(name);
    return found == job.values.end() ? std::string() : found->second;
}

const std::vector<std::string> &list_of(const Template &job, const char *name) {
    static const std::vector<std::string> none;
    const auto found = job.lists.find(name);
    return found == job.lists.end() ? none : found->second;
}

long start_time(const std::string &text, long now) {
    std::vector<std::string_view> words = words_of(text, " ");
    long zone = 0;
    const bool zoned = !words.empty() && read_zone(words.back(), zone);
    if (zoned) words.pop_back();
    if (words.empty() || words.size() > 2) return -1;
    const auto clock = numbers(words.back(), ':', 2, 3);
    const auto day = words.size() == 2 ? numbers(words[0], '/', 1, 3) : std::vector<long>{};
    if (clock.empty() || (words.size() == 2 && day.empty())) return -1;
    if (clock[0] > 23 || clock[1] > 59 || (clock.size() == 3 && clock[2] > 60)) return -1;
    std::tm when{};
    const std::time_t local = now + zone * 60;
    if (zoned) gmtime_r(&local, &when);
    else localtime_r(&local, &when);
    when.tm_hour = static_cast<int>(clock[0]);
    when.tm_min = static_cast<int>(clock[1]);
    when.tm_sec = clock.size() == 3 ? static_cast<int>(clock[2]) : 0;
    when.tm_isdst = -1;
    if (!day.empty()) when.tm_mday = static_cast<int>(day.back());
    if (day.size() > 1) when.tm_mon = static_cast<int>(day[day.size() - 2]) - 1;
    if (day.size() == 3) when.tm_year = static_cast<int>(day[0] < 100 ? day[0] + 100 : day[0] - 1900);
    if (when.tm_mday < 1 || when.tm_mday > 31 || when.tm_mon < 0 || when.tm_mon > 11) return -1;
    const auto seconds = [&] {
        std::tm copy = when;
        return zoned ? timegm(&copy) - zone * 60 : std::mktime(&copy);
    };
    if (seconds() < now) {  // the next such day, month or year
        if (day.empty()) ++when.tm_mday;
        else if (day.size() == 1) ++when.tm_mon;
        else if (day.size() == 2) ++when.tm_year;
    }
    return seconds();
}

long duration(const std::string &text) {
    unsigned seconds = 0;
    if (text.size() < 10 && read_number(text, seconds)) return seconds;
    const auto parts = numbers(text, ':', 2, 3);
    if (parts.empty()) return -1;
    return parts[0] * 3600 + parts[1] * 60 + (parts.size() == 3 ? parts[2] : 0);
}

}  // namespace dcs::drmaa

using namespace dcs::drmaa;

// The calls about job templates and lists of strings.
extern "C" {

int drmaa_get_next_attr_name(drmaa_attr_names_t *values, char *value, size_t value_len) {
    return next_of(values, value, value_len);
}
int drmaa_get_next_attr_value(drmaa_attr_values_t *values, char *value, size_t value_len) {
    return next_of(values, value, value_len);
}
int drmaa_get_next_job_id(drmaa_job_ids_t *values, char *value, size_t value_len) {
    return next_of(values, value, value_len);
}
int drmaa_get_num_attr_names(drmaa_attr_names_t *values, int *size) { return number_of_elements(values, size); }
int drmaa_get_num_attr_values(drmaa_attr_values_t *values, int *size) { return number_of_elements(values, size); }
int drmaa_get_num_job_ids(drmaa_job_ids_t *values, int *size) { return number_of_elements(values, size); }
void drmaa_release_attr_names(drmaa_attr_names_t *values) { delete values; }
void drmaa_release_attr_values(drmaa_attr_values_t *values) { delete values; }
void drmaa_release_job_ids(drmaa_job_ids_t *values) { delete values; }

int drmaa_allocate_job_template(drmaa_job_template_t **jt, char *diagnosis, size_t length) {
    return call(diagnosis, length, [&]() -> Outcome {
        if (!jt) return missing("the place of the template");
        if (Outcome o = in_session(); !o.good()) return o;
        *jt = new drmaa_job_template_t;
        return {};
    });
}

int drmaa_delete_job_template(drmaa_job_template_t *jt, char *diagnosis, size_t length) {
    return call(diagnosis, length, [&]() -> Outcome {
        if (!jt) return missing("the template");
        delete jt;
        return {};
    });
}

int drmaa_set_attribute(drmaa_job_template_t *jt, const char *name, const char *value, char *diagnosis, size_t length) {
    return call(diagnosis, length, [&]() -> Outcome {
        if (!jt || !name || !value) return missing("the template, the name or the value");
        return set(*jt, std::string(name), std::string(value));
    });
}

int drmaa_get_attribute(drmaa_job_template_t *jt, const char *name, char *value, size_t value_len, char *diagnosis,
                        size_t length) {
    return call(diagnosis, length, [&]() -> Outcome {
        if (!jt || !name || !value) return missing("the template, the name or the value");
        const auto found = jt->values.find(name);
        if (found == jt->values.end()) return not_set(name);
        copy_text(found->second, value, value_len);
        return {};
    });
}

int drmaa_set_vector_attribute(drmaa_job_template_t *jt, const char *name, const char *value[], char *diagnosis,
                               size_t length) {
    return call(diagnosis, length, [&]() -> Outcome {
        if (!jt || !name || !value) return missing("the template, the name or the list");
        std::vector<std::string> values;
        for (; *value; ++value) values.emplace_back(*value);
        return set(*jt, std::string(name), values);
    });
}

int drmaa_get_vector_attribute(drmaa_job_template_t *jt, const char *name, drmaa_attr_values_t **values,
                               char *diagnosis, size_t length) {
    return call(diagnosis, length, [&]() -> Outcome {
        if (!jt || !name) return missing("the template or the name");
        const auto found = jt->lists.find(name);
        return found == jt->lists.end() ? not_set(name) : give(values, found->second);
    });
}

int drmaa_get_attribute_names(drmaa_attr_names_t **values, char *diagnosis, size_t length) {
    return call(diagnosis, length, [&] { return give(values, attribute_names()); });
}

int drmaa_get_vector_attribute_names(drmaa_attr_names_t **values, char *diagnosis, size_t length) {
    return call(diagnosis, length, [&] { return give(values, list_attribute_names()); });
}

}  // extern "C"
