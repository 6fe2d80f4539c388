#include "sim/program.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/resources.h"
#include "pki/digest.h"

namespace dcs::sim {

std::vector<GrainNumber> submitted_by(const wire::AnyMessage &call) {
    if (const auto *submit = std::get_if<wire::Gexec>(&call)) return {submit->grain};
    std::vector<GrainNumber> grains;
    if (const auto *batch = std::get_if<wire::GexecMany>(&call))
        for (const wire::GrainOrder &order : batch->orders) grains.push_back(order.grain);
    return grains;
}

Script draw_script(Random &r, const Plan &plan, int grains) {
    Script s;
    s.seed = r.next() >> 1;
    s.most = std::max(grains, 1);
    s.first = static_cast<int>(between(r, 1, s.most));
    s.classes = plan.classes;
    s.cpu_max = plan.grain_cpu_max;
    s.contents = plan.contents;
    s.resources = plan.resources;
    s.polls = r.chance(15);
    if (r.chance(12)) s.close_after = static_cast<int>(between(r, 1, s.most));
    if (plan.scale) {
        s.first = s.most;
        s.close_after = 0;
        s.polls = s.may_fail = false;
    }
    return s;
}

Model Script::model(GrainNumber grain) const {
    Random r = random_for(seed, "model", static_cast<std::uint64_t>(grain));
    if (may_fail) return draw_model(r, cpu_max, true);
    Model m;
    m.seed = r.next() >> 1;
    m.step_us = between(r, cpu_max.ns / 4000, cpu_max.ns / 1000);
    return m;
}

namespace {
std::string draw_resources(Random &r) {
    Amounts asks;
    if (r.chance(50)) asks["gpu"] = r.chance(70) ? 1 : between(r, 2, 4);
    if (r.chance(20)) asks["licence"] = between(r, 1, 3);
    if (r.chance(20)) asks["scratch_gb"] = spread(r, 1, 100);
    return resource_text(asks);
}
}  // namespace

wire::GrainSpec Script::spec(GrainNumber grain, const std::string &owner) const {
    Random r = random_for(seed, "spec", static_cast<std::uint64_t>(grain));
    const Model m = model(grain);
    wire::GrainSpec spec;
    spec.argv = {"/opt/model", to_text(m), owner + ":" + std::to_string(grain)};
    spec.input = input_of(m);
    if (contents) add_files(grain, spec);
    if (!may_fail) return spec;
    if (r.chance(10)) spec.env = {"PADDING=" + std::string(static_cast<std::size_t>(spread(r, 8, 40'000)), 'p')};
    if (classes > 1 && r.chance(40)) spec.demands.host_class = 1u << r.below(static_cast<std::uint64_t>(classes));
    if (r.chance(15)) spec.demands.thrash = static_cast<std::int32_t>(spread(r, 1, 4000));
    if (r.chance(10)) spec.demands.cores = static_cast<std::int32_t>(between(r, 1, 2));
    if (r.chance(10)) spec.demands.memory_mb = static_cast<std::int32_t>(spread(r, 1, 2000));
    spec.demands.urgent = r.chance(10);
    if (r.chance(30)) spec.demands.notice = static_cast<std::int32_t>(between(r, 1, 10));
    spec.demands.attempts = static_cast<std::int32_t>(between(r, 1, 4));
    if (resources) spec.demands.resources = draw_resources(r);
    if (r.chance(10)) spec.label = "grain " + std::to_string(grain);
    return spec;
}

namespace {
std::string staged_text(GrainNumber grain) { return "staged for " + std::to_string(grain % 7); }  // shared by some
}  // namespace

void Script::add_files(GrainNumber grain, wire::GrainSpec &spec) const {
    const auto content = [&](wire::FileRole role, const std::string &name, const std::string &bytes) {
        spec.files.push_back({role, name, pki::sha256_text(bytes), bytes.size(), {}});
    };
    if (grain % 3 == 0) content(wire::FileRole::input, "", std::exchange(spec.input, {}));
    if (grain % 3 != 1) content(wire::FileRole::data, "staged", staged_text(grain));
    if (grain % 2 == 0) spec.files.push_back({wire::FileRole::output, "made", {}, 0, {}});
    if (grain % 4 == 0) spec.files.push_back({wire::FileRole::output, "more/large", {}, 0, {}});
}

std::vector<std::string> Script::contents_of(GrainNumber grain) const {
    std::vector<std::string> all;
    if (grain % 3 == 0) all.push_back(input_of(model(grain)));
    if (grain % 3 != 1) all.push_back(staged_text(grain));
    return all;
}

std::string output_of(const GrainKey &key, const std::string &name) {
    const std::string line = name + " of " + to_text(key) + "\n";
    std::string text = line;
    while (name == "more/large" && text.size() < limits::content_piece_bytes * 2) text += text;
    return text;
}

Course::Course(const Script &script) : script_(&script) {
    for (; next_grain_ < script.first; ++next_grain_) actions_.push_back(Submit{next_grain_});
    actions_.push_back(Wait{!script.polls});
}

std::vector<GrainNumber> Course::submissions(std::size_t most) const {
    std::vector<GrainNumber> grains;
    for (const Action &action : actions_) {
        const auto *submit = std::get_if<Submit>(&action);
        if (!submit || grains.size() >= most) break;
        grains.push_back(submit->grain);
    }
    return grains;
}

void Course::did() {
    const Action action = actions_.front();
    actions_.pop_front();
    if (const auto *submit = std::get_if<Submit>(&action)) submitted_.insert(submit->grain);
    if (const auto *kill = std::get_if<Kill>(&action)) killed_.insert(kill->grain);
}

void Course::got(const wire::GrainResult &result) {
    actions_.pop_front();  // the Wait
    received_.insert(result.grain);
    branch(result);
    const bool enough = script_->close_after > 0 && static_cast<int>(received_.size()) >= script_->close_after;
    if (enough) actions_.push_back(Close{});
    else actions_.push_back(Wait{!script_->polls});
}

// By the result: more work, less work, a look at an output.
void Course::branch(const wire::GrainResult &result) {
    std::uint64_t n = mix(mix(script_->seed, "branch"), static_cast<std::uint64_t>(result.grain));
    n = mix(n, static_cast<std::uint64_t>(result.code));
    if (script_->cpu_max.ns == 0) return;
    const auto draw = [&](std::uint64_t below) {
        n = mix(n, 1);
        return n % below;
    };
    for (std::uint64_t more = draw(4); more > 0 && next_grain_ < script_->most; --more)
        actions_.push_back(Submit{next_grain_++});
    if (script_->may_fail && draw(12) == 0) {
        const auto victim = static_cast<GrainNumber>(draw(static_cast<std::uint64_t>(next_grain_)));
        if (received_.count(victim) == 0 && killed_.count(victim) == 0) actions_.push_back(Kill{victim});
    }
    if (script_->may_fail && draw(6) == 0) actions_.push_back(Fetch{result.grain});
}

void Course::finish() {
    actions_.clear();
    actions_.push_back(Close{});
}

}  // namespace dcs::sim
