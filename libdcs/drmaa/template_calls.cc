// The calls about job templates and lists of strings.
#include "call.h"
#include "job_template.h"

using dcs::drmaa::call;
using dcs::drmaa::in_session;
using dcs::drmaa::missing;
using dcs::drmaa::Outcome;

namespace {

int next_of(StringList *list, char *value, size_t length) {
    if (!list || !value) return DRMAA_ERRNO_INVALID_ARGUMENT;
    if (list->next >= list->texts.size()) return DRMAA_ERRNO_NO_MORE_ELEMENTS;
    dcs::drmaa::copy_text(list->texts[list->next++], value, length);
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

int drmaa_allocate_job_template(drmaa_job_template_t **jt, char *error_diagnosis, size_t error_diag_len) {
    return call(error_diagnosis, error_diag_len, [&]() -> Outcome {
        if (!jt) return missing("the place of the template");
        if (Outcome o = in_session(); !o.good()) return o;
        *jt = new drmaa_job_template_t;
        return {};
    });
}

int drmaa_delete_job_template(drmaa_job_template_t *jt, char *error_diagnosis, size_t error_diag_len) {
    return call(error_diagnosis, error_diag_len, [&]() -> Outcome {
        if (!jt) return missing("the template");
        delete jt;
        return {};
    });
}

int drmaa_set_attribute(drmaa_job_template_t *jt, const char *name, const char *value, char *error_diagnosis,
                        size_t error_diag_len) {
    return call(error_diagnosis, error_diag_len, [&]() -> Outcome {
        if (!jt || !name || !value) return missing("the template, the name or the value");
        return dcs::drmaa::set(*jt, std::string(name), std::string(value));
    });
}

int drmaa_get_attribute(drmaa_job_template_t *jt, const char *name, char *value, size_t value_len,
                        char *error_diagnosis, size_t error_diag_len) {
    return call(error_diagnosis, error_diag_len, [&]() -> Outcome {
        if (!jt || !name || !value) return missing("the template, the name or the value");
        const auto found = jt->values.find(name);
        if (found == jt->values.end()) return not_set(name);
        dcs::drmaa::copy_text(found->second, value, value_len);
        return {};
    });
}

int drmaa_set_vector_attribute(drmaa_job_template_t *jt, const char *name, const char *value[], char *error_diagnosis,
                               size_t error_diag_len) {
    return call(error_diagnosis, error_diag_len, [&]() -> Outcome {
        if (!jt || !name || !value) return missing("the template, the name or the list");
        std::vector<std::string> values;
        for (; *value; ++value) values.emplace_back(*value);
        return dcs::drmaa::set(*jt, std::string(name), values);
    });
}

int drmaa_get_vector_attribute(drmaa_job_template_t *jt, const char *name, drmaa_attr_values_t **values,
                               char *error_diagnosis, size_t error_diag_len) {
    return call(error_diagnosis, error_diag_len, [&]() -> Outcome {
        if (!jt || !name) return missing("the template or the name");
        const auto found = jt->lists.find(name);
        return found == jt->lists.end() ? not_set(name) : give(values, found->second);
    });
}

int drmaa_get_attribute_names(drmaa_attr_names_t **values, char *error_diagnosis, size_t error_diag_len) {
    return call(error_diagnosis, error_diag_len, [&] { return give(values, dcs::drmaa::attribute_names()); });
}

int drmaa_get_vector_attribute_names(drmaa_attr_names_t **values, char *error_diagnosis, size_t error_diag_len) {
    return call(error_diagnosis, error_diag_len, [&] { return give(values, dcs::drmaa::list_attribute_names()); });
}

}  // extern "C"
