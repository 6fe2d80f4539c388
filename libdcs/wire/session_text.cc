#include "wire/session_text.h"

#include <algorithm>
#include <limits>

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parser.hpp>
#include <boost/json/value.hpp>

#include "base/text.h"
#include "base/limits.h"
#include "wire/json.h"

namespace dcs::wire {
namespace {

namespace json = boost::json;

// A mask of classes is published under the name of its option.
std::string_view key_of(const DemandRow &row) { return row.unit == Unit::mask ? row.option : row.name; }
// Exports of release 0.1 and before may do without those that came later than these.
bool in_every_export(const DemandRow &row) { return &row - demand_rows < 5; }

// ---- to text ------------------------------------------------------------------------------

// Bytes that are no UTF-8 must come back as they were.
std::string words(std::string_view bytes) {
    return valid_utf8(bytes) ? json_string(bytes) : "{\"hex\":\"" + hex_of(bytes) + "\"}";
}

std::string list(const std::vector<std::string> &items) {
    std::string r = "[";
    for (const std::string &item : items) r += (r.size() > 1 ? "," : "") + words(item);
    return r + "]";
}

std::string place(const StreamPlace &p) {
    if (!p.in_file) return json_string(p.text);
    std::string r = "{\"file\":" + json_string(p.file);
    if (p.offset) r += ",\"offset\":" + std::to_string(*p.offset);
    if (p.length) r += ",\"length\":" + std::to_string(*p.length);
    if (p.crc) r += ",\"crc32c\":\"" + hex_of_number(*p.crc).substr(8) + "\"";
    return r + "}";
}

std::string files_text(const std::vector<GrainFile> &files) {
    std::string r;
    for (const GrainFile &file : files) {
        r += (r.empty() ? "{\"role\":" : ",{\"role\":") + json_string(name_of(file.role));
        r += ",\"name\":" + words(file.name);
        r += ",\"digest\":\"" + hex_of(file.digest) + "\",\"size\":" + std::to_string(file.size);
        r += ",\"binary_class\":" + words(file.binary_class) + "}";
    }
    return "[" + r + "]";
}

// ---- from text ----------------------------------------------------------------------------

const char *type_of(const json::value &v) {
    switch (v.kind()) {
    case json::kind::null: return "null";
    case json::kind::bool_: return "a boolean";
    case json::kind::string: return "a string";
    case json::kind::array: return "a list";
    case json::kind::object: return "an object";
    default: return "a number";
    }
}

// Takes the keys of one object, each once. The first thing that is wrong stays in `wrong`.
class Keys {
public:
    Keys(const json::object &object, std::string where) : object_(object), where_(std::move(where)) {}

    std::string wrong;

    const json::value *take(std::string_view key, bool needed = true) {
        const auto found = object_.find(json::string_view(key.data(), key.size()));
        if (found == object_.end()) {
            if (needed) spoil("the key " + where_ + quoted(key) + " is missing");
            return nullptr;
        }
        ++taken_;
        return &found->value();
    }
    void spoil(std::string why) {  // empty: nothing is wrong
        if (wrong.empty()) wrong = std::move(why);
    }
    void bad(std::string_view key, const json::value &v, const std::string &wanted) {
        spoil(where_ + quoted(key) + " is " + type_of(v) + ", but it must be " + wanted);
    }

    template <class T> void number(std::string_view key, T &into, T least, T most) {
        if (const json::value *v = take(key)) number_of(key, *v, into, least, most);
    }
    template <class T> void number_of(std::string_view key, const json::value &v, T &into, T least, T most) {
        if (!v.is_int64() && !v.is_uint64()) return bad(key, v, v.is_double() ? "a whole number" : "a number");
        json::error_code wrong_number;
        const T value = v.to_number<T>(wrong_number);
        if (wrong_number || value < least || value > most)
            return spoil(where_ + quoted(key) + " must be " + std::to_string(least) + " to " + std::to_string(most));
        into = value;
    }
    void flag_of(std::string_view key, const json::value *v, bool &into) {
        if (v && !v->is_bool()) return bad(key, *v, "true or false");
        if (v) into = v->as_bool();
    }
    void bytes_of(std::string_view key, const json::value &v, std::string &into) {
        if (v.is_string()) {
            into.assign(v.as_string().data(), v.as_string().size());
            return;
        }
        const json::object *o = v.if_object();
        const json::value *hex = o && o->size() == 1 ? o->if_contains("hex") : nullptr;
        if (!hex || !hex->is_string()) return bad(key, v, "a string or {\"hex\":\"...\"}");
        auto bytes = bytes_of_hex({hex->as_string().data(), hex->as_string().size()});
        if (!bytes) return spoil(where_ + quoted(key) + ": its hex is not pairs of hex digits");
        into = std::move(*bytes);
    }
    void bytes(std::string_view key, std::string &into) {
        if (const json::value *v = take(key)) bytes_of(key, *v, into);
    }
    void list(std::string_view key, std::vector<std::string> &into, std::size_t most) {
        const json::value *v = take(key);
        if (!v) return;
        if (!v->is_array()) return bad(key, *v, "a list of strings");
        if (v->as_array().size() > most)
            return spoil(where_ + quoted(key) + " has " + std::to_string(v->as_array().size()) +
                         " entries, the limit is " + std::to_string(most));
        for (const json::value &item : v->as_array()) bytes_of(key, item, into.emplace_back());
    }
    // After all that are known: whatever is left is not.
    void finish() {
        if (!wrong.empty() || taken_ == object_.size()) return;
        std::string left;
        for (const auto &entry : object_)
            if (!known(entry.key())) left += (left.empty() ? "" : ", ") + quoted(entry.key());
        spoil("unknown key " + where_ + left);
    }
    void knows(std::initializer_list<std::string_view> keys) { known_.insert(known_.end(), keys); }

    static std::string quoted(std::string_view key) { return "\"" + std::string(key) + "\""; }

private:
    bool known(std::string_view key) const { return std::find(known_.begin(), known_.end(), key) != known_.end(); }
    const json::object &object_;
    std::string where_;
    std::size_t taken_ = 0;
    std::vector<std::string_view> known_;
};

std::string file_place(const json::object &object, const std::string &key, StreamPlace &into) {
    Keys keys(object, Keys::quoted(key) + ", ");
    keys.knows({"file", "offset", "length", "crc32c"});
    into.in_file = true;
    keys.bytes("file", into.file);
    const auto optional_number = [&](const char *name, std::optional<std::uint64_t> &number) {
        if (const json::value *v = keys.take(name, false))
            keys.number_of<std::uint64_t>(name, *v, number.emplace(0), 0, INT64_MAX);
    };
    optional_number("offset", into.offset);
    optional_number("length", into.length);
    if (into.offset && !into.length)
        keys.spoil("the key " + Keys::quoted(key) + ", \"length\" is missing beside \"offset\"");
    if (const json::value *v = keys.take("crc32c", false)) {
        std::string text;
        if (v->is_string()) text = std::string(v->as_string().data(), v->as_string().size());
        const auto bytes = bytes_of_hex(text, sizeof(std::uint32_t));
        if (!bytes) keys.spoil(Keys::quoted(key) + ", \"crc32c\" must be a string of 8 hex digits");
        else
            for (const char c : *bytes) into.crc = into.crc.value_or(0) << 8 | static_cast<unsigned char>(c);
    }
    keys.finish();
    return keys.wrong;
}

void stream(Keys &keys, const std::string &key, StreamPlace &into) {
    const json::value *v = keys.take(key);
    if (!v) return;
    if (const json::object *object = v->if_object()) return keys.spoil(file_place(*object, key, into));
    if (!v->is_string()) return keys.bad(key, *v, "a string or {\"file\":...}");
    into.text.assign(v->as_string().data(), v->as_string().size());
}

std::string usage_of(const json::object &object, Usage &u) {
    Keys keys(object, "\"usage\", ");
    keys.knows({"user_us", "system_us", "max_rss_kb", "minor_faults", "major_faults", "in_blocks", "out_blocks"});
    constexpr std::int64_t most = std::int64_t{1} << 50;
    keys.number<std::int64_t>("user_us", u.user_us, 0, most);
    keys.number<std::int64_t>("system_us", u.system_us, 0, most);
    keys.number<std::int64_t>("max_rss_kb", u.max_rss_kb, 0, most);
    keys.number<std::int64_t>("minor_faults", u.minor_faults, 0, most);
    keys.number<std::int64_t>("major_faults", u.major_faults, 0, most);
    keys.number<std::int64_t>("in_blocks", u.in_blocks, 0, most);
    keys.number<std::int64_t>("out_blocks", u.out_blocks, 0, most);
    keys.finish();
    return keys.wrong;
}

std::string file_of(const json::object &object, GrainFile &file) {
    Keys keys(object, "\"files\", ");
    keys.knows({"role", "name", "digest", "size", "binary_class"});
    std::string role, hex;
    keys.bytes("role", role);
    keys.bytes("name", file.name);
    keys.bytes("digest", hex);
    keys.number<std::uint64_t>("size", file.size, 0, limits::content_bytes);
    keys.bytes("binary_class", file.binary_class);
    bool known = false;
    for (int r = 0; r <= static_cast<int>(last_of(FileRole())); ++r)
        if (role == name_of(static_cast<FileRole>(r))) known = true, file.role = static_cast<FileRole>(r);
    if (!known) keys.spoil("\"files\", \"role\" must be data, executable, program, input or output");
    if (const auto digest = bytes_of_hex(hex, limits::digest_bytes)) file.digest = *digest;
    else if (!hex.empty()) keys.spoil("\"files\", \"digest\" must be 64 hex digits");
    keys.finish();
    return keys.wrong;
}

void files(Keys &keys, GrainSpec &spec) {
    const json::value *v = keys.take("files", false);
    if (!v) return;
    if (!v->is_array() || v->as_array().size() > limits::grain_files)
        return keys.bad("files", *v, "a list of at most " + std::to_string(limits::grain_files) + " objects");
    for (const json::value &item : v->as_array()) {
        GrainFile file;
        if (!item.is_object()) return keys.bad("files", item, "a list of objects");
        keys.spoil(file_of(item.as_object(), file));
        spec.files.push_back(std::move(file));
    }
}

void submitted(Keys &keys, GrainSpec &spec) {
    keys.list("argv", spec.argv, limits::argv_items);
    keys.list("env", spec.env, limits::argv_items);
    keys.bytes("directory", spec.directory);
    keys.bytes("label", spec.label);
    each_demand(spec.demands, [&keys]<class T>(const DemandRow &row, T &into) {
        const json::value *v = keys.take(key_of(row), in_every_export(row));
        if constexpr (std::is_same_v<T, bool>) keys.flag_of(key_of(row), v, into);
        else if constexpr (std::is_same_v<T, std::string>) v ? keys.bytes_of(key_of(row), *v, into) : void();
        else if (v) keys.number_of(key_of(row), *v, into, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    });
    keys.spoil(out_of_range(spec.demands));
}

void happened(Keys &keys, ExportedGrain &g) {
    constexpr std::int32_t most = INT32_MAX;
    keys.number<std::int32_t>("failures", g.failures, 0, 255);
    keys.number<std::uint32_t>("incarnation", g.incarnation, 0, UINT32_MAX);
    keys.number<std::uint32_t>("sequence", g.sequence, 0, INT32_MAX);
    if (const json::value *v = keys.take("queue"); v && !v->is_null()) {
        g.queued = true;
        keys.number_of<std::int64_t>("queue", *v, g.queue, INT64_MIN / 4, INT64_MAX / 4);
    }
    if (const json::value *v = keys.take("result"); v && !v->is_null())
        keys.number_of<std::int32_t>("result", *v, g.result_index, 0, most);
    keys.number<std::int32_t>("exit_code", g.exit_code, INT32_MIN, most);
    keys.number<std::int32_t>("signal", g.signal, 0, 1024);
    keys.bytes("host", g.host);
    keys.list("nogo", g.nogo, limits::nogo_items);
    if (const json::value *v = keys.take("usage")) {
        if (!v->is_object()) keys.bad("usage", *v, "an object");
        else keys.spoil(usage_of(v->as_object(), g.usage));
    }
    keys.number<std::uint64_t>("input_position", g.input_position, 0, INT64_MAX);
}

}  // namespace

bool plain_text(std::string_view bytes) {
    return valid_utf8(bytes) && std::all_of(bytes.begin(), bytes.end(), [](char c) {
               const auto byte = static_cast<unsigned char>(c);
               return (byte >= 0x20 && byte != 0x7f) || c == '\n' || c == '\t';
           });
}

std::string to_line(const GrainLine &line) {
    const ExportedGrain &g = line.grain;
    const GrainSpec &s = g.spec;
    const auto n = [](auto value) { return std::to_string(value); };
    std::string r = "{\"grain\":" + n(g.grain) + ",\"state\":" + json_string(g.state);
    r += ",\"argv\":" + list(s.argv) + ",\"env\":" + list(s.env);
    r += ",\"directory\":" + words(s.directory) + ",\"label\":" + words(s.label);
    each_demand(s.demands, [&r]<class T>(const DemandRow &row, const T &value) {
        if (row.since > positional_form && is_unsaid(row, value)) return;  // release 0.1 does not know the key
        r += ",\"" + std::string(key_of(row)) + "\":";
        if constexpr (std::is_same_v<T, bool>) r += value ? "true" : "false";
        else if constexpr (std::is_same_v<T, std::string>) r += words(value);
        else r += std::to_string(value);
    });
    r += ",\"failures\":" + n(g.failures) + ",\"incarnation\":" + n(g.incarnation);
    r += ",\"sequence\":" + n(g.sequence) + ",\"queue\":" + (g.queued ? n(g.queue) : "null");
    r += ",\"result\":" + (g.result_index < 0 ? "null" : n(g.result_index));
    r += ",\"exit_code\":" + n(g.exit_code) + ",\"signal\":" + n(g.signal);
    r += ",\"host\":" + words(g.host) + ",\"nogo\":" + list(g.nogo);
    r += ",\"usage\":" + JsonText::of(g.usage) + ",\"input_position\":" + n(g.input_position);
    r += ",\"input\":" + place(line.input) + ",\"checkpoint\":" + place(line.checkpoint);
    r += ",\"message\":" + place(line.message);
    if (!s.files.empty()) r += ",\"files\":" + files_text(s.files);
    return r + ",\"out\":" + place(line.out) + ",\"err\":" + place(line.err) + "}";
}

Result<GrainLine> grain_of_line(std::string_view text) {
    json::monotonic_resource memory;  // released at the end, all at once
    json::parser parser(&memory);
    json::error_code wrong;
    const std::size_t good = parser.write_some(text.data(), text.size(), wrong);
    const auto bad_json = [&](const std::string &why) {
        return fail(Code::invalid, "bad JSON at byte " + std::to_string(good + 1) + ": " + why);
    };
    if (wrong) return bad_json(wrong.message());
    if (good != text.size()) return bad_json("text follows the object");
    const json::value value = parser.release();
    if (!value.is_object())
        return fail(Code::invalid, std::string("the line is ") + type_of(value) + ", but it must be an object");
    GrainLine line;
    Keys keys(value.as_object(), "");
    keys.knows({"grain",          "state", "argv",       "env",       "directory", "label", "failures", "incarnation",
                "sequence",       "queue", "result",     "exit_code", "signal",    "host",  "nogo",     "usage",
                "input_position", "input", "checkpoint", "message",   "files",     "out",   "err"});
    for (const DemandRow &row : demand_rows) keys.knows({key_of(row)});
    keys.number<std::int32_t>("grain", line.grain.grain, 0, INT32_MAX);
    keys.bytes("state", line.grain.state);
    submitted(keys, line.grain.spec);
    happened(keys, line.grain);
    files(keys, line.grain.spec);
    stream(keys, "input", line.input);
    stream(keys, "checkpoint", line.checkpoint);
    stream(keys, "message", line.message);
    stream(keys, "out", line.out);
    stream(keys, "err", line.err);
    keys.finish();
    if (!keys.wrong.empty()) return fail(Code::invalid, keys.wrong);
    return line;
}

}  // namespace dcs::wire
