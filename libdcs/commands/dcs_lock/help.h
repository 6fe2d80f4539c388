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

  -n                 refuse at once when busy           -w S       wait at most S seconds
  -q                 wait in order of arrival           -s         share with others that ask so
  -j N|N%|@FILE      at most N at a time                -l NAME:N  idem, several; %u is the user's number
  -i T|auto          not again before T minutes have elapsed since the last run (then no waiting)
  -e T|auto|never    a holder older than T minutes is ended with care, also this command
  -a OPERATOR:OPERAND                                   -E N       exit code when busy, instead of 75
  -x                 exit 0 when busy                   -v         say what happens
  --since=end|start  what -i counts from                --report FD    the outcome as JSON, to FD
  --keep=both|leader|tree|exec|fd   who keeps the lock  --fail-open    run even if locking fails
  --grace=I,T,K      wait after INT, TERM, KILL         --max-kills=N  takeovers in a row within an hour
  --max-expire=T     upper bound of -e auto             --mode=0660    of a new lock file
  --paper            minutes as in the paper of 1997    -o json        results and errors as JSON

Times are numbers with s, m, h or d.
Exit code: the command's own, 128 + the signal that ended it, or
  75 busy   79 too soon   77 may not end the holder   124 ended at its limit
  125 dcs_lock failed   126 cannot execute   127 not found
)";

}  // namespace dcs::lock_command
