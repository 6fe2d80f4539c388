#pragma once
namespace dcs::lock_command {

inline constexpr char help_text[] =
    R"(Runs a command that must not run twice at once, not too often, or not too long.

Usage: dcs_lock [OPTIONS] NAME [--] CMD...           wait for the lock, then run
       dcs_lock [OPTIONS] -a OPERATOR:OPERAND CMD... the same; the name in two parts
       dcs_lock [OPTIONS] -l NAME:N... CMD...        one place in each of several limits
       dcs_lock [-n|-w S] [-s] FD                    lock an open descriptor
       dcs_lock get|put OPERATOR OPERAND             lock and unlock within a script
       dcs_lock list|log|advise [NAME]               who holds, what happened, which limits fit
       dcs_lock check|wait|break NAME                is it free; until it is; end its holder
       dcs_lock doctor | pass [CMD...]               examine all locks; one `now` for a whole script

NAME is a word, or with a / a path. A verb of this list as NAME is written with -- before it.
)";

inline constexpr char help_end[] = R"(
Times are numbers with s, m, h or d.
Exit code: the command's own, 128 + the signal that ended it, or
  75 busy   79 too soon   77 may not end the holder   124 ended at its limit
  125 dcs_lock failed   126 cannot execute   127 not found
)";

}  // namespace dcs::lock_command
