#include "flow.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace dcs::commands {
namespace {

using wire::GrainHistory;
using wire::GrainState;

class Builder {
public:
    explicit Builder(const wire::History &history) : history_(history) {
        for (const auto &[number, g] : history.grains) order_.emplace_back(g.order, number);
        std::sort(order_.begin(), order_.end());
    }

    Flow build() {
        for (const auto &[order, number] : order_) submit(number, history_.grains.at(number));
        for (const auto &[order, number] : order_) kill(number, history_.grains.at(number));
        take_results();
        return std::move(flow_);
    }

private:
    // One that was made for it, or the last one if the control program knew no more now than then.
    int decision(std::uint32_t known, bool peeked) {
        if (flow_.decisions.empty() || flow_.decisions.back().known != known || peeked)
            flow_.decisions.push_back({known});
        return static_cast<int>(flow_.decisions.size()) - 1;
    }
    void submit(std::int32_t number, const GrainHistory &g) {
        Flow::Grains one;
        one.numbers = {number};
        one.from = decision(g.known, !g.peeked.empty());
        one.state = g.state;
        one.failed = g.state == GrainState::finished && (g.code != 0 || g.signal != 0);
        for (const std::int32_t other : g.peeked)
            if (const auto at = index_.find(other); at != index_.end())
                flow_.grains[at->second].shown_to.push_back(one.from);
        index_[number] = flow_.grains.size();
        flow_.grains.push_back(std::move(one));
    }
    // With the last decision that knew as much; one that only killed comes before the next that submitted.
    void kill(std::int32_t number, const GrainHistory &g) {
        if (g.state != GrainState::killed) return;
        std::size_t at = flow_.decisions.size();
        while (at > 0 && flow_.decisions[at - 1].known > g.killed_after) --at;
        if (at == 0 || flow_.decisions[at - 1].known != g.killed_after) insert(at++, g.killed_after);
        Flow::Grains &grains = flow_.grains[index_.at(number)];
        grains.killed_by = std::max(grains.from, static_cast<int>(at) - 1);
    }
    void insert(std::size_t at, std::uint32_t known) {
        flow_.decisions.insert(flow_.decisions.begin() + static_cast<std::ptrdiff_t>(at), {known});
        const auto moved = [&](int &decision) { decision += decision >= static_cast<int>(at); };
        for (Flow::Grains &g : flow_.grains) {
            moved(g.from);
            moved(g.killed_by);
            for (int &shown : g.shown_to) moved(shown);
        }
    }
    void take_results() {
        const std::size_t count = flow_.decisions.size();
        for (const auto &[number, at] : index_) {
            Flow::Grains &grains = flow_.grains[at];
            const std::int32_t result = history_.grains.at(number).result;
            if (result < 0 || static_cast<std::uint32_t>(result) >= history_.handed_out) continue;
            const auto knows = [&](std::uint32_t place, const Flow::Decision &d) { return place < d.known; };
            const auto first = std::upper_bound(flow_.decisions.begin(), flow_.decisions.end(),
                                                static_cast<std::uint32_t>(result), knows);
            grains.to = static_cast<int>(first - flow_.decisions.begin());
            if (grains.to == static_cast<int>(count)) flow_.end = grains.to;
        }
        if (flow_.end >= 0) flow_.decisions.push_back({history_.handed_out});
    }

    const wire::History &history_;
    std::vector<std::pair<std::int64_t, std::int32_t>> order_;
    std::map<std::int32_t, std::size_t> index_;
    Flow flow_;
};

auto likeness(const Flow::Grains &g) {
    return std::make_tuple(g.from, g.to, g.killed_by, static_cast<int>(g.state), g.failed, g.shown_to);
}

std::string quoted(const std::string &text) {
    std::string r = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') r += '\\';
        r += c == '\n' ? ' ' : c;
    }
    return r + "\"";
}

}  // namespace

const char *colour_of(const Flow::Grains &g) {
    if (g.state == GrainState::killed) return "#e8b4b0";
    if (g.failed) return "#f2c08a";
    if (g.state == GrainState::finished) return "#b9dcb4";
    return g.state == GrainState::running ? "#b5d3ee" : "#eeeeee";
}

Flow flow_of(const wire::History &history, std::size_t together) {
    Flow flow = Builder(history).build();
    std::map<decltype(likeness(flow.grains[0])), std::vector<std::size_t>> alike;
    for (std::size_t i = 0; i < flow.grains.size(); ++i) alike[likeness(flow.grains[i])].push_back(i);
    std::vector<Flow::Grains> left;
    for (std::size_t i = 0; i < flow.grains.size(); ++i) {
        const std::vector<std::size_t> &same = alike[likeness(flow.grains[i])];
        if (same.size() <= together) {
            left.push_back(flow.grains[i]);
        } else if (same[0] == i) {
            left.push_back(flow.grains[i]);
            for (std::size_t k = 1; k < same.size(); ++k)
                left.back().numbers.push_back(flow.grains[same[k]].numbers[0]);
        }
    }
    flow.grains = std::move(left);
    return flow;
}

std::string name_of(const Flow::Grains &g) {
    const auto [least, most] = std::minmax_element(g.numbers.begin(), g.numbers.end());
    if (g.numbers.size() == 1) return "grain " + std::to_string(*least);
    const bool row = static_cast<std::size_t>(*most - *least) + 1 == g.numbers.size();
    if (row) return "grains " + std::to_string(*least) + "-" + std::to_string(*most);
    return std::to_string(g.numbers.size()) + " grains of " + std::to_string(*least) + "-" + std::to_string(*most);
}

std::string flow_dot(const Flow &flow, const std::string &title) {
    std::string r = "digraph computation {\n  label=" + quoted(title) + "; labelloc=t; fontname=\"sans-serif\";\n";
    r += "  node [fontname=\"sans-serif\", fontsize=11]; edge [arrowsize=0.7];\n";
    for (std::size_t i = 0; i < flow.decisions.size(); ++i) {
        const bool last = static_cast<int>(i) == flow.end;
        r += "  d" + std::to_string(i) + " [shape=" + (last ? "doublecircle" : "diamond") +
             ", style=filled, fillcolor=\"#fff3c4\", label=" +
             quoted(last     ? "end"
                    : i == 0 ? "begin"
                             : std::to_string(flow.decisions[i].known)) +
             "];\n";
        if (i > 0) r += "  d" + std::to_string(i - 1) + " -> d" + std::to_string(i) + " [style=dotted, weight=8];\n";
    }
    for (const Flow::Grains &g : flow.grains) {
        const std::string node = "g" + std::to_string(g.numbers[0]);
        r += "  " + node + " [shape=box, style=\"rounded,filled\", fillcolor=\"" + colour_of(g) +
             "\", label=" + quoted(name_of(g)) + "];\n";
        r += "  d" + std::to_string(g.from) + " -> " + node + ";\n";
        if (g.to >= 0) r += "  " + node + " -> d" + std::to_string(g.to) + ";\n";
        for (const int shown : g.shown_to)
            r += "  " + node + " -> d" + std::to_string(shown) + " [style=dashed, color=\"#2f6fad\"];\n";
        if (g.killed_by >= 0)
            r += "  d" + std::to_string(g.killed_by) + " -> " + node +
                 " [style=dashed, color=\"#b03028\", constraint=false];\n";
    }
    return r + "}\n";
}

}  // namespace dcs::commands
