// PBS by its commands qsub, qselect, qstat and qdel: OpenPBS, PBS Professional, and Torque.
//
// `qstat -f` prints the same form in all of them. Not -F json: Torque has none, and that of OpenPBS is no JSON where an
// environment variable of the job has certain characters.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <pwd.h>
#include <unistd.h>

#include "base/option_table.h"
#include "base/text.h"
#include "commands/dcs/frame/pool_directory.h"
#include "commands/dcs/pool/start_daemon.h"
#include "engine.h"

namespace dcs::commands {
namespace {

enum class Make { unknown, professional, torque };
constexpr double reported_within_s = 180;  // a host says every two minutes what a job has used

Result<std::string> pbs_says(const std::string &program, const std::vector<std::string> &arguments) {
    return engine_says("PBS", program, arguments);
}

// A job may end between two commands.
bool job_is_gone(const Status &s) {
    return s.text.find("Unknown Job Id") != std::string::npos || s.text.find("has finished") != std::string::npos;
}

std::string login_here() {
    const passwd *entry = ::getpwuid(::geteuid());
    return entry != nullptr ? entry->pw_name : std::to_string(::geteuid());
}

std::string host_of(const EngineJob &job) { return job.name.substr(job.name.rfind('-') + 1); }

// "Thu Nov 26 00:58:03 2026" of this host's time zone; -1 for another text.
std::time_t time_of_pbs(const std::string &text) {
    std::tm parts = {};
    parts.tm_isdst = -1;
    const char *end = ::strptime(text.c_str(), "%a %b %d %H:%M:%S %Y", &parts);
    return end == nullptr || *end != '\0' ? -1 : std::mktime(&parts);
}

std::string state_of_letter(const std::string &letter) {
    static constexpr struct {
        const char *letter, *word;
    } words[] = {{"Q", "QUEUED"},  {"R", "RUNNING"},    {"H", "HELD"},      {"E", "EXITING"},
                 {"W", "WAITING"}, {"T", "IN TRANSIT"}, {"S", "SUSPENDED"}, {"U", "SUSPENDED"}};
    for (const auto &known : words)
        if (letter == known.letter) return known.word;
    return letter;
}

// What `qstat -f` says of one job.
struct Told {
    EngineJob job;
    std::string letter, limit, used, started;

    void add(std::string_view key, const std::string &value) {
        if (key == "Job_Name") job.name = value;
        else if (key == "job_state") letter = value;
        else if (key == "comment") job.reason = value;
        else if (key == "exec_host") job.node = value.substr(0, value.find('/'));
        else if (key == "Resource_List.walltime") limit = value;
        else if (key == "resources_used.walltime") used = value;
        else if (key == "stime" || key == "start_time") started = value;  // of OpenPBS, of Torque
    }

    EngineJob finished(std::time_t now) const {
        EngineJob of = job;
        of.state = state_of_letter(letter);
        of.held = letter == "H";
        of.waits = of.held || letter == "Q" || letter == "W" || letter == "T";
        of.over = letter == "E";
        if (!of.waits) of.reason.clear();
        if (of.waits) return of;
        const double reported = seconds_of_text(used).value_or(0);
        const std::time_t since = time_of_pbs(started);
        of.used_s =
            since < 0 ? reported : std::clamp(static_cast<double>(now - since), reported, reported + reported_within_s);
        if (const auto whole = seconds_of_text(limit)) of.left_s = std::max(0.0, *whole - of.used_s);
        return of;
    }
    bool is_there() const { return !letter.empty() && letter != "C" && letter != "F" && letter != "X"; }
};

class Pbs : public Engine {
public:
    explicit Pbs(std::string directory) : directory_(std::move(directory)) {}

    Status usable() override {
        const auto ran = run_program("qstat", {"--version"}, "", engine_patience_s);
        if (!ran) return pbs_says("qstat", {"--version"}).status();
        if (ran->output.find("pbs_version") != std::string::npos) make_ = Make::professional;
        else if ((ran->output + ran->errors).find("ersion: ") != std::string::npos) make_ = Make::torque;
        if (make_ != Make::unknown) return Status::ok();
        return fail(Code::refused,
                    "qstat in PATH is not that of PBS or Torque, but perhaps that of Grid Engine or of "
                    "DCS: put those of PBS before it");
    }

    std::string own_option_in(const std::vector<std::string> &options) const override {
        for (const std::string &word : options)
            for (std::string_view part : words_of(word, ","))
                for (const char *own : {"walltime=", "min_walltime=", "max_walltime="})
                    if (part.starts_with(own) || part.starts_with(std::string("-l") + own)) return "-l walltime";
        return option_among({"-N", "-o", "-e", "-j", "-J", "-t", "-S", "-I", "-z", "--"}, options);
    }

    Result<std::vector<EngineJob>> list(const std::string &prefix) override {
        const auto ids = pbs_says("qselect", {"-u", login_here()});
        if (!ids) return ids.status();
        std::vector<std::string> line = {"-f"};
        for (std::string_view id : words_of(*ids, " \t\r\n")) line.emplace_back(id);
        std::vector<EngineJob> jobs;
        if (line.size() == 1) return jobs;
        const auto ran = run_program("qstat", line, "",
                                     engine_patience_s);  // it fails if one of these has ended, and lists the others
        if (!ran) return ran.status();
        if (ran->exit_code != 0 && !job_is_gone(fail(Code::refused, ran->errors)))
            return fail(Code::refused, "qstat -f: " + ran->errors);
        for (EngineJob &job : jobs_of_qstat(ran->output, std::time(nullptr)))
            if (job.name.starts_with(prefix)) jobs.push_back(std::move(job));
        return jobs;
    }

    Result<std::string> submit(const JobOrder &order) override {
        if (make_ == Make::unknown)
            if (Status s = usable(); !s) return s;
        // Neither the user's shell nor its files decide what the job does; a job without a pilot is no news for mail.
        std::vector<std::string> line = {"-N", order.name, "-S", "/bin/sh",
                                         "-j", "oe",       "-o", order.log + ".pbs",
                                         "-m", "n",        "-l", "walltime=" + pbs_time(order.limit_s)};
        if (!names_hosts(order.options)) {
            line.emplace_back("-l");
            line.push_back((make_ == Make::torque ? "nodes=1:ppn=" : "select=1:ncpus=") + std::to_string(order.cores));
        }
        line.insert(line.end(), order.options.begin(), order.options.end());
        line.push_back(order.script);
        const auto said = pbs_says("qsub", line);
        return said ? job_of_qsub(*said) : said.status();
    }

    // Not by qsig: the shell that PBS starts the script from gets the signal too, and when it dies, PBS kills the rest.
    Status ask_to_end(const EngineJob &job) override {
        return write_file(directory_ + "/" + host_of(job) + "/end", job.id + "\n");
    }

    Status cancel(const EngineJob &job) override {
        const auto said = pbs_says("qdel", {job.id});
        return said || job_is_gone(said.status()) ? Status::ok() : said.status();
    }

private:
    // The user's own chunk replaces ours: PBS takes memory, say, only within it.
    static bool names_hosts(const std::vector<std::string> &options) {
        return std::any_of(options.begin(), options.end(), [](const std::string &word) {
            const std::string_view text = std::string_view(word).substr(word.starts_with("-l") ? 2 : 0);
            return text.starts_with("select=") || text.starts_with("nodes=");
        });
    }

    const std::string directory_;
    Make make_ = Make::unknown;
};

}  // namespace

std::unique_ptr<Engine> pbs(const std::string &directory) { return std::make_unique<Pbs>(directory); }

std::vector<EngineJob> jobs_of_qstat(std::string_view text, std::time_t now) {
    std::vector<EngineJob> jobs;
    Told told;
    std::string key, value;
    const auto end_attribute = [&] {
        told.add(key, value);
        key.clear();
    };
    const auto end_job = [&] {
        end_attribute();
        if (told.is_there()) jobs.push_back(told.finished(now));
        told = {};
    };
    while (!text.empty()) {
        std::string_view line = take_line(text);
        const std::string_view begins = "Job Id: ", indented = "    ";
        if (line.starts_with('\t')) {
            value += line.substr(1);  // a long value goes on
        } else if (line.starts_with(begins)) {
            end_job();
            told.job.id = line.substr(begins.size());
        } else if (line.starts_with(indented)) {
            end_attribute();
            const std::size_t sign = line.find(" = ");
            if (sign == std::string_view::npos) continue;
            key = line.substr(indented.size(), sign - indented.size());
            value = line.substr(sign + 3);
        }
    }
    end_job();
    return jobs;
}

std::string pbs_time(double seconds) {
    const auto whole = static_cast<long>(std::ceil(seconds));
    const auto two = [](long n) { return (n < 10 ? "0" : "") + std::to_string(n); };
    return two(whole / 3600) + ":" + two(whole / 60 % 60) + ":" + two(whole % 60);
}

}  // namespace dcs::commands
