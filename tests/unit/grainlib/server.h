#pragma once
// The server's side of docs/GRAIN_PROTOCOL.md for tests: one grain, as many runs as its test
// wants, each in a directory of its own. It keeps what a scheduler would keep: the committed
// output, the checkpoint, the position in the original input.
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace grain_test {

std::string read_file(const std::string &path);
bool file_exists(const std::string &path);
void write_file(const std::string &path, const std::string &bytes);
void sleep_us(unsigned us);

// A directory that is removed with everything in it.
class Scratch {
public:
    Scratch();
    ~Scratch();
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    const std::string &path() const { return path_; }

private:
    std::string path_;
};

struct Checkpoint {
    bool valid = false;
    std::uint64_t input_offset = 0;
    std::string message, state;
};
Checkpoint parse_checkpoint(const std::string &text);

struct End {
    bool signalled = false;
    int number = 0;  // signal or exit status
};

struct RunOptions {
    std::string out_is;  // standard output goes there instead of out.S
    std::string err_is;
    bool own_session = true;
    std::uint64_t file_size_limit = 0;
    bool served = true;
};

class Server {
public:
    Server(std::vector<std::string> argv, std::string input);
    ~Server();

    // Makes the directory of the next run; files may be planted in it before start().
    void prepare();
    void set_program(std::vector<std::string> argv) { argv_ = std::move(argv); }
    void start(const RunOptions &options = {});
    const std::string &directory() const { return directory_; }
    bool announced() const;
    void send(int signal);
    bool ended();  // without waiting
    End wait();
    // Takes what the run committed: all increments up to its last checkpoint, or all of them when
    // it ended by itself. Also checks the rules of the directory. Kills a run that still runs.
    void collect();
    void kill_and_collect();

    std::string out, err;  // committed
    std::string message;
    unsigned sequence = 0;     // last committed
    unsigned checkpoints = 0;  // committed checkpoints of all runs
    unsigned runs = 0;
    End end;
    bool finished = false;  // ended by itself with status 0

private:
    std::string next_input() const { return state_ + input_.substr(position_); }

    std::vector<std::string> argv_;
    std::string input_;           // original
    std::string state_;           // checkpoint text that the next run begins with
    std::uint64_t position_ = 0;  // in the original input
    Scratch scratch_;
    std::string directory_;
    pid_t pid_ = -1;
};

// Runs a program as a shell would: input in, output out; no server.
struct Filtered {
    End end;
    std::string out, err;
};
Filtered run_filter(const std::vector<std::string> &argv, const std::string &input);

std::string grain_program(const std::string &name);  // tests/grains/NAME of the build
std::string program(const std::string &name);        // bin/NAME of the build

}  // namespace grain_test
