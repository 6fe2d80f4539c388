#include "call.h"
#include "base/version.h"
#include "option_table.h"
#include "say.h"

namespace dcs::lock_command {
namespace {

constexpr char help_text[] =
    R"(Runs a command that must not run twice at once, not too often, or not too long.

Usage: dcs_lock [OPTIONS] NAME [--] CMD...           wait for the lock, then run
       dcs_lock [OPTIONS] -a OPERATOR:OPERAND CMD... the same; the name in two parts
       dcs_lock [OPTIONS] -l NAME:N... CMD...        one place in each of several limits
       dcs_lock [-n|-w S] [-s] FD                    lock an open descriptor
       dcs_lock get|put OPERATOR OPERAND             lock and unlock within a script
       dcs_lock list|log|advise [NAME]               who holds, what happened, which limits fit
       dcs_lock check|wait|break NAME                is it free; until it is; end its holder
       dcs_lock doctor | pass [CMD...]               examine all locks; one `now` for a whole script

NAME is a word, for a lock of this user, or a path (with a /), for a lock of all who may write the file (--mode).
A NAME is one lock or a set of counted slots (-j, -l), not both. A verb as NAME is written with -- before it.
)";

constexpr char help_end[] = R"(
Times are numbers with s, m, h or d.
Exit code: the command's own, 128 + the signal that ended it, or
  75 busy   79 too soon   77 may not end the holder   124 ended at its limit
  125 dcs_lock failed   126 cannot execute   127 not found
)";

}  // namespace

int run_lock_command(const locks::World &world, const std::vector<std::string> &line) {
    Options options;
    if (line.empty()) {
        complain("the NAME of a lock is missing; `dcs_lock --help` shows the forms");
        return exits::failed;
    }
    if (const Status status = parse(line, options); !status) return tell(options, failed("", status));
    switch (options.verb) {
    case Verb::run: return run_command(world, options);
    case Verb::descriptor: return lock_descriptor(options);
    case Verb::get: return get_lock(world, options);
    case Verb::put: return put_lock(world, options);
    case Verb::list: return list_locks(world, options);
    case Verb::check: return check_lock(world, options);
    case Verb::wait: return wait_for_lock(world, options);
    case Verb::breaking: return break_lock(world, options);
    case Verb::log: return print_log(options);
    case Verb::advise: return advise(world, options);
    case Verb::doctor: return examine_locks(world, options);
    case Verb::pass: return begin_pass(world, options);
    case Verb::version: print("dcs_lock (DCS) " DCS_VERSION "\n"); return exits::ok;
    case Verb::help: print(std::string(help_text) + "\n" + option_list(option_rows()) + help_end); return exits::ok;
    }
    return exits::failed;
}

}  // namespace dcs::lock_command
