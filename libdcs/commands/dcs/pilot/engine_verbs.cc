// The verbs of the engines: dcs pilot slurm, pbs, condor.
#include "commands/dcs/frame/call.h"
#include "control.h"

namespace dcs::commands {
namespace {

int pilot_slurm(const Call &call) { return pilot_work(call, *engine_kind("slurm")); }
int pilot_pbs(const Call &call) { return pilot_work(call, *engine_kind("pbs")); }
int pilot_condor(const Call &call) { return pilot_work(call, *engine_kind("condor")); }

}  // namespace

extern const Verb pilot_slurm_verb = {
    .noun = "pilot",
    .name = "slurm",
    .words = "[-- SBATCH-OPTION...]",
    .summary = "run grain servers as jobs of Slurm while grains wait",
    .about =
        R"(Submits jobs to Slurm whose grain servers serve the pool's hosts pilot1, pilot2 and so on, as many as the
waiting grains need. Run it where sbatch works, for example in tmux: while it runs, it submits the next job when one
has reached its limit. It may be killed at any time; the same command takes its jobs over. Grains continue in the next
job from their last checkpoints.

Examples:
  dcs up --local 0 --pilots 20 --pilot-slots 8 --listen 0.0.0.0:7001
  dcs pilot slurm --time 4h --max 20
  dcs pilot slurm --time 4h -- --partition=short --account=p17 --mem-per-cpu=2G
)",
    .options = pilot_options(),
    .notes = R"(Without grains it submits nothing, and cancels jobs that wait. After jobs that ran no grain, or that
Slurm refused, it pauses. See PILOTS.md.
)",
    .run = pilot_slurm,
    .formats = false};

extern const Verb pilot_pbs_verb = {
    .noun = "pilot",
    .name = "pbs",
    .words = "[-- QSUB-OPTION...]",
    .summary = "run grain servers as jobs of PBS or Torque while grains wait",
    .about = R"(As `dcs pilot slurm` for OpenPBS, PBS Professional and Torque: by their qsub, qselect, qstat and qdel.
A job asks for one host with as many cores as the pilot has slots, unless an option of yours has select= or nodes=.

Examples:
  dcs pilot pbs --time 4h --max 20
  dcs pilot pbs --time 4h -- -q short -l select=1:ncpus=8:mem=16gb
)",
    .options = pilot_options(),
    .notes = R"(Without grains it submits nothing, and cancels jobs that wait. See PILOTS.md.
)",
    .run = pilot_pbs,
    .formats = false};

extern const Verb pilot_condor_verb = {
    .noun = "pilot",
    .name = "condor",
    .words = "[-- CONDOR_SUBMIT-OPTION...]",
    .summary = "run grain servers as jobs of HTCondor while grains wait",
    .about = R"(As `dcs pilot slurm` for HTCondor: by condor_submit, condor_q and condor_rm. Jobs are of the vanilla
universe, and ask for as many CPUs as the pilot has slots.

Examples:
  dcs pilot condor --time 4h --max 20
  dcs pilot condor --time 4h -- -append 'request_memory = 16G'
)",
    .options = pilot_options(),
    .notes = R"(Without grains it submits nothing, and removes jobs that wait. See PILOTS.md.
)",
    .run = pilot_condor,
    .formats = false};

}  // namespace dcs::commands
