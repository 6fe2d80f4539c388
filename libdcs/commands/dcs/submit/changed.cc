// Files that grains of a job name and that were written after these had succeeded.
#include <algorithm>
#include <filesystem>
#include <map>
#include <sys/stat.h>

#include "commands/dcs/query/session_events.h"
#include "commands/dcs/run/placeholders.h"
#include "work.h"

namespace dcs::commands {
namespace {

// Of grains that name a file, by the scheduler's clock.
struct GrainEnds {
    std::int64_t started = INT64_MAX;    // the first of those that run or have succeeded
    std::int64_t succeeded = INT64_MAX;  // the first that has
    std::int64_t failed = INT64_MAX;     // the first that has not
    std::int64_t last = -1;              // whatever its result; INT64_MAX: some run

    void add(const GrainEnds &other) {
        started = std::min(started, other.started);
        succeeded = std::min(succeeded, other.succeeded);
        failed = std::min(failed, other.failed);
        last = std::max(last, other.last);
    }
};

GrainEnds ends_of(const wire::History &history, std::int32_t number) {
    const auto found = history.grains.find(number);
    if (found == history.grains.end()) return {};
    const wire::GrainHistory &grain = found->second;
    const std::int64_t started = grain.stays.empty() ? INT64_MAX : grain.stays.back().from_ms;
    if (grain.state == wire::GrainState::running) return {.started = started, .last = INT64_MAX};
    if (grain.state != wire::GrainState::finished) return {.last = grain.ended_ms};
    if (grain.code != 0 || grain.signal != 0) return {.failed = grain.ended_ms, .last = grain.ended_ms};
    return {.started = started, .succeeded = grain.ended_ms, .last = grain.ended_ms};
}

std::string whole_path(const std::string &directory, const std::string &name) {
    return (std::filesystem::path(directory) / name).lexically_normal();
}

std::string words_of_change(const std::string &file, const std::string &session, const std::string &unless) {
    return file + " has changed since " + session + " began; " + unless +
           "results from before the change are kept. --new runs all grains again";
}

class NamedFiles {
public:
    NamedFiles(const JobFile &file, const std::vector<JobPart> &parts, std::int64_t since_ms) : since_ms_(since_ms) {
        for (std::size_t i = 0; i < parts.size(); ++i)
            for (std::int32_t n = 0; n < (parts[i].files.outputs.empty() ? 0 : file.grains[i].count()); ++n)
                for (const auto &output : files_of_grain(file.grains[i], parts[i], file.grains[i].first + n).outputs)
                    made_.insert(whole_path("/", output.path));
    }

    void look(const std::string &directory, const std::string &name, const GrainEnds &ends) {
        const std::string path = whole_path(directory, name);
        struct stat st = {};
        if (name.empty() || ::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return;
        // Which a file also gets that is moved to its place.
        const std::int64_t written_ms = std::int64_t{st.st_ctim.tv_sec} * 1000 + st.st_ctim.tv_nsec / 1'000'000;
        if (written_ms <= since_ms_ || made_.contains(path)) return;
        Named &named = files_[path];
        named.name = name;
        named.written_ms = written_ms;
        named.by.add(ends);
    }

    bool changed_since_failure() const {
        return std::ranges::any_of(files_, [](const auto &of) { return of.second.written_ms > of.second.by.failed; });
    }

    // Of several one that no grain can have written comes first.
    std::string changed(const std::string &session) const {
        std::string by_grains;
        for (const auto &[path, named] : files_) {
            if (named.written_ms <= named.by.succeeded) continue;
            if (named.written_ms > named.by.last) return words_of_change(named.name, session, "");
            by_grains = words_of_change(named.name, session, "unless grains that name it wrote it, ");
        }
        return by_grains;
    }

private:
    struct Named {
        std::string name;
        std::int64_t written_ms = 0;
        GrainEnds by;
    };
    const std::int64_t since_ms_;
    std::set<std::string> made_;  // outputs, which are written again where they have changed
    std::map<std::string, Named> files_;
};

}  // namespace

JobChange changed_in_job(const Session &session, const std::string &directory, const JobFile &file,
                         const std::vector<JobPart> &parts, const std::string &programs) {
    const auto history = history_of(session);
    const std::string name = "session " + std::to_string(session.session);
    const bool same_programs = programs.empty();
    if (!history || (!history->whole && !same_programs))  // a version without a log began it
        return {same_programs ? "" : words_of_change(programs, name, ""), !same_programs};
    NamedFiles files(file, parts, history->from_ms);
    for (std::size_t table = 0; table < parts.size(); ++table) {
        const JobGrain &grain = file.grains[table];
        const JobPart &part = parts[table];
        const bool by_path = grain.command[0].find('/') == std::string::npos;
        const bool own_directory = part.files.any() || !part.files.image.empty();
        GrainEnds all;
        for (std::int32_t n = 0; n < grain.count(); ++n) all.add(ends_of(*history, grain.first + n));
        if (!by_path && !same_programs)  // none of them writes it
            files.look(part.directory, part.program, {.succeeded = all.started});
        const auto of_all = [&](const std::string &word) { return !grain.many || !has_placeholder(word); };
        for (std::int32_t n = 0; n < grain.count(); ++n) {
            const std::int32_t number = grain.first + n;
            const GrainEnds own = ends_of(*history, number);
            const std::vector<std::string> words = words_of_grain(grain, part, number);
            for (std::size_t i = 1; i < words.size(); ++i) {
                const bool shared = i < grain.command.size() && of_all(grain.command[i]);
                if (shared && (n > 0 || (i == 1 && by_path && same_programs))) continue;
                for (const std::string &name : {words[i], words[i].substr(words[i].find('=') + 1)})
                    if (!own_directory || name.starts_with('/')) files.look(part.directory, name, shared ? all : own);
            }
            const FileWords brought = files_of_grain(grain, part, number);
            for (std::size_t i = 0; i < brought.files.size(); ++i)
                if (const bool shared = of_all(part.files.files[i].path); !shared || n == 0)
                    files.look(directory, brought.files[i].path, shared ? all : own);
            if (n == 0) files.look(directory, brought.image, all);
        }
    }
    return {files.changed(name), !same_programs || files.changed_since_failure()};
}

}  // namespace dcs::commands
