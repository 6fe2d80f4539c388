#include "sim/grain_model.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "grainserver/core/checkpoint_file.h"

namespace dcs::sim {
namespace {

std::string hex(std::uint64_t n) {
    char text[24];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(n));
    return text;
}

constexpr int ahead = 37;  // bytes

}  // namespace

std::string to_text(const Model &m) {
    std::string text = std::to_string(m.seed);
    const std::int64_t numbers[] = {
        m.steps,   m.step_us,   m.own_checkpoint_every, m.announces,     m.deaf,         m.reads_ahead,
        m.fail_at, m.fail_code, m.fail_signal,          m.read_per_step, m.out_per_step, m.stubborn};
    for (const std::int64_t n : numbers) text += " " + std::to_string(n);
    return text;
}

Model model_of(const std::string &text) {
    Model m;
    const char *at = text.c_str();
    char *end = nullptr;
    m.seed = std::strtoull(at, &end, 10);
    const auto next = [&] { return std::strtoll(end, &end, 10); };
    m.steps = static_cast<int>(next());
    m.step_us = next();
    m.own_checkpoint_every = static_cast<int>(next());
    m.announces = next() != 0;
    m.deaf = next() != 0;
    m.reads_ahead = next() != 0;
    m.fail_at = static_cast<int>(next());
    m.fail_code = static_cast<int>(next());
    m.fail_signal = static_cast<int>(next());
    m.read_per_step = static_cast<int>(next());
    m.out_per_step = static_cast<int>(next());
    m.stubborn = next() != 0;
    return m;
}

// Some data is left unread at the end.
std::string input_of(const Model &m) {
    std::string input = "begin\n";
    const int length = m.steps * m.read_per_step + (m.read_per_step > 0 ? 5 : 0);
    std::uint64_t n = m.seed;
    for (int i = 0; i < length; ++i) {
        if (i % 8 == 0) n = mix(n, static_cast<std::uint64_t>(i));
        input += static_cast<char>(n >> (i % 8 * 8));
    }
    return input;
}

Run begin(const Model &m, std::string_view input) {
    Run run;
    run.hash = mix(m.seed, "begin");
    const std::size_t end = input.find('\n');
    const std::string line(input.substr(0, end));
    unsigned long long hash = 0;
    if (end == std::string_view::npos) {
        run.broken = true;
    } else if (line != "begin") {
        run.broken = std::sscanf(line.c_str(), "at %d %llx", &run.step, &hash) != 2;
        run.hash = hash;
    }
    run.at = end == std::string_view::npos ? 0 : end + 1;
    return run;
}

void advance(const Model &m, std::string_view input, Run &run, std::string &out, std::string &err) {
    const std::string_view read =
        input.substr(std::min(run.at, input.size()), static_cast<std::size_t>(m.read_per_step));
    run.at += read.size();
    for (const char c : read) run.hash = run.hash * 0x100000001B3ull + static_cast<unsigned char>(c);
    run.hash = mix(run.hash, static_cast<std::uint64_t>(run.step));
    if (m.out_per_step > 0) {
        std::size_t length = run.hash % (2 * static_cast<std::size_t>(m.out_per_step) + 1);
        const std::string word = std::to_string(run.step) + ":" + hex(run.hash) + "\n";
        for (; length >= word.size(); length -= word.size()) out += word;
        out.append(word, 0, length);
    }
    if (run.step % 7 == 3) err += "e" + std::to_string(run.step) + hex(run.hash).substr(0, 4) + "\n";
    ++run.step;
}

Mark mark(const Model &m, std::string_view input, const Run &run) {
    Mark mark;
    mark.state = "at " + std::to_string(run.step) + " " + hex(run.hash) + "\n";
    std::size_t offset = run.at;
    if (m.reads_ahead) {
        const std::string_view more = input.substr(std::min(offset, input.size()), ahead);
        mark.state += more;
        offset += more.size();
    }
    mark.input_offset = offset;
    if (run.step % 3 != 0) mark.message = "step " + std::to_string(run.step);
    return mark;
}

std::string checkpoint_file(const Mark &mark, std::int64_t cpu_us) {
    char sum[16];
    std::snprintf(sum, sizeof sum, "%08X", server::crc32_ieee(mark.state));
    return "dcs-checkpoint 1\ninput_offset " + std::to_string(mark.input_offset) + "\nusage_us " +
           std::to_string(cpu_us) + " 0\nmessage " + std::to_string(mark.message.size()) + "\n\n" + mark.message +
           "\n" + mark.state + "dcs-end " + std::to_string(mark.state.size()) + " " + sum + "\n";
}

Written written_after(const Model &m, int steps) {
    Written w;
    const std::string input = input_of(m);
    Run run = begin(m, input);
    while (run.step < steps) advance(m, input, run, w.out, w.err);
    return w;
}

Model draw_model(Random &r, Duration cpu_max, bool may_fail) {
    Model m;
    m.seed = r.next() >> 1;
    m.steps = static_cast<int>(spread(r, 1, 60));
    const std::int64_t cpu_us = spread(r, 200'000, std::max<std::int64_t>(cpu_max.ns / 1000, 400'000));
    m.step_us = std::max<std::int64_t>(cpu_us / m.steps, 1);
    m.announces = r.chance(65);
    m.deaf = m.announces && r.chance(12);
    if (m.announces && r.chance(30)) m.own_checkpoint_every = static_cast<int>(between(r, 1, 20));
    m.reads_ahead = r.chance(40);
    m.read_per_step = r.chance(60) ? static_cast<int>(spread(r, 1, 64)) : 0;
    m.out_per_step = static_cast<int>(spread(r, 1, r.chance(5) ? 3000 : 200));
    m.stubborn = r.chance(10);
    if (may_fail && r.chance(8)) {
        m.fail_at = static_cast<int>(between(r, 0, m.steps));
        if (r.chance(50)) m.fail_code = static_cast<int>(between(r, 1, 8));  // 9 is what bad hosts do
        else m.fail_signal = r.chance(50) ? 11 : 6;
    }
    return m;
}

}  // namespace dcs::sim
