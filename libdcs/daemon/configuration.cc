#include "daemon/configuration.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/program_start.h"
#include "base/files.h"
#include "base/require.h"
#include "base/text.h"
#include "daemon/log.h"

namespace dcs {
namespace {

constexpr const char *configurations = "/etc/dcs/";

// dcs_scheduler has scheduler.toml.
std::string default_file(const std::string &program) {
    return configurations + program.substr(program.find('_') + 1) + ".toml";
}

[[noreturn]] void print_and_exit(const ParsedOptions &parsed) {
    std::fputs(parsed.out.c_str(), stdout);
    std::fputs(parsed.error.c_str(), stderr);
    // A help text that did not get out is a failure, too.
    std::exit(std::fflush(stdout) == 0 ? parsed.exit_code : 1);
}

// To start again would change nothing, so this is no exit code that a service manager repeats.
[[noreturn]] void print_wrong_files(const std::string &program, const std::vector<std::string> &why) {
    ParsedOptions said{.exit_code = 2};
    for (const std::string &error : why) said.error += program + ": " + escape_text(error) + "\n";
    print_and_exit(said);
}

[[noreturn]] void print_check(const std::vector<std::string> &why, const ConfigRecord &record) {
    ParsedOptions said{.exit_code = why.empty() ? 0 : 1};
    for (const std::string &error : why) said.error += escape_text(error) + "\n";
    if (why.empty()) said.out = to_text(record);
    print_and_exit(said);
}

}  // namespace

bool Configuration::Change::has(const char *name) const {
    return std::find(taken.begin(), taken.end(), name) != taken.end();
}

Configuration Configuration::take(const CommandLine &line, int argc, char **argv) {
    clean_start();
    Configuration c;
    c.program_ = line.program;
    c.arguments_.assign(argv + std::min(argc, 1), argv + argc);
    for (const Option &option : line.options) c.can_change_.push_back(option.where == Where::reload);
    const ConfigWords words = config_words(line, c.arguments_);
    c.file_ = words.file.value_or(default_file(c.program_));
    std::vector<std::string> why;
    std::vector<FileValue> values;
    const bool tables = c.arguments_.size() == 1 && c.arguments_[0] == "__tables";
    if (c.file_ != no_config && !words.asks && !tables) {
        const auto texts = read_config_files(c.file_, why);
        if (texts.empty() && why.empty() && words.file)
            why.push_back(c.file_ + ": there is no such file, and no " + c.file_ + ".d/*.toml");
        values = parse_config(line, texts, why);
    }
    if (!why.empty() && !words.check) print_and_exit(usage_error(line, why));
    const ParsedOptions parsed = parse_options(line, c.arguments_, values, words.check);
    if (!words.check && !parsed.proceed) print_and_exit(parsed);
    const bool look = why.empty() && parsed.proceed && parsed.complete;
    if (look && line.check_files)
        for (std::string &error : line.check_files())
            why.push_back(error.starts_with("--") ? with_places(line, parsed.settings, std::move(error)) : error);
    if (words.check && !words.asks) {
        const bool placed = c.file_ == no_config || parsed.wrong.starts_with(c.file_);
        if (!parsed.proceed) why.push_back((placed ? "" : c.file_ + ": ") + parsed.wrong);
        ConfigRecord record{parsed.settings, {}, "", {}};
        if (look && why.empty() && line.warn_of_files)
            for (std::string &warning : line.warn_of_files())
                record.warnings.push_back(with_places(line, parsed.settings, std::move(warning)));
        print_check(why, record);
    }
    if (!parsed.proceed) print_and_exit(parsed);
    if (!why.empty()) print_wrong_files(line.program, why);
    c.record_.settings = parsed.settings;
    return c;
}

Status Configuration::open(const std::string &directory) {
    const std::string path = directory + "/" + configuration_name;
    fd_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!fd_ || ::fchmod(fd_.get(), 0644) != 0) return fail_errno(Code::io_error, path, errno);
    note();
    if (file_ == no_config) return Status::ok();
    auto reader = ConfigReader::start(program_, file_);
    if (!reader) return reader.status();
    reader_ = std::move(*reader);
    return Status::ok();
}

Result<Configuration::Change> Configuration::read(const CommandLine &fresh) {
    std::vector<std::string> why;
    std::vector<FileValue> values;
    if (reader_ != nullptr) {
        const auto texts = reader_->read(why);
        if (!texts) return texts.status();
        values = parse_config(fresh, *texts, why);
    }
    const ParsedOptions parsed = parse_options(fresh, arguments_, values, !why.empty());
    if (!parsed.proceed) why.push_back(parsed.wrong);
    if (!why.empty()) return fail(Code::invalid, joined(why, "; "));
    Change change{parsed.settings, {}};
    DCS_REQUIRE(change.settings.size() == record_.settings.size(), "a fresh line has the options of the first one");
    for (std::size_t i = 0; i < change.settings.size(); ++i)
        if (can_change_[i] && change.settings[i].value != record_.settings[i].value)
            change.taken.push_back(change.settings[i].name);
    return change;
}

void Configuration::take(const Change &change) {
    std::vector<std::string> waiting;
    record_.after_restart.clear();
    record_.refused.clear();
    for (std::size_t i = 0; i < change.settings.size(); ++i) {
        const Setting &now = change.settings[i];
        if (can_change_[i] || now.value == record_.settings[i].value) {
            record_.settings[i] = now;
            continue;
        }
        record_.after_restart.push_back(now);
        waiting.push_back(now.name + " (" + now.origin + ")");
    }
    note();
    if (!change.taken.empty()) log_info("configuration reread; changed: " + joined(change.taken, ", "));
    if (!waiting.empty())
        log_warn("configuration reread; these changes take effect only after a restart: " + joined(waiting, ", "));
}

void Configuration::refuse(const std::string &stays, const Status &why) {
    record_.refused = why.text;
    note();
    log_error(stays + ": " + why.text);
}

// Not durable: it is about the process that runs. A reader that finds no "end" has come in between.
void Configuration::note() {
    if (!fd_) return;
    const std::string text = to_text(record_);
    if (::ftruncate(fd_.get(), 0) != 0 || !pwrite_all(fd_.get(), text, 0))
        log_warn(fail_errno(Code::io_error, "the record of the configuration cannot be written", errno).text);
}

}  // namespace dcs
