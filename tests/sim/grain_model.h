#pragma once
// Programs of the simulated pools. What such a program has written after so many steps is a function of
// its description and of the input bytes that it has read, however often it was moved in between: so
// the joined output of a grain has one right value, known beforehand.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/instant.h"
#include "sim/random.h"

namespace dcs::sim {

inline constexpr int exit_bad_host = 9;  // what a grain ends with on a host that fails all of them

struct Model {
    std::uint64_t seed = 0;
    int steps = 1;
    std::int64_t step_us = 1000;   // CPU time of one
    int own_checkpoint_every = 0;  // steps; 0: only when asked
    bool announces = false;        // takes checkpoints at all
    bool deaf = false;             // announces itself, but ignores the signal
    bool reads_ahead = false;      // has read more of its input than it used
    int fail_at = -1;              // ends there with a code or a signal, every time
    int fail_code = 0, fail_signal = 0;
    int read_per_step = 0, out_per_step = 0;
    bool stubborn = false;  // ignores TERM

    std::int64_t cpu_us() const { return std::int64_t{fail_at >= 0 ? fail_at : steps} * step_us; }
};

std::string to_text(const Model &model);  // argv[1] of the grain
Model model_of(const std::string &text);
// The original input: one line that says where to begin, then data.
std::string input_of(const Model &model);

// A run of it: an input, from a beginning or a checkpoint, and a place.
struct Run {
    int step = 0;
    std::uint64_t hash = 0;
    std::size_t at = 0;   // of this run's input: used so far
    bool broken = false;  // the input's first line makes no sense
};
Run begin(const Model &model, std::string_view input);
// One step: output and errors are appended.
void advance(const Model &model, std::string_view input, Run &run, std::string &out, std::string &err);

struct Mark {
    std::string state, message;
    std::uint64_t input_offset = 0;
};
Mark mark(const Model &model, std::string_view input, const Run &run);
// The whole file as docs/GRAIN_PROTOCOL.md describes it.
std::string checkpoint_file(const Mark &mark, std::int64_t cpu_us);

// What an undisturbed run of `steps` steps writes.
struct Written {
    std::string out, err;
};
Written written_after(const Model &model, int steps);

Model draw_model(Random &r, Duration cpu_max, bool may_fail);

}  // namespace dcs::sim
