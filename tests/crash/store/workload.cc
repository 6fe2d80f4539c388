#include "crash/store/workload.h"

#include "store/names.h"

namespace dcs::test {

using store::Action;
using store::NodeTemplate;
using store::NodeUpdate;
using store::Shape;
using store::TreeUpdate;

const store::Forest &test_forest() {
    const auto replace = [](const char *name) {
        return std::vector<NodeTemplate>{{name, Shape::pair, Action::replace, ""}};
    };
    const auto append = [](const char *name) {
        return std::vector<NodeTemplate>{{name, Shape::pair, Action::append, ""}};
    };
    const NodeTemplate status{"status", Shape::pair, Action::replace, ""};
    static const store::Forest forest{
        {"session",
         {append("grains"),
          append("inputs"),
          append("results"),
          {{"status", Shape::singleton, Action::information, "grain"}}},
         status},
        {"grain",
         {{{"initial", Shape::singleton, Action::rename, ""}, {"note", Shape::singleton, Action::discard, ""}},
          replace("params"),
          replace("checkpoint"),
          replace("message"),
          {{"slot1", Shape::pair, Action::alternate, ""}},
          {{"slot2", Shape::pair, Action::alternate, ""}},
          append("out"),
          append("err")},
         status},
        {"auth", {}, {"table", Shape::pair, Action::replace, ""}},
    };
    return forest;
}

void apply_to_model(Files &files, const TreeUpdate &update) {
    if (update.remove) {
        const std::string prefix = update.directory + "/";
        for (auto it = files.begin(); it != files.end();)
            it = it->first.compare(0, prefix.size(), prefix) == 0 ? files.erase(it) : std::next(it);
        return;
    }
    for (const store::TreeTemplate &tree : test_forest()) {
        if (tree.name != update.tree) continue;
        for (const NodeUpdate &node : update.nodes) {
            std::string &content = files[update.directory + "/" + node.file];
            const Action action = tree.find(node.file)->action;
            if (action == Action::append) content.resize(node.old_length);
            else content.clear();
            content += node.bytes;
            if (action == Action::discard) files.erase(update.directory + "/" + node.file);
        }
    }
}

// Which of the two slots the root of a tree names, '1' or '2'; 0: none.
char slot_in(const Files &files, const std::string &directory) {
    const auto status = files.find(directory + "/status");
    const char last = status == files.end() || status->second.empty() ? '\0' : status->second.back();
    return last == '1' || last == '2' ? last : '\0';
}

Files trees_of(const SimDisk &disk) {
    Files all = disk.files();
    for (auto it = all.begin(); it != all.end();) {
        const std::string &path = it->first;
        const bool own = path.compare(0, 6, "turns/") == 0 || path == "format" || path == "reserve";
        it = own ? all.erase(it) : std::next(it);
    }
    return without_spares(std::move(all));
}

Files without_spares(Files files) {
    for (auto it = files.begin(); it != files.end();) {
        const std::string &path = it->first;
        const bool slot = path.size() > 6 && path.compare(path.size() - 6, 5, "/slot") == 0;
        const bool spare = slot && slot_in(files, store::parent_of(path)) != path.back();
        it = spare ? files.erase(it) : std::next(it);
    }
    return files;
}

bool leave_out(Files &files, const std::set<std::string> &set_aside) {
    for (const std::string &directory : set_aside)
        if (!files.count(store::marker_of(directory))) return false;
    for (auto it = files.begin(); it != files.end();)
        it = set_aside.count(store::parent_of(it->first)) ? files.erase(it) : std::next(it);
    return true;
}

namespace {

// Puts turns together while keeping the model that the lengths come from.
class Builder {
public:
    explicit Builder(std::uint64_t seed) : random(seed) { workload.states.emplace_back(); }
    std::string text(std::size_t length) {
        std::string bytes;
        for (std::size_t i = 0; i < length; ++i) bytes += static_cast<char>('a' + random.below(26));
        return bytes;
    }
    std::string any_text() { return text(random.chance(70) ? random.below(20) : random.below(70)); }
    std::uint64_t length(const std::string &path) const {
        const auto it = files.find(path);
        return it == files.end() ? 0 : it->second.size();
    }
    void add(TreeUpdate update) {
        apply_to_model(files, update);
        turn.updates.push_back(std::move(update));
    }
    void remove(const std::string &directory, const char *tree) { add(TreeUpdate{directory, tree, {}, true}); }
    void session(const std::string &directory, const std::vector<std::pair<const char *, std::size_t>> &appends) {
        TreeUpdate update{directory, "session", {}, false};
        for (const auto &[file, n] : appends)
            update.nodes.push_back(NodeUpdate{file, text(n), length(directory + "/" + file)});
        update.nodes.push_back(NodeUpdate{"status", text(8), 0});
        add(std::move(update));
    }
    void grain(const std::string &directory, const std::vector<NodeUpdate> &nodes) {
        TreeUpdate update{directory, "grain", nodes, false};
        update.nodes.push_back(status(directory, text(8)));
        add(std::move(update));
    }
    // The root of a grain's tree, which goes on to name the slot that it named.
    NodeUpdate status(const std::string &directory, std::string bytes) const {
        const char slot = slot_in(files, directory);
        return NodeUpdate{"status", slot ? bytes + slot : bytes, 0};
    }
    // New content for the slot that the last turn does not name.
    void slot(const std::string &directory, std::string bytes) {
        const bool second = slot_in(workload.states.back(), directory) == '1';
        add(TreeUpdate{
            directory,
            "grain",
            {{second ? "slot2" : "slot1", std::move(bytes), 0}, {"status", text(5) + (second ? '2' : '1'), 0}},
            false});
    }
    void auth(std::size_t n) { add(TreeUpdate{"auth", "auth", {{"table", text(n), 0}}, false}); }
    void end_turn(bool flush = false) {
        turn.flush_after = flush;
        workload.turns.push_back(std::move(turn));
        workload.states.push_back(without_spares(files));
        turn = {};
    }

    Random random;
    Files files;
    Workload::Turn turn;
    Workload workload;
};

NodeUpdate node(const char *file, std::string bytes, std::uint64_t old_length = 0) {
    return NodeUpdate{file, std::move(bytes), old_length};
}

void draw_session(Builder &b, const std::string &directory) {
    TreeUpdate update{directory, "session", {}, false};
    for (const char *file : {"grains", "inputs", "results"}) {
        if (!b.random.chance(50)) continue;
        std::uint64_t length = b.length(directory + "/" + file);
        if (b.random.chance(12)) length = b.random.below(length + 1);
        update.nodes.push_back(node(file, b.any_text(), length));
    }
    update.nodes.push_back(node("status", b.any_text()));
    b.add(std::move(update));
}

void draw_grain(Builder &b, const std::string &directory) {
    TreeUpdate update{directory, "grain", {}, false};
    for (const char *file : {"initial", "note", "params", "checkpoint", "message"})
        if (b.random.chance(30)) update.nodes.push_back(node(file, b.any_text()));
    for (const char *file : {"out", "err"}) {
        if (!b.random.chance(50)) continue;
        std::uint64_t length = b.length(directory + "/" + file);
        if (b.random.chance(12)) length = b.random.below(length + 1);
        update.nodes.push_back(node(file, b.any_text(), length));
    }
    update.nodes.push_back(b.status(directory, b.any_text()));
    b.add(std::move(update));
    if (b.random.chance(30)) b.slot(directory, b.any_text());
}

}  // namespace

Workload written_workload() {
    Builder b(1);
    const std::string s = "sessions/ann/1", g = s + "/g/4";
    b.session(s, {{"grains", 10}, {"inputs", 40}});
    b.auth(12);
    b.end_turn();
    // Big and small nodes in a directory that is new, below one that is still pending.
    b.grain(g, {node("params", b.text(40)), node("initial", b.text(10)), node("note", b.text(50)),
                node("out", b.text(10)), node("err", b.text(50))});
    b.session(s, {{"grains", 6}});
    b.end_turn();
    // The same nodes again: small over big, big over small, appends behind both.
    b.grain(g, {node("params", b.text(5)), node("checkpoint", b.text(60)), node("out", b.text(40), 10),
                node("err", b.text(5), 50)});
    b.end_turn();
    b.grain(g, {node("checkpoint", b.text(45)), node("message", b.text(3)),
                node("out", b.text(7), 20)});  // cut back below the end of the last append
    b.session(s, {{"results", 30}, {"grains", 5}});
    b.turn.full_disk = true;
    b.end_turn();
    // A small one, and in its place a big one while it is pending; the other in between.
    b.slot(g, b.text(12));
    b.end_turn();
    b.slot(g, b.text(55));
    b.end_turn();
    b.slot(g, b.text(47));
    b.end_turn();
    b.slot(g, b.text(58));
    b.slot(g, b.text(39));
    b.session(s, {{"grains", 4}});
    b.end_turn();
    // A log written again: cut to nothing while appends to it are pending.
    b.add(TreeUpdate{s, "session", {node("grains", b.text(3), 0), node("status", b.text(8))}, false});
    b.end_turn();
    // A tree goes while updates of it are pending; next turn it is made again, with a big node.
    b.remove(g, "grain");
    b.auth(9);
    b.end_turn();
    b.grain(g, {node("params", b.text(33)), node("out", b.text(6))});
    b.turn.full_disk = true;
    b.end_turn();
    // Removed and made again within one turn, again with a big node.
    b.remove(s, "session");
    b.session(s, {{"grains", 44}, {"inputs", 3}});
    b.grain(s + "/g/1", {node("checkpoint", b.text(50)), node("out", b.text(4))});
    b.end_turn();
    // A further grain of a directory that has just become durable, and the end of it all.
    b.grain(s + "/g/2", {node("params", b.text(30))});
    b.grain(s + "/g/1", {node("out", b.text(31), 4)});
    b.end_turn(true);
    b.remove(s, "session");
    b.auth(50);
    b.turn.full_disk = true;
    b.end_turn();
    b.workload.name = "written";
    return std::move(b.workload);
}

Workload drawn_workload(std::uint64_t seed, std::size_t turns) {
    Builder b(seed);
    const std::vector<std::string> sessions{"sessions/ann/1", "sessions/ann/2", "sessions/bob/1"};
    for (std::size_t i = 0; i < turns; ++i) {
        const std::size_t actions = 1 + b.random.below(3);
        for (std::size_t k = 0; k < actions; ++k) {
            const std::string &s = sessions[b.random.below(sessions.size())];
            const std::string g = s + "/g/" + std::to_string(b.random.below(2));
            const std::uint64_t what = b.random.below(100);
            if (what < 30) {
                draw_session(b, s);
            } else if (what < 68) {
                draw_grain(b, g);
            } else if (what < 78) {
                b.auth(b.random.below(60));
            } else if (what < 86) {
                b.remove(g, "grain");
            } else if (what < 92) {
                b.remove(s, "session");
            } else if (what < 96) {
                b.remove(g, "grain");
                draw_grain(b, g);
            } else {
                draw_grain(b, g);
                draw_grain(b, g);
            }
        }
        b.turn.full_disk = b.random.chance(30);
        b.end_turn(b.random.chance(15));
    }
    b.workload.name = "drawn " + std::to_string(seed);
    return std::move(b.workload);
}

}  // namespace dcs::test
