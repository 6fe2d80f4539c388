// Text scenarios: tests/scenarios/*.txt. Each block is commands, a line `----`, and what followed,
// up to an empty line. `#` begins a comment. DCS_REWRITE=1 writes the outcome into the files.
#include <dirent.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "places.h"
#include "pool.h"

using namespace dcs;
using namespace dcs::core;

namespace {

// One command line: words, and options as name=value.
struct Words {
    std::vector<std::string> plain;
    std::map<std::string, std::string> options;

    explicit Words(const std::string &line) {
        std::istringstream in(line);
        for (std::string word; in >> word;) {
            const auto eq = word.find('=');
            if (eq == std::string::npos) plain.push_back(word);
            else options[word.substr(0, eq)] = word.substr(eq + 1);
        }
    }
    std::string at(std::size_t i) const { return i < plain.size() ? plain[i] : ""; }
    bool has(const std::string &word) const { return std::count(plain.begin(), plain.end(), word) > 0; }
    std::string text(const std::string &name, const std::string &otherwise = "") const {
        const auto it = options.find(name);
        return it == options.end() ? otherwise : it->second;
    }
    long number(const std::string &name, long otherwise) const {
        return std::stol(text(name, std::to_string(otherwise)), nullptr, 0);
    }
};

class Runner {
public:
    // What the command led to: effects, and lasting changes of grains.
    std::string run(const std::string &line) {
        const Words w(line);
        pool_.events.clear();
        const Lines effects = command(w);
        std::string out;
        for (const std::string &event : pool_.events) out += "* " + event + "\n";
        for (const std::string &effect : effects) out += effect + "\n";
        return out;
    }

private:
    Lines command(const Words &w) {
        const std::string verb = w.at(0);
        if (verb == "host") return host(w);
        if (verb == "table") return pool_.table();
        if (verb == "call") return first_call(w);
        if (verb == "call-in" && !w.text("shut").empty()) return shut(w);
        if (verb == "call-in") return pool_.call_in(w.at(1), w.number("memory", 1 << 20));
        if (verb == "boundary") return pool_.boundary(w.at(1));
        if (verb == "staged") return pool_.staged(w.at(1), w.at(2));
        if (verb == "no-room") return pool_.launched(w.at(1), w.at(2), Code::limit);
        if (verb == "probed") return pool_.probed(w.at(1), yes(w, "check"), yes(w, "file_server"), yes(w, "gateway"));
        if (verb == "rules") return rules(w);
        if (verb == "set") return set(w);
        if (verb == "restart") return pool_.restart(pool_.stranger("root", true), w.at(1));
        if (verb == "explain") return explain(w);
        if (verb == "hang-up") return pool_.hang_up(w.at(1));
        if (verb == "wait") return pool_.wait(seconds(std::stol(w.at(1))));
        if (verb == "launched") return pool_.launched(w.at(1), w.at(2));
        if (verb == "not-found") return pool_.launched(w.at(1), w.at(2), Code::not_found);
        if (verb == "report") return report(w);
        if (verb == "show") return show(w);
        if (verb == "program") return program(w);
        return user_command(w);
    }
    Lines host(const Words &w) {
        HostConfig &c = pool_.add_host(w.at(1), static_cast<std::uint32_t>(w.number("class", 1)),
                                       static_cast<int>(w.number("slots", 1)));
        c.users = list(w, "users");
        c.check = list(w, "check");
        c.file_server = list(w, "file_server");
        c.gateway = list(w, "gateway");
        c.cores = static_cast<int>(w.number("cores", 0));
        c.memory_mb = static_cast<int>(w.number("memory", 0));
        return {};
    }
    static std::vector<std::string> list(const Words &w, const std::string &name) {
        std::vector<std::string> items;
        std::istringstream in(w.text(name));
        for (std::string item; std::getline(in, item, ',');) items.push_back(item);
        return items;
    }
    static std::optional<bool> yes(const Words &w, const std::string &name) {
        const std::string text = w.text(name);
        return text.empty() ? std::optional<bool>() : text == "yes";
    }
    Lines shut(const Words &w) {
        const std::string &host = w.at(1);
        const wire::CallIn call{1.0, w.number("memory", 1 << 20), w.has("boundary"), w.text("shut")};
        return pool_.feed(ServerCallIn{pool_.conn(host), pool_.id(host), call});
    }
    Lines rules(const Words &w) {
        Policy p;
        p.fair_share = w.has("fair");
        p.sessions_per_user = static_cast<int>(w.number("sessions", 0));
        p.grains_per_user = static_cast<int>(w.number("grains", 0));
        p.running_per_user = static_cast<int>(w.number("running", 0));
        p.probation = static_cast<int>(w.number("probation", 0));
        p.users = list(w, "users");
        return pool_.rules(p);
    }
    Lines set(const Words &w) {
        wire::SetHost s;
        s.host = w.at(1);
        s.slots = static_cast<int>(w.number("slots", -1));
        s.drained = static_cast<int>(w.number("drained", -1));
        s.host_class = static_cast<std::uint32_t>(w.number("class", 0));
        s.interval_s = static_cast<double>(w.number("interval", -1));
        s.alert_s = static_cast<double>(w.number("alert", -1));
        s.limit_s = static_cast<double>(w.number("limit", -1));
        s.extended_s = static_cast<double>(w.number("extended", -1));
        s.reset = w.has("reset");
        s.clear_nogo = w.has("clear-nogo");
        if (!w.text("grain").empty()) {
            const GrainKey key = Pool::key(w.text("grain"));
            s.user = key.session.user;
            s.session = key.session.number;
            s.grain = key.grain;
        }
        return pool_.set(pool_.stranger(w.text("by", "root"), w.text("by", "root") == "root"), s);
    }
    Lines explain(const Words &w) {
        const wire::Explanation e = pool_.explain(w.at(1));
        Lines lines{w.at(1) + " " + e.state + ": " + e.summary};
        for (const wire::WhyRow &row : e.reasons) {
            std::string line = "  " + row.reason;
            for (const std::string &name : row.names) line += " " + name;
            lines.push_back(line);
        }
        return lines;
    }
    Lines first_call(const Words &w) {
        std::vector<Pool::Held> held;
        for (std::size_t i = 2; i + 1 < w.plain.size(); i += 2)
            held.push_back({w.plain[i], static_cast<Incarnation>(std::stoul(w.plain[i + 1])), w.number("cpu", 0)});
        return pool_.first_call(w.at(1), held);
    }
    Lines report(const Words &w) {
        wire::GrainReport r = pool_.report(w.at(2));
        r.incarnation = static_cast<Incarnation>(w.number("inc", r.incarnation));
        r.first_seq = static_cast<std::uint32_t>(w.number("first", r.first_seq));
        r.last_seq = static_cast<std::uint32_t>(w.number("last", r.first_seq));
        r.out = w.text("out");
        r.checkpoint = w.text("checkpoint");
        r.has_checkpoint = w.options.count("checkpoint") != 0;
        r.input_position = static_cast<std::uint64_t>(w.number("input", 0));
        r.ended = w.has("ended");
        r.innocent = w.has("innocent");
        if (w.has("shut-out")) r.given_back = wire::GivenBack::shut_out;
        if (w.has("thrashing")) r.given_back = wire::GivenBack::thrashing;
        r.exit_code = static_cast<int>(w.number("code", 0));
        r.signal = static_cast<int>(w.number("signal", 0));
        r.usage.user_us = w.number("cpu", 0);
        r.reason = w.text("reason");
        return pool_.send(w.at(1), r);
    }
    Lines show(const Words &w) {
        if (w.at(1).find(':') != std::string::npos) return {w.at(1) + " " + describe(pool_.state, pool_.at(w.at(1)))};
        if (w.at(1).find('/') != std::string::npos) return {w.at(1) + " " + describe(pool_.session(w.at(1)).info)};
        return {describe(*pool_.state.host(pool_.id(w.at(1))))};
    }
    Lines program(const Words &w) {
        programs_[w.at(1)] = pool_.begin(w.at(2), w.at(3));
        return {};
    }
    Lines user_command(const Words &w) {
        const auto known = programs_.find(w.at(0));
        if (known == programs_.end()) throw std::runtime_error("unknown command: " + w.at(0));
        const Program &p = known->second;
        const std::string verb = w.at(1);
        const int session = std::stoi(w.at(2));
        if (verb == "open") return pool_.open(p, session);
        if (verb == "resume") return pool_.open(p, session, wire::OpenMode::resume, w.has("sent_reset"));
        if (verb == "reopen") return pool_.open(p, session, wire::OpenMode::reopen, w.has("sent_reset"));
        if (verb == "close") return pool_.close(p, session);
        if (verb == "clean") return pool_.call(p, wire::CleanSession{"", session});
        const int number = std::stoi(w.at(3));
        if (verb == "gwait") return pool_.gwait(p, session, number, w.has("block"));
        if (verb == "gkill") return pool_.gkill(p, session, number);
        if (verb != "gexec") throw std::runtime_error("unknown call: " + verb);
        Lines all;
        for (int n = number; n <= static_cast<int>(w.number("to", number)); ++n) {
            SubmitGrain g =
                Pool::grain(session, n, static_cast<std::uint32_t>(w.number("class", 0)), w.text("spec", "spec"));
            g.demands.urgent = w.has("urgent");
            g.demands.thrash = static_cast<int>(w.number("thrash", 0));
            g.demands.attempts = static_cast<int>(w.number("attempts", 3));
            g.demands.notice = static_cast<int>(w.number("notice", 0));
            g.program = static_cast<std::uint32_t>(w.number("program", 0));
            g.demands.cores = static_cast<int>(w.number("cores", 0));
            g.demands.memory_mb = static_cast<int>(w.number("memory", 0));
            g.demands.wall_s = static_cast<int>(w.number("wall", 0));
            const Lines some = pool_.call(p, g);
            all.insert(all.end(), some.begin(), some.end());
        }
        return all;
    }

    Pool pool_;
    std::map<std::string, Program> programs_;
};

// The file as it should read: commands as they stand, outcomes as they came.
std::string replay(const std::string &text) {
    Runner runner;
    std::istringstream in(text);
    std::string out, outcome;
    bool skipping = false;  // the old outcome
    for (std::string line; std::getline(in, line);) {
        if (skipping && !line.empty()) continue;
        if (line == "----") {
            out += line + "\n" + outcome;
            outcome.clear();
            skipping = true;
            continue;
        }
        if (line.empty()) skipping = false;
        else if (line[0] != '#') outcome += runner.run(line);
        out += line + "\n";
    }
    return out;
}

std::vector<std::string> scenario_files() {
    std::vector<std::string> files;
    const std::string folder = std::string(DCS_SOURCE_DIR) + "/tests/scenarios";
    DIR *dir = opendir(folder.c_str());
    while (const dirent *entry = dir ? readdir(dir) : nullptr) {
        const std::string name = entry->d_name;
        if (name.size() > 4 && name.substr(name.size() - 4) == ".txt") files.push_back(folder + "/" + name);
    }
    if (dir) closedir(dir);
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace

TEST_CASE("scenarios") {
    const std::vector<std::string> files = scenario_files();
    REQUIRE(files.size() >= 8);
    for (const std::string &file : files) {
        std::ifstream in(file);
        const std::string text((std::istreambuf_iterator<char>(in)), {});
        CAPTURE(file);
        const std::string now = replay(text);
        if (std::getenv("DCS_REWRITE")) std::ofstream(file) << now;
        else CHECK(now == text);
    }
}
