#include "wire/json.h"

#include "wire/message.h"

namespace dcs::wire {

std::string to_json(const HostRow &row) {
    JsonText::Rules rules{{}, "host_class", "class"};
    if (row.last_call_in_s < 0) rules.unknown = {"last_call_in_s"};
    if (row.last_call_in_s < 0 || row.free_memory_kb < 0)  // these come with a call-in
        rules.unknown.insert(rules.unknown.end(), {"free_memory_kb", "load"});
    return JsonText::of(row, std::move(rules));
}
std::string to_json(const MemberRow &row) {
    JsonText::Rules rules;
    if (row.joined_s <= 0) rules.unknown.push_back("joined_s");
    if (row.expires_s <= 0) rules.unknown.push_back("expires_s");
    return JsonText::of(row, std::move(rules));
}
std::string to_json(const SessionRow &row) {
    JsonText::Rules rules;
    if (row.submitted_s <= 0) rules.unknown.push_back("submitted_s");
    if (row.settled_s <= 0) rules.unknown.push_back("settled_s");
    return JsonText::of(row, std::move(rules));
}
std::string to_json(const StoredRow &row) { return JsonText::of(row); }
std::string to_json(const GrainRow &row) {
    JsonText::Rules rules;
    if (row.uid < 0) rules.unknown.push_back("uid");
    return JsonText::of(row, std::move(rules));
}
std::string to_json(const ProblemRow &row) { return JsonText::of(row); }
std::string to_json(const Explanation &row) { return JsonText::of(row); }

}  // namespace dcs::wire
