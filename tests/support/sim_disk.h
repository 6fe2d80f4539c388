#pragma once
// The Disk of the tests, in memory. It knows for every file and directory what is durable and what
// is only in the page cache, so it can say what a power failure at this instant may leave; it fails
// at the n-th call; it fills up.
//
// What a crash may leave, of everything that was not synced:
//   weak     any subset of the operations: contents, lengths and names independently, the two
//            halves of a rename too (both names, or none)
//   journal  operations on names and truncations in the order in which they were issued, up to some
//            point; any subset of the written data
// A write may also arrive in part, block by block, or only its length may (zeros or garbage in it).
// A failed sync drops the written data from the cache's list of dirty pages: it can still be read,
// later syncs succeed, and it never reaches the disk.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/disk.h"

namespace dcs::test {

enum class CrashModel { weak, journal };

enum class Fault {
    no_space,
    limit,
    io_error,
    io_error_done,  // reported as failed, but it happened
    short_write     // half of the bytes, then no space
};
const char *name_of(Fault fault);

class SimDisk final : public store::Disk {
public:
    // `block`: writes are torn at multiples of it.
    explicit SimDisk(std::size_t block = 512);
    // What the disk and the cache hold, without hook, faults and capacity: the process was killed,
    // the machine stayed up.
    SimDisk killed() const;

    Status create(const std::string &path, std::string_view bytes) override;
    Status truncate_append(const std::string &path, std::uint64_t length, std::string_view bytes) override;
    Status overwrite(const std::string &path, std::uint64_t offset, std::string_view bytes) override;
    Status rewrite(const std::string &path, std::string_view bytes) override;
    Result<std::string> read(const std::string &path, std::uint64_t offset, std::uint64_t max) override;
    Result<std::uint64_t> size(const std::string &path) override;
    Status rename(const std::string &from, const std::string &to) override;
    Status link(const std::string &from, const std::string &to) override;
    Status remove(const std::string &path) override;
    Result<bool> make_dir(const std::string &path) override;
    Status remove_dir(const std::string &path) override;
    Result<std::vector<std::string>> list(const std::string &path) override;
    Status sync_file(const std::string &path) override;
    Status sync_dir(const std::string &path) override;
    Status sync_all() override;
    Result<std::uint64_t> free_bytes() override;

    // Called after every operation that changed something or made something durable.
    std::function<void()> after_operation;

    // Crash states: all of them if there are at most `max`, otherwise a sample drawn with `seed`
    // that includes the extremes. Returns whether they were all. `wanted` gets a hash of everything
    // in the state and says whether it is worth making (or a double).
    using Wanted = std::function<bool(std::uint64_t hash)>;
    using Visit = std::function<void(SimDisk &state)>;
    bool each_crash(CrashModel model, std::size_t max, std::uint64_t seed, const Wanted &wanted,
                    const Visit &visit) const;
    // Nothing unsynced survives.
    SimDisk crashed() const;

    // The n-th call from now on (1 is the next) fails, and with `from_then_on` all after it.
    void fail_at(std::uint64_t n, Fault fault, bool from_then_on);
    // All syncs fail from now on, or (false) no longer.
    void fail_syncs(bool on) { fail_syncs_ = on; }
    void clear_faults();
    std::uint64_t calls() const { return calls_; }
    std::uint64_t syncs() const { return syncs_; }
    std::uint64_t faults_hit() const { return faults_hit_; }
    void set_capacity(std::uint64_t bytes) { capacity_ = bytes; }
    std::uint64_t capacity() const { return capacity_; }
    std::uint64_t used_bytes() const;

    // Files (and empty directories, ending in '/') below `top` as they can be read.
    std::map<std::string, std::string> files(const std::string &top = "") const;
    // Damage on the medium (sim_damage.cc): one byte of a file; many; the file's end.
    void flip(const std::string &path, std::size_t offset, unsigned char mask);
    void damage(const std::string &path, std::size_t offset, std::size_t length,
                const std::function<char(char)> &change_byte);
    void cut(const std::string &path, std::size_t length);

private:
    struct DataOp {
        std::uint64_t at;  // order of issue
        bool truncate;
        bool lost;             // a sync of it failed
        std::uint64_t offset;  // or the length to truncate to
        std::string bytes;
    };
    struct NameOp {
        std::uint64_t at;
        std::string name;
        int inode;  // -1: the name goes
    };
    struct Inode {
        bool directory = false;
        int links = 0;
        std::string durable, cached;
        std::vector<DataOp> data;
        std::map<std::string, int> durable_names, names;
        std::vector<NameOp> name_ops;
    };
    struct Choices;
    struct Image;
    struct Hasher;

    enum class Kind { read, change, write, sync };
    // The fault that this call must suffer, as a Status; *done: perform it nevertheless.
    bool enter(Kind kind, Fault &fault);
    static Status as_status(Fault fault, const std::string &path);
    int find(const std::string &path) const;                            // -1
    int find_parent(const std::string &path, std::string &name) const;  // -1
    Inode &change(int inode);
    const Inode &at(int inode) const { return *inodes_[inode]; }
    int add_inode(bool directory);
    void set_name(int directory, const std::string &name, int inode, std::uint64_t at);
    void unlinked(int inode);
    Status write(int inode, std::uint64_t offset, std::string_view bytes, bool half);
    void cut_off(int inode, std::uint64_t length);
    void persist_data(int inode);
    void persist_names(int inode);
    void lose_data(int inode);
    Status done(Status status);
    void collect(std::map<std::string, std::string> &out, int inode, const std::string &path) const;
    std::vector<bool> reachable() const;

    std::size_t block_;
    std::vector<std::shared_ptr<Inode>> inodes_;  // shared with snapshots until changed; 0: the top
    std::uint64_t clock_ = 0;
    std::uint64_t calls_ = 0, syncs_ = 0, fail_at_ = 0, faults_hit_ = 0;
    Fault fault_ = Fault::io_error;
    bool from_then_on_ = false, fail_syncs_ = false;
    std::uint64_t capacity_ = ~0ull;
    std::uint64_t used_ = 0;

    friend struct Choices;
};

// The same numbers on every machine.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 0x1234567) {}
    std::uint64_t next();
    std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : next() % n; }
    bool chance(unsigned percent) { return below(100) < percent; }

private:
    std::uint64_t state_;
};

}  // namespace dcs::test
