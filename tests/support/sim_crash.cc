// What a power failure may leave of a SimDisk.
#include <algorithm>
#include <string_view>

#include "support/sim_disk.h"

namespace dcs::test {
namespace {

enum Outcome : std::uint8_t { missing, whole, head, tail, zeros, garbage };

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
    return hash ^ (hash >> 32);
}
std::uint64_t mix(std::uint64_t hash, std::string_view text) {
    return mix(mix(hash, std::hash<std::string_view>{}(text)), text.size());
}

}  // namespace

// Everything unsynced that can matter, and how each of it may turn out.
struct SimDisk::Choices {
    struct Outcomes {
        Outcome list[6];
        std::uint8_t count;
        std::size_t size() const { return count; }
        Outcome operator[](std::size_t i) const { return list[i]; }
    };
    struct Item {
        Outcomes outcomes;
        bool ordered;  // a place in the journal
        std::uint64_t at;
    };
    std::vector<Item> items;
    std::vector<std::size_t> first_data, first_name;  // by inode
    std::vector<std::uint64_t> journal;               // when, in order; without doubles

    explicit Choices(const SimDisk &disk) {
        const std::vector<bool> live = disk.reachable();
        first_data.resize(live.size());
        first_name.resize(live.size());
        for (std::size_t inode = 0; inode < live.size(); ++inode) {
            if (!live[inode]) continue;
            const Inode &node = disk.at(static_cast<int>(inode));
            first_data[inode] = items.size();
            for (const DataOp &op : node.data)
                items.push_back({outcomes_of(node, op, disk.block_), op.truncate, op.at});
            first_name[inode] = items.size();
            for (const NameOp &op : node.name_ops) items.push_back({{{missing, whole}, 2}, true, op.at});
        }
        for (const Item &item : items)
            if (item.ordered) journal.push_back(item.at);
        std::sort(journal.begin(), journal.end());
        journal.erase(std::unique(journal.begin(), journal.end()), journal.end());
    }

    // Where a write is torn: the block boundary next to its middle, or 0 for within one block.
    static std::uint64_t tear(const DataOp &op, std::size_t block) {
        const std::uint64_t middle = (op.offset + op.bytes.size() / 2) / block * block;
        if (middle > op.offset) return middle;
        return middle + block < op.offset + op.bytes.size() ? middle + block : 0;
    }

    static Outcomes outcomes_of(const Inode &node, const DataOp &op, std::size_t block) {
        Outcomes all{{missing, whole}, 2};
        if (op.truncate) return all;
        if (tear(op, block) != 0) {
            all.list[all.count++] = head;
            all.list[all.count++] = tail;
        }
        if (op.offset + op.bytes.size() > node.durable.size()) {
            all.list[all.count++] = zeros;
            all.list[all.count++] = garbage;
        }
        return all;
    }

    // How many states there are, capped.
    std::uint64_t count(CrashModel model, std::uint64_t cap) const {
        std::uint64_t product = model == CrashModel::journal ? journal.size() + 1 : 1;
        for (const Item &item : items) {
            if (product > cap) return cap + 1;
            if (model == CrashModel::weak || !item.ordered) product *= item.outcomes.size();
        }
        return std::min(product, cap + 1);
    }

    void fill_journal(std::vector<Outcome> &picks, std::size_t prefix) const {
        for (std::size_t i = 0; i < items.size(); ++i)
            if (items[i].ordered) picks[i] = prefix > 0 && items[i].at <= journal[prefix - 1] ? whole : missing;
    }
};

namespace {

// Calls see(name, inode) for what a directory holds after the crash.
template <class Node, class See> void each_name(const Node &node, const Outcome *picks, const See &see) {
    if (node.name_ops.empty()) {
        for (const auto &[name, child] : node.durable_names) see(name, child);
        return;
    }
    std::map<std::string, int> names = node.durable_names;
    for (std::size_t i = 0; i < node.name_ops.size(); ++i) {
        if (picks[i] == missing) continue;
        if (node.name_ops[i].inode < 0) names.erase(node.name_ops[i].name);
        else names[node.name_ops[i].name] = node.name_ops[i].inode;
    }
    for (const auto &[name, child] : names) see(name, child);
}

}  // namespace

struct SimDisk::Image {
    const SimDisk &from;
    const Choices &choices;
    const std::vector<Outcome> &picks;
    SimDisk to;
    std::vector<int> known;  // inode there -> inode here

    Image(const SimDisk &disk, const Choices &c, const std::vector<Outcome> &p)
        : from(disk), choices(c), picks(p), to(disk.block_), known(disk.inodes_.size(), -1) {
        known[0] = 0;
        fill_directory(0, 0);
        to.clock_ = from.clock_;
    }

    static std::string content(const SimDisk &from, const Choices &choices, const std::vector<Outcome> &picks,
                               int inode) {
        const Inode &node = from.at(inode);
        std::string bytes = node.durable;
        for (std::size_t i = 0; i < node.data.size(); ++i) {
            const DataOp &op = node.data[i];
            const Outcome outcome = picks[choices.first_data[inode] + i];
            if (outcome == missing) continue;
            if (op.truncate) {
                if (bytes.size() > op.offset) bytes.resize(op.offset);
                continue;
            }
            const std::uint64_t end = op.offset + op.bytes.size();
            if (outcome == zeros || outcome == garbage) {
                if (bytes.size() < end) bytes.resize(end, outcome == zeros ? '\0' : '\x5a');
                continue;
            }
            const std::uint64_t torn = outcome == whole ? 0 : Choices::tear(op, from.block_);
            const std::uint64_t begin = outcome == tail ? torn : op.offset;
            const std::uint64_t stop = outcome == head ? torn : end;
            if (bytes.size() < stop) bytes.resize(stop);
            bytes.replace(begin, stop - begin, op.bytes, begin - op.offset, stop - begin);
        }
        return bytes;
    }

    void fill_directory(int inode, int copy) {
        each_name(from.at(inode), picks.data() + choices.first_name[inode], [&](const std::string &name, int child) {
            const bool first = known[child] < 0;
            if (first) known[child] = to.add_inode(from.at(child).directory);
            const int child_copy = known[child];
            Inode &parent = *to.inodes_[copy];
            parent.names.emplace_hint(parent.names.end(), name, child_copy);
            ++to.inodes_[child_copy]->links;
            if (!first) return;
            if (from.at(child).directory) return fill_directory(child, child_copy);
            Inode &file = *to.inodes_[child_copy];
            file.durable = file.cached = content(from, choices, picks, child);
            to.used_ += file.cached.size();
        });
        to.inodes_[copy]->durable_names = to.inodes_[copy]->names;
    }
};

// The same walk, only to tell states apart.
struct SimDisk::Hasher {
    const SimDisk &from;
    const Choices &choices;
    std::vector<std::uint64_t> settled;  // of files without choices
    std::vector<int> known;
    int count = 0;
    std::uint64_t hash = 1;

    Hasher(const SimDisk &disk, const Choices &c)
        : from(disk), choices(c), settled(disk.inodes_.size(), 0), known(disk.inodes_.size()) {}

    std::uint64_t operator()(const std::vector<Outcome> &picks) {
        std::fill(known.begin(), known.end(), -1);
        count = 0;
        hash = 1;
        walk(0, picks);
        return hash;
    }

    void walk(int inode, const std::vector<Outcome> &picks) {
        each_name(from.at(inode), picks.data() + choices.first_name[inode], [&](const std::string &name, int child) {
            hash = mix(hash, name);
            const bool first = known[child] < 0;
            if (first) known[child] = ++count;
            hash = mix(hash, static_cast<std::uint64_t>(known[child]));
            if (!first) return;
            if (from.at(child).directory) return walk(child, picks);
            hash = mix(hash, content_hash(child, picks));
        });
        hash = mix(hash, 0x2f);
    }

    std::uint64_t content_hash(int inode, const std::vector<Outcome> &picks) {
        if (!from.at(inode).data.empty()) return mix(7, Image::content(from, choices, picks, inode));
        if (settled[inode] == 0) settled[inode] = mix(7, from.at(inode).durable);
        return settled[inode];
    }
};

std::vector<bool> SimDisk::reachable() const {
    std::vector<bool> live(inodes_.size());
    std::vector<int> waiting{0};
    live[0] = true;
    const auto reach = [&](int inode) {
        if (inode < 0 || live[inode]) return;
        live[inode] = true;
        waiting.push_back(inode);
    };
    while (!waiting.empty()) {
        const Inode &node = at(waiting.back());
        waiting.pop_back();
        for (const auto &[name, child] : node.durable_names) reach(child);
        for (const NameOp &op : node.name_ops) reach(op.inode);
    }
    return live;
}

SimDisk SimDisk::crashed() const {
    const Choices choices(*this);
    const std::vector<Outcome> picks(choices.items.size(), missing);
    Image image(*this, choices, picks);
    return std::move(image.to);
}

bool SimDisk::each_crash(CrashModel model, std::size_t max, std::uint64_t seed, const Wanted &wanted,
                         const Visit &visit) const {
    const Choices choices(*this);
    std::vector<Outcome> picks(choices.items.size(), missing);
    Hasher hasher(*this, choices);
    const auto show = [&] {
        if (!wanted(hasher(picks))) return;
        Image image(*this, choices, picks);
        visit(image.to);
    };
    const bool ordered = model == CrashModel::journal;
    std::vector<std::size_t> free;  // items decided one by one
    for (std::size_t i = 0; i < choices.items.size(); ++i)
        if (!ordered || !choices.items[i].ordered) free.push_back(i);
    const std::size_t prefixes = ordered ? choices.journal.size() + 1 : 1;

    if (choices.count(model, max) <= max) {
        for (std::size_t prefix = 0; prefix < prefixes; ++prefix) {
            if (ordered) choices.fill_journal(picks, prefix);
            std::vector<std::size_t> digit(free.size(), 0);
            for (std::size_t i = 0; i <= free.size();) {
                if (i == 0) {
                    for (std::size_t k = 0; k < free.size(); ++k)
                        picks[free[k]] = choices.items[free[k]].outcomes[digit[k]];
                    show();
                }
                if (i == free.size()) break;
                if (++digit[i] < choices.items[free[i]].outcomes.size()) {
                    i = 0;
                } else {
                    digit[i] = 0;
                    ++i;
                }
            }
        }
        return true;
    }

    Random random(seed);
    for (std::size_t n = 0; n < max; ++n) {
        if (ordered) choices.fill_journal(picks, n == 0 ? 0 : n == 1 ? prefixes - 1 : random.below(prefixes));
        // Nothing, everything, everything but one, nothing but one, then anything.
        const bool single = n >= 2 && n % 2 == 0 && !free.empty();
        const unsigned percent = n == 0 ? 0 : n == 1 ? 100 : n % 3 == 0 ? 50 : n % 3 == 1 ? 90 : 10;
        const bool base = random.chance(70);
        for (const std::size_t i : free) {
            const auto &outcomes = choices.items[i].outcomes;
            const bool there = single ? base : random.chance(percent);
            picks[i] = !there                                   ? missing
                       : n >= 2 && !single && random.chance(20) ? outcomes[random.below(outcomes.size())]
                                                                : whole;
        }
        if (single) {
            const std::size_t i = free[random.below(free.size())];
            const auto &outcomes = choices.items[i].outcomes;
            picks[i] = base ? (random.chance(50) ? missing : outcomes[random.below(outcomes.size())])
                            : outcomes[1 + random.below(outcomes.size() - 1)];
        }
        show();
    }
    return false;
}

}  // namespace dcs::test
