#include "support/sim_disk.h"

#include <algorithm>

#include "base/require.h"
#include "store/names.h"

namespace dcs::test {

std::uint64_t Random::next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

SimDisk::SimDisk(std::size_t block) : block_(block) { change(add_inode(true)).links = 1; }

SimDisk SimDisk::killed() const {
    SimDisk copy(*this);
    copy.after_operation = nullptr;
    copy.clear_faults();
    copy.capacity_ = ~0ull;
    copy.calls_ = 0;
    return copy;
}

SimDisk::Inode &SimDisk::change(int inode) {
    std::shared_ptr<Inode> &shared = inodes_[inode];
    if (shared.use_count() > 1) shared = std::make_shared<Inode>(*shared);
    return *shared;
}

int SimDisk::add_inode(bool directory) {
    auto inode = std::make_shared<Inode>();
    inode->directory = directory;
    inodes_.push_back(std::move(inode));
    return static_cast<int>(inodes_.size()) - 1;
}

int SimDisk::find(const std::string &path) const {
    int here = 0;
    std::size_t start = 0;
    while (start < path.size()) {
        if (!at(here).directory) return -1;
        const std::size_t slash = std::min(path.find('/', start), path.size());
        const auto entry = at(here).names.find(path.substr(start, slash - start));
        if (entry == at(here).names.end()) return -1;
        here = entry->second;
        start = slash + 1;
    }
    return here;
}

int SimDisk::find_parent(const std::string &path, std::string &name) const {
    DCS_REQUIRE(store::valid_path(path), "a path that the real disk would refuse");
    const std::string parent = store::parent_of(path);
    name = path.substr(parent.empty() ? 0 : parent.size() + 1);
    const int inode = find(parent);
    return inode >= 0 && at(inode).directory ? inode : -1;
}

void SimDisk::unlinked(int inode) {
    Inode &node = change(inode);
    if (--node.links == 0) used_ -= node.cached.size();
}

void SimDisk::set_name(int directory, const std::string &name, int inode, std::uint64_t when) {
    Inode &node = change(directory);
    const auto old = node.names.find(name);
    const int before = old == node.names.end() ? -1 : old->second;
    if (inode >= 0) {
        node.names[name] = inode;
        ++change(inode).links;
    } else {
        node.names.erase(name);
    }
    node.name_ops.push_back(NameOp{when, name, inode});
    if (before >= 0) unlinked(before);
}

Status SimDisk::write(int inode, std::uint64_t offset, std::string_view bytes, bool half) {
    Status status;
    if (half) {
        bytes = bytes.substr(0, bytes.size() / 2);
        status = fail(Code::no_space, "planted fault, short write");
    }
    Inode &node = change(inode);
    const std::uint64_t end = offset + bytes.size();
    const std::uint64_t growth = end > node.cached.size() ? end - node.cached.size() : 0;
    if (used_ + growth > capacity_) {
        const std::uint64_t room = capacity_ > used_ ? capacity_ - used_ : 0;
        bytes = bytes.substr(0, bytes.size() - std::min<std::uint64_t>(growth - room, bytes.size()));
        status = fail(Code::no_space, "the simulated disk is full");
    }
    if (bytes.empty()) return status;
    const std::size_t before = node.cached.size();
    if (node.cached.size() < offset + bytes.size()) node.cached.resize(offset + bytes.size());
    node.cached.replace(offset, bytes.size(), bytes);
    used_ += node.cached.size() - before;
    node.data.push_back(DataOp{++clock_, false, false, offset, std::string(bytes)});
    return status;
}

Status SimDisk::done(Status status) {
    if (after_operation) after_operation();
    return status;
}

Status SimDisk::create(const std::string &path, std::string_view bytes) {
    Fault fault{};
    const bool failing = enter(Kind::write, fault);
    const bool half = failing && fault == Fault::short_write;
    if (failing && !half && fault != Fault::io_error_done) return as_status(fault, path);
    std::string name;
    const int parent = find_parent(path, name);
    if (parent < 0) return fail(Code::not_found, path + ": no such directory");
    if (at(parent).names.count(name)) return fail(Code::io_error, path + " exists");
    const int inode = add_inode(false);
    set_name(parent, name, inode, ++clock_);
    Status status = write(inode, 0, bytes, half);
    if (failing && !half) status = as_status(fault, path);
    return done(status);
}

void SimDisk::cut_off(int inode, std::uint64_t length) {
    if (at(inode).cached.size() <= length) return;
    Inode &node = change(inode);
    used_ -= node.cached.size() - length;
    node.cached.resize(length);
    node.data.push_back(DataOp{++clock_, true, false, length, {}});
}

Status SimDisk::truncate_append(const std::string &path, std::uint64_t length, std::string_view bytes) {
    Fault fault{};
    const bool failing = enter(Kind::write, fault);
    const bool half = failing && fault == Fault::short_write;
    if (failing && !half && fault != Fault::io_error_done) return as_status(fault, path);
    std::string name;
    const int parent = find_parent(path, name);
    if (parent < 0) return fail(Code::not_found, path + ": no such directory");
    int inode = find(path);
    if (inode < 0 && length > 0) return fail(Code::not_found, path + ": no such file");
    if (inode < 0) {
        inode = add_inode(false);
        set_name(parent, name, inode, ++clock_);
    }
    if (at(inode).directory) return fail(Code::io_error, path + " is a directory");
    if (at(inode).cached.size() < length) return fail(Code::io_error, path + " is shorter than recorded");
    cut_off(inode, length);
    Status status = write(inode, length, bytes, half);
    if (failing && !half) status = as_status(fault, path);
    return done(status);
}

Status SimDisk::overwrite(const std::string &path, std::uint64_t offset, std::string_view bytes) {
    Fault fault{};
    const bool failing = enter(Kind::write, fault);
    const bool half = failing && fault == Fault::short_write;
    if (failing && !half && fault != Fault::io_error_done) return as_status(fault, path);
    const int inode = find(path);
    if (inode < 0) return fail(Code::not_found, path + ": no such file");
    if (at(inode).directory) return fail(Code::io_error, path + " is a directory");
    if (offset + bytes.size() > at(inode).cached.size())
        return fail(Code::io_error, path + " is shorter than it was made");
    Status status = write(inode, offset, bytes, half);
    if (failing && !half) status = as_status(fault, path);
    return done(status);
}

Status SimDisk::rewrite(const std::string &path, std::string_view bytes) {
    Fault fault{};
    const bool failing = enter(Kind::write, fault);
    const bool half = failing && fault == Fault::short_write;
    if (failing && !half && fault != Fault::io_error_done) return as_status(fault, path);
    const int inode = find(path);
    if (inode < 0) return fail(Code::not_found, path + ": no such file");
    if (at(inode).directory) return fail(Code::io_error, path + " is a directory");
    Status status = write(inode, 0, bytes, half);
    if (status) cut_off(inode, bytes.size());
    if (failing && !half) status = as_status(fault, path);
    return done(status);
}

Result<std::string> SimDisk::read(const std::string &path, std::uint64_t offset, std::uint64_t max) {
    Fault fault{};
    if (enter(Kind::read, fault)) return as_status(fault, path);
    const int inode = find(path);
    if (inode < 0) return fail(Code::not_found, path + ": no such file");
    if (at(inode).directory) return fail(Code::io_error, path + " is a directory");
    const std::string &bytes = at(inode).cached;
    if (offset >= bytes.size()) return std::string();
    return bytes.substr(offset, max);
}

Result<std::uint64_t> SimDisk::size(const std::string &path) {
    Fault fault{};
    if (enter(Kind::read, fault)) return as_status(fault, path);
    const int inode = find(path);
    if (inode < 0) return fail(Code::not_found, path + ": no such file");
    if (at(inode).directory) return fail(Code::io_error, path + " is a directory");
    return std::uint64_t{at(inode).cached.size()};
}

Status SimDisk::rename(const std::string &from, const std::string &to) {
    Fault fault{};
    const bool failing = enter(Kind::change, fault);
    if (failing && fault != Fault::io_error_done) return as_status(fault, to);
    std::string source_name, target_name;
    const int source = find_parent(from, source_name), target = find_parent(to, target_name);
    const int inode = find(from), there = find(to);
    if (source < 0 || target < 0 || inode < 0) return fail(Code::not_found, from + ": no such file");
    if (there >= 0 && at(there).directory) return fail(Code::io_error, to + " is a directory");
    if (there != inode) {
        const std::uint64_t when = ++clock_;
        set_name(target, target_name, inode, when);
        set_name(source, source_name, -1, when);
    }
    return done(failing ? as_status(fault, to) : Status::ok());
}

Status SimDisk::link(const std::string &from, const std::string &to) {
    Fault fault{};
    const bool failing = enter(Kind::change, fault);
    if (failing && fault != Fault::io_error_done) return as_status(fault, to);
    std::string name;
    const int inode = find(from), parent = find_parent(to, name);
    if (inode < 0 || parent < 0) return fail(Code::not_found, from + ": no such file");
    if (at(parent).names.count(name)) return fail(Code::io_error, to + " exists");
    set_name(parent, name, inode, ++clock_);
    return done(failing ? as_status(fault, to) : Status::ok());
}

Status SimDisk::remove(const std::string &path) {
    Fault fault{};
    const bool failing = enter(Kind::change, fault);
    if (failing && fault != Fault::io_error_done) return as_status(fault, path);
    std::string name;
    const int inode = find(path), parent = find_parent(path, name);
    if (inode >= 0 && at(inode).directory) return fail(Code::io_error, path + " is a directory");
    if (inode < 0) return failing ? as_status(fault, path) : Status::ok();
    set_name(parent, name, -1, ++clock_);
    return done(failing ? as_status(fault, path) : Status::ok());
}

Result<bool> SimDisk::make_dir(const std::string &path) {
    Fault fault{};
    const bool failing = enter(Kind::change, fault);
    if (failing && fault != Fault::io_error_done) return as_status(fault, path);
    std::string name;
    const int parent = find_parent(path, name), there = find(path);
    if (parent < 0) return fail(Code::not_found, path + ": no such directory");
    if (there >= 0 && !at(there).directory) return fail(Code::io_error, path + " is a file");
    if (there >= 0) return failing ? Result<bool>(as_status(fault, path)) : Result<bool>(false);
    set_name(parent, name, add_inode(true), ++clock_);
    Status status = done(failing ? as_status(fault, path) : Status::ok());
    return status ? Result<bool>(true) : Result<bool>(status);
}

Status SimDisk::remove_dir(const std::string &path) {
    Fault fault{};
    const bool failing = enter(Kind::change, fault);
    if (failing && fault != Fault::io_error_done) return as_status(fault, path);
    std::string name;
    const int inode = find(path), parent = find_parent(path, name);
    if (inode < 0) return failing ? as_status(fault, path) : Status::ok();
    if (!at(inode).directory) return fail(Code::io_error, path + " is a file");
    if (!at(inode).names.empty()) return fail(Code::refused, path + " is not empty");
    set_name(parent, name, -1, ++clock_);
    return done(failing ? as_status(fault, path) : Status::ok());
}

Result<std::vector<std::string>> SimDisk::list(const std::string &path) {
    Fault fault{};
    if (enter(Kind::read, fault)) return as_status(fault, path);
    const int inode = find(path);
    if (inode < 0) return fail(Code::not_found, path + ": no such directory");
    if (!at(inode).directory) return fail(Code::io_error, path + " is a file");
    std::vector<std::string> names;
    for (const auto &[name, child] : at(inode).names) names.push_back(at(child).directory ? name + "/" : name);
    std::sort(names.begin(), names.end());
    return names;
}

void SimDisk::persist_data(int inode) {
    if (at(inode).data.empty()) return;
    Inode &node = change(inode);
    // Operation by operation: after a failed sync the cache holds more than can become durable.
    for (const DataOp &op : node.data) {
        if (op.truncate) {
            node.durable.resize(op.offset);
            continue;
        }
        // Of a write whose sync failed the length arrives, the bytes do not.
        const std::uint64_t end = op.offset + op.bytes.size();
        if (node.durable.size() < end) node.durable.resize(end);
        if (!op.lost) node.durable.replace(op.offset, op.bytes.size(), op.bytes);
    }
    node.data.clear();
}

void SimDisk::persist_names(int inode) {
    if (at(inode).name_ops.empty()) return;
    Inode &node = change(inode);
    node.durable_names = node.names;
    node.name_ops.clear();
}

void SimDisk::lose_data(int inode) {
    if (at(inode).data.empty()) return;
    for (DataOp &op : change(inode).data) op.lost = true;
}

Status SimDisk::sync_file(const std::string &path) {
    Fault fault{};
    const bool failing = enter(Kind::sync, fault);
    const int inode = find(path);
    if (inode < 0) return fail(Code::not_found, path + ": no such file");
    if (failing) lose_data(inode);
    else persist_data(inode);
    return done(failing ? as_status(fault, path) : Status::ok());
}

Status SimDisk::sync_dir(const std::string &path) {
    Fault fault{};
    const bool failing = enter(Kind::sync, fault);
    const int inode = find(path);
    if (inode < 0 || !at(inode).directory) return fail(Code::not_found, path + ": no such directory");
    if (!failing) persist_names(inode);
    return done(failing ? as_status(fault, path) : Status::ok());
}

Status SimDisk::sync_all() {
    Fault fault{};
    const bool failing = enter(Kind::sync, fault);
    for (int inode = 0; inode < static_cast<int>(inodes_.size()); ++inode) {
        if (failing) {
            lose_data(inode);
        } else {
            persist_data(inode);
            persist_names(inode);
        }
    }
    return done(failing ? as_status(fault, "") : Status::ok());
}

Result<std::uint64_t> SimDisk::free_bytes() {
    Fault fault{};
    if (enter(Kind::read, fault)) return as_status(fault, "");
    return capacity_ > used_ ? capacity_ - used_ : std::uint64_t{0};
}

std::uint64_t SimDisk::used_bytes() const { return used_; }

void SimDisk::collect(std::map<std::string, std::string> &out, int inode, const std::string &path) const {
    if (!at(inode).directory) {
        out[path] = at(inode).cached;
        return;
    }
    if (at(inode).names.empty() && inode != 0) out[path + "/"] = "";
    for (const auto &[name, child] : at(inode).names) collect(out, child, store::join(path, name));
}

std::map<std::string, std::string> SimDisk::files(const std::string &top) const {
    std::map<std::string, std::string> out;
    if (const int inode = find(top); inode >= 0) collect(out, inode, top);
    return out;
}

}  // namespace dcs::test
