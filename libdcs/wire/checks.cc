#include "wire/checks.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/limits.h"
#include "base/resources.h"
#include "base/text.h"

namespace dcs::wire {
namespace {

Status bad(const std::string &why) { return fail(Code::invalid, why); }

Status check_one(const GrainFile &file) {
    const std::string what = to_text(file);
    const bool named = file.role != FileRole::program && file.role != FileRole::input && file.role != FileRole::image;
    if (named && !good_file_name(file.name))
        return bad("the file name \"" + file.name.substr(0, 80) +
                   "\" is not one below the working directory: give a relative one without \"..\", of at most " +
                   std::to_string(limits::file_name_bytes) + " bytes");
    if (!named && !file.name.empty())
        return bad(what + " has a name, which only files in the working directory may have");
    if (file.role != FileRole::program && !file.binary_class.empty())
        return bad(what + " has a binary class, which only programs may have");
    if (file.binary_class.size() > limits::name_bytes) return bad(what + ": its binary class is too long");
    if (file.role == FileRole::output)
        return file.digest.empty() && file.size == 0
                   ? Status::ok()
                   : bad(what + " is an output, and must have neither digest nor size");
    if (file.digest.size() != limits::digest_bytes) return bad(what + ": the digest must be a SHA-256 of 32 bytes");
    if (file.size > limits::content_bytes)
        return fail(Code::limit, what + " has " + std::to_string(file.size) + " bytes, the limit is " +
                                     std::to_string(limits::content_bytes) + ": put it onto a file server");
    return Status::ok();
}

// Only hosts that offer the resource run containers.
Status check_image(const GrainSpec &spec) {
    const auto images = std::count_if(spec.files.begin(), spec.files.end(),
                                      [](const GrainFile &file) { return file.role == FileRole::image; });
    if (images == 0) return Status::ok();
    if (images > 1) return bad("the grain has " + std::to_string(images) + " images: give one");
    const auto amounts = amounts_of(spec.demands.resources);
    if (amounts && amounts->contains(container_resource)) return Status::ok();
    return bad(std::string("a grain with an image must demand the resource ") + container_resource);
}

// Puts what lies below a name directly behind it.
bool before(std::string_view a, std::string_view b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
        const auto place = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c) + 1; };
        return place(x) < place(y);
    });
}

// No two in the same place, and none below another.
Status check_places(const GrainSpec &spec) {
    std::vector<std::string_view> names;
    for (const GrainFile &file : spec.files)
        if (!file.name.empty()) names.push_back(file.name);
    std::sort(names.begin(), names.end(), before);
    for (std::size_t i = 1; i < names.size(); ++i) {
        const std::string_view name = names[i - 1], next = names[i];
        if (name == next) return bad("two files have the name " + std::string(name));
        if (next.starts_with(name) && next[name.size()] == '/')
            return bad("the file " + std::string(next) + " would lie below the file " + std::string(name));
    }
    return Status::ok();
}

std::string n(std::uint64_t value) { return std::to_string(value); }

std::string wrong_words(const GrainSpec &s) {
    if (s.argv.empty() || s.argv[0].empty()) return "\"argv\" has no first entry, the path of the program";
    if (s.argv.size() + s.env.size() > limits::argv_items)
        return "\"argv\" and \"env\" have more than " + n(limits::argv_items) + " entries";
    std::size_t bytes = 0;
    for (const auto *list : {&s.argv, &s.env})
        for (const std::string &entry : *list) {
            if (entry.find('\0') != std::string::npos)
                return std::string(list == &s.argv ? "\"argv\"" : "\"env\"") + " has a NUL byte";
            bytes += entry.size() + 1;
        }
    if (bytes > limits::argv_env_bytes)
        return "\"argv\" and \"env\" have more than " + n(limits::argv_env_bytes) + " bytes";
    for (const std::string &entry : s.env)
        if (const auto at = entry.find('='); at == std::string::npos || at == 0)
            return "\"env\" has the entry \"" + entry.substr(0, 80) + "\": it must be NAME=value";
    if (s.directory.size() > limits::path_bytes || s.directory.find('\0') != std::string::npos)
        return "\"directory\" is not a path";
    if (s.label.size() > limits::label_bytes) return "\"label\" has more than " + n(limits::label_bytes) + " bytes";
    return {};
}

std::string wrong_usage(const Usage &u) {
    for (const std::int64_t v :
         {u.user_us, u.system_us, u.max_rss_kb, u.minor_faults, u.major_faults, u.in_blocks, u.out_blocks})
        if (v < 0 || v > std::int64_t{1} << 50) return "\"usage\" has an impossible figure";
    return {};
}

std::string wrong_numbers(const ExportedGrain &g) {
    const GrainSpec &s = g.spec;
    if (std::string wrong = out_of_range(s.demands); !wrong.empty()) return wrong;
    const bool over = g.state == "finished" || g.state == "killed";
    if (g.failures < 0 || g.failures > s.demands.attempts) return "\"failures\" is more than \"attempts\"";
    if (!over && g.failures == s.demands.attempts)
        return "\"failures\" leaves no attempt for a grain that is " + g.state;
    if (g.sequence > INT32_MAX / 2) return "\"sequence\" is impossible";  // as many again are left for its reports
    if (g.state == "finished" && g.result_index < 0)
        return "\"result\" is missing: a finished grain has a place among the results";
    if (g.state != "finished" && g.result_index != -1) return "\"result\" must be null: the grain is " + g.state;
    if (g.queued && g.state != "ready") return "\"queue\" must be null: the grain is " + g.state;
    return wrong_usage(g.usage);
}

std::string wrong_streams(const ExportedGrain &g) {
    for (const auto &[name, s] : {std::pair{"input", &g.input}, std::pair{"out", &g.out}, std::pair{"err", &g.err},
                                  std::pair{"checkpoint", &g.checkpoint}, std::pair{"message", &g.message}})
        if (!s->whole || s->content.size() != s->length) return "\"" + std::string(name) + "\" is incomplete";
    if (!g.spec.input.empty()) return "\"input\" occurs twice";
    if (g.input.length > limits::input_bytes)
        return "\"input\" has " + n(g.input.length) + " bytes, the limit is " + n(limits::input_bytes);
    if (g.message.length > limits::message_bytes)
        return "\"message\" has " + n(g.message.length) + " bytes, the limit is " + n(limits::message_bytes);
    const GrainFile *content = input_of(g.spec);
    if (content && g.input.length > 0) return "the input occurs twice: as \"input\" and among \"files\"";
    const std::uint64_t length = content ? content->size : g.input.length;
    if (g.input_position > length)
        return "\"input_position\" is beyond the end of the input, which has " + n(length) + " bytes";
    if (g.checkpoint.length + (content ? 0 : length - g.input_position) > limits::restart_bytes)
        return "\"checkpoint\" and unread input have more than " + n(limits::restart_bytes) + " bytes";
    return {};
}

// Returned outputs are listed with their digests.
std::string wrong_files(const ExportedGrain &g) {
    GrainSpec submitted = g.spec;
    for (GrainFile &file : submitted.files) {
        if (file.role != FileRole::output || file.digest.empty()) continue;
        if (g.state != "finished") return "\"files\": " + file.name + " has a digest, but the grain is " + g.state;
        if (file.digest.size() != limits::digest_bytes || file.size > limits::content_bytes)
            return "\"files\": " + file.name + " does not name a content";
        file.digest.clear();
        file.size = 0;
    }
    const Status s = check_files(submitted);
    return s ? std::string() : "\"files\": " + s.text;
}

std::string wrong_grain(const ExportedGrain &g) {
    if (g.grain < 0) return "\"grain\" must not be negative";
    if (g.state != "ready" && g.state != "running" && g.state != "finished" && g.state != "killed")
        return "\"state\" must be ready, running, finished or killed";
    if (!g.host.empty() && !is_name(g.host)) return "\"host\" is not the name of a host";
    for (const std::string &name : g.nogo)
        if (!is_name(name)) return "\"nogo\" has an entry that is not the name of a host";
    if (std::set<std::string>(g.nogo.begin(), g.nogo.end()).size() != g.nogo.size())
        return "\"nogo\" names a host twice";
    std::string wrong = wrong_words(g.spec);
    if (wrong.empty()) wrong = wrong_numbers(g);
    if (wrong.empty()) wrong = wrong_files(g);
    return wrong.empty() ? wrong_streams(g) : wrong;
}

// Two that have the same place.
std::optional<Wrong> shared(std::vector<std::pair<std::int64_t, std::int32_t>> &places, const char *key) {
    std::sort(places.begin(), places.end());
    for (std::size_t i = 1; i < places.size(); ++i)
        if (places[i].first == places[i - 1].first)
            return Wrong{places[i].second,
                         "\"" + std::string(key) + "\" is " + std::to_string(places[i].first) +
                             ", like that of grain " + std::to_string(places[i - 1].second),
                         places[i - 1].second};
    return std::nullopt;
}

}  // namespace

bool good_file_name(const std::string &name) {
    if (name.empty() || name.size() > limits::file_name_bytes || name.find('\0') != std::string::npos) return false;
    for (std::size_t from = 0; from <= name.size();) {
        const std::size_t to = std::min(name.find('/', from), name.size());
        const std::string part = name.substr(from, to - from);
        if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
        from = to + 1;
    }
    return true;
}

Status check_files(const GrainSpec &spec) {
    if (spec.files.size() > limits::grain_files)
        return fail(Code::limit, "the grain has " + std::to_string(spec.files.size()) + " files, the limit is " +
                                     std::to_string(limits::grain_files) + ": pack them into an archive");
    std::set<std::string> classes;
    std::size_t bytes = 0;
    int inputs = 0;
    for (const GrainFile &file : spec.files) {
        if (Status s = check_one(file); !s) return s;
        bytes += file.name.size() + file.binary_class.size();
        inputs += file.role == FileRole::input;
        if (file.role == FileRole::program && !classes.insert(file.binary_class).second)
            return bad("two programs are for " +
                       (file.binary_class.empty() ? std::string("every binary class") : file.binary_class));
        const bool placed = !file.name.empty();
        if (placed && !spec.directory.empty())
            return bad("the file " + file.name +
                       " needs a working directory of the grain's own: leave the directory out");
    }
    if (bytes > limits::file_names_bytes)
        return fail(Code::limit, "the names of the grain's files have " + std::to_string(bytes) +
                                     " bytes, the limit is " + std::to_string(limits::file_names_bytes));
    if (inputs > 1) return bad("the grain has " + std::to_string(inputs) + " standard inputs: give one");
    if (inputs == 1 && !spec.input.empty()) return bad("the input is given twice: as bytes and as a content");
    if (!classes.empty() && (spec.argv.empty() || spec.argv[0].empty()))
        return bad("argv[0], the path of the program, is missing");
    if (Status s = check_image(spec); !s) return s;
    return check_places(spec);
}

const GrainFile *input_of(const GrainSpec &spec) {
    for (const GrainFile &file : spec.files)
        if (file.role == FileRole::input) return &file;
    return nullptr;
}

std::uint64_t input_length(const GrainSpec &spec) {
    const GrainFile *content = input_of(spec);
    return content ? content->size : spec.input.size();
}

std::optional<Wrong> SessionCheck::add(const ExportedGrain &g) {
    if (std::string why = wrong_grain(g); !why.empty()) return Wrong{g.grain, std::move(why)};
    if (!numbers_.empty() && g.grain <= numbers_.back()) {
        const std::string name = "grain " + std::to_string(g.grain);
        if (std::binary_search(numbers_.begin(), numbers_.end(), g.grain))
            return Wrong{g.grain, name + " occurs twice", g.grain};
        return Wrong{g.grain,
                     name + " follows grain " + std::to_string(numbers_.back()) + ": they must be in ascending order"};
    }
    numbers_.push_back(g.grain);
    if (g.result_index >= 0) results_.emplace_back(g.result_index, g.grain);
    if (g.queued) queue_.emplace_back(g.queue, g.grain);
    return std::nullopt;
}

// A grain that runs again after a failure has had more than one place; each place takes memory.
static std::uint64_t most_results(std::uint64_t grains) { return 65'536 + 16 * grains; }

std::optional<Wrong> SessionCheck::finish(const ExportedSession &head) {
    const auto session = [](std::string why) { return Wrong{-1, std::move(why)}; };
    if (!is_name(head.ident))
        return session(
            "\"ident\" is not the name of a control program: 1 to 64 letters, digits, "
            "'.', '_' or '-', not beginning with '.' or '-'");
    if (head.grains != numbers_.size())
        return session("\"grains\" says " + n(head.grains) + ", but the file has " + n(numbers_.size()) +
                       ": add the missing line, or correct the number");
    if (head.acknowledged < 0 || head.acknowledged > head.handed_out || head.handed_out > head.results)
        return session("\"acknowledged\", \"handed out\" and \"results\" must be in ascending order");
    if (static_cast<std::uint64_t>(head.results) > most_results(numbers_.size()))
        return session("\"results\" exceeds " + n(most_results(numbers_.size())));
    if (auto wrong = shared(queue_, "queue")) return wrong;
    if (auto wrong = shared(results_, "result")) return wrong;
    if (!results_.empty() && results_.back().first >= head.results)
        return Wrong{results_.back().second, "\"result\" is " + std::to_string(results_.back().first) +
                                                 ", but the session has only " + std::to_string(head.results) +
                                                 " results"};
    return std::nullopt;
}

}  // namespace dcs::wire
