// The file `session` of an export.
#include <map>

#include "base/text.h"
#include "wire/session_text.h"

namespace dcs::wire {
namespace {

constexpr std::string_view first_line = "dcs session export 1";
constexpr std::string_view keys[] = {"user",    "number",       "ident",      "state",
                                     "results", "acknowledged", "handed out", "grains"};

struct Value {
    std::string_view text;
    int line = 0;
};
using Values = std::map<std::string_view, Value>;

Status at(int line, const std::string &what) { return fail(Code::invalid, std::to_string(line) + ": " + what); }

bool known(std::string_view key) {
    for (const std::string_view k : keys)
        if (k == key) return true;
    return false;
}

Status read_values(std::string_view text, Values &values, int &line) {
    line = 1;
    if (take_line(text) != first_line) return at(1, "it does not begin with \"" + std::string(first_line) + "\"");
    while (!text.empty()) {
        const std::string_view whole = take_line(text);
        ++line;
        if (whole.empty()) continue;
        const std::size_t colon = whole.find(": ");
        const std::string key(whole.substr(0, colon));
        if (colon == std::string_view::npos) return at(line, "it is not \"key: value\"");
        if (!known(key)) return at(line, "unknown key \"" + key + "\"");
        if (!values.try_emplace(whole.substr(0, colon), Value{whole.substr(colon + 2), line}).second)
            return at(line, "the key \"" + key + "\" occurs twice");
    }
    for (const std::string_view key : keys)
        if (values.count(key) == 0) return at(line, "the key \"" + std::string(key) + "\" is missing");
    return Status::ok();
}

template <class T> Status number(const Values &values, std::string_view key, T most, T &into) {
    const Value &v = values.at(key);
    if (read_number(v.text, into) && into >= 0 && into <= most) return Status::ok();
    return at(v.line, "\"" + std::string(key) + "\" must be a number from 0 to " + std::to_string(most));
}

}  // namespace

std::string to_text(const ExportedSession &s) {
    std::string r = std::string(first_line) + "\n";
    r += "user: " + s.user + "\nnumber: " + std::to_string(s.session) + "\nident: " + s.ident;
    r += "\nstate: " + s.state + "\nresults: " + std::to_string(s.results);
    r += "\nacknowledged: " + std::to_string(s.acknowledged);
    r += "\nhanded out: " + std::to_string(s.handed_out);
    return r + "\ngrains: " + std::to_string(s.grains) + "\n";
}

Result<ExportedSession> session_of_text(std::string_view text) {
    Values values;
    int lines = 0;
    if (Status s = read_values(text, values, lines); !s) return s;
    ExportedSession e;
    e.user = values["user"].text;
    e.ident = values["ident"].text;
    e.state = values["state"].text;
    constexpr std::int32_t most = INT32_MAX;
    if (Status s = number(values, "number", most, e.session); !s) return s;
    if (Status s = number(values, "results", most, e.results); !s) return s;
    if (Status s = number(values, "acknowledged", most, e.acknowledged); !s) return s;
    if (Status s = number(values, "handed out", most, e.handed_out); !s) return s;
    if (Status s = number<std::uint64_t>(values, "grains", most, e.grains); !s) return s;
    if (e.state != "active" && e.state != "terminated")
        return at(values["state"].line, "\"state\" must be active or terminated");
    if (e.handed_out > e.results) return at(values["handed out"].line, "more results were handed out than exist");
    if (e.acknowledged > e.handed_out)
        return at(values["acknowledged"].line, "more results are acknowledged than were handed out");
    return e;
}

}  // namespace dcs::wire
