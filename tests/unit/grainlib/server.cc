#include "server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "places.h"
#include "support/catch.h"

namespace grain_test {

std::string read_file(const std::string &path) {
    std::string bytes;
    FILE *f = std::fopen(path.c_str(), "re");
    if (f == nullptr) return bytes;
    char piece[65536];
    std::size_t got = 0;
    while ((got = std::fread(piece, 1, sizeof piece, f)) > 0) bytes.append(piece, got);
    std::fclose(f);
    return bytes;
}

bool file_exists(const std::string &path) { return access(path.c_str(), F_OK) == 0; }

void write_file(const std::string &path, const std::string &bytes) {
    FILE *f = std::fopen(path.c_str(), "we");
    REQUIRE(f != nullptr);
    REQUIRE(std::fwrite(bytes.data(), 1, bytes.size(), f) == bytes.size());
    REQUIRE(std::fclose(f) == 0);
}

void sleep_us(unsigned us) { usleep(us); }

Scratch::Scratch() {
    const char *base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr ? base : "/tmp") + "/dcs-grainlib-XXXXXX";
    REQUIRE(mkdtemp(path_.data()) != nullptr);
}

Scratch::~Scratch() {
    std::string command = "rm -rf '" + path_ + "'";
    if (std::system(command.c_str()) != 0) std::perror(path_.c_str());
}

namespace {

// Written independently of the library under test, bit by bit.
std::uint32_t crc32_of(const std::string &bytes) {
    std::uint32_t crc = 0xFFFFFFFFu;
    for (unsigned char c : bytes) {
        crc ^= c;
        for (int i = 0; i < 8; i++) crc = (crc >> 1) ^ ((crc & 1) ? 0xEDB88320u : 0);
    }
    return ~crc;
}

std::string name(const std::string &directory, const char *stem, unsigned number) {
    return directory + "/" + stem + "." + std::to_string(number);
}

}  // namespace

Checkpoint parse_checkpoint(const std::string &text) {
    Checkpoint result;
    unsigned long long offset = 0, message_length = 0, length = 0;
    long long user = 0, system = 0;
    int header = 0;
    if (std::sscanf(text.c_str(), "dcs-checkpoint 1\ninput_offset %llu\nusage_us %lld %lld\nmessage %llu%n", &offset,
                    &user, &system, &message_length, &header) != 4)
        return result;
    std::size_t start = header;
    if (text.compare(start, 2, "\n\n") != 0) return result;
    start += 2;
    if (start + message_length >= text.size() || text[start + message_length] != '\n') return result;
    std::size_t state = start + message_length + 1;
    if (text.empty() || text.back() != '\n') return result;
    std::size_t trailer = text.rfind("dcs-end ");
    char crc[9] = "";
    if (trailer == std::string::npos || trailer < state ||
        std::sscanf(text.c_str() + trailer, "dcs-end %llu %8[0-9A-F]", &length, crc) != 2)
        return result;
    char expected[64];
    result.state = text.substr(state, trailer - state);
    std::snprintf(expected, sizeof expected, "dcs-end %zu %08X\n", result.state.size(), crc32_of(result.state));
    result.valid = text.substr(trailer) == expected;
    result.input_offset = offset;
    result.message = text.substr(start, message_length);
    return result;
}

Server::Server(std::vector<std::string> argv, std::string input) : argv_(std::move(argv)), input_(std::move(input)) {
    prepare();
}

Server::~Server() {
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        wait();
    }
}

void Server::prepare() {
    directory_ = scratch_.path() + "/" + std::to_string(runs + 1);
    REQUIRE(mkdir(directory_.c_str(), 0755) == 0);
    write_file(directory_ + "/input", next_input());
}

void Server::start(const RunOptions &options) {
    runs++;
    std::string first = std::to_string(sequence + 1);
    std::string out_path = options.out_is.empty() ? name(directory_, "out", sequence + 1) : options.out_is;
    std::string err_path = options.err_is.empty() ? name(directory_, "err", sequence + 1) : options.err_is;
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ > 0) return;
    if (options.own_session) setsid();
    int in = open((directory_ + "/input").c_str(), O_RDONLY);
    int o = open(out_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    int e = open(err_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (in < 0 || o < 0 || e < 0) _exit(99);
    dup2(in, 0);
    dup2(o, 1);
    dup2(e, 2);
    for (int fd = 3; fd < 256; fd++) close(fd);
    if (options.served) {
        setenv("DCS_GRAIN_DIR", directory_.c_str(), 1);
        setenv("DCS_GRAIN_SEQUENCE", first.c_str(), 1);
    }
    if (options.file_size_limit > 0) {
        struct rlimit limit = {options.file_size_limit, options.file_size_limit};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    std::vector<char *> words;
    for (std::string &word : argv_) words.push_back(word.data());
    words.push_back(nullptr);
    execv(words[0], words.data());
    _exit(98);
}

bool Server::announced() const { return file_exists(directory_ + "/announce"); }

void Server::send(int signal) {
    // As the server does it: only to a grain that announced itself.
    if (pid_ > 0 && announced()) kill(pid_, signal);
}

bool Server::ended() {
    siginfo_t info;
    std::memset(&info, 0, sizeof info);
    return waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
}

End Server::wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
    pid_ = -1;
    end.signalled = WIFSIGNALED(status);
    end.number = end.signalled ? WTERMSIG(status) : WEXITSTATUS(status);
    return end;
}

void Server::collect() {
    if (pid_ > 0) wait();
    finished = !end.signalled && end.number == 0;
    unsigned first = sequence + 1, last = sequence;
    while (file_exists(name(directory_, "checkpoint", last + 1)) || file_exists(name(directory_, "out", last + 2)))
        last++;
    // The last number may be a checkpoint that was cut off before it became visible.
    unsigned committed = last;
    while (committed > sequence && !file_exists(name(directory_, "checkpoint", committed))) committed--;
    CHECK(last - committed <= 1);
    for (unsigned k = first; k + 1 < committed; k++) CHECK_FALSE(file_exists(name(directory_, "checkpoint", k)));
    unsigned take = finished ? last + 1 : committed;
    for (unsigned k = first; k <= take; k++) {
        CHECK(file_exists(name(directory_, "out", k)));
        out += read_file(name(directory_, "out", k));
        err += read_file(name(directory_, "err", k));
    }
    if (committed > sequence) {
        Checkpoint checkpoint = parse_checkpoint(read_file(name(directory_, "checkpoint", committed)));
        REQUIRE(checkpoint.valid);
        std::string text = checkpoint.state;
        if (checkpoint.input_offset < state_.size()) text += state_.substr(checkpoint.input_offset);
        else position_ += checkpoint.input_offset - state_.size();
        REQUIRE(position_ <= input_.size());
        state_ = text;
        message = checkpoint.message;
        checkpoints += committed - sequence;
        sequence = committed;
    }
    std::string command = "rm -rf '" + directory_ + "'";
    REQUIRE(std::system(command.c_str()) == 0);
}

void Server::kill_and_collect() {
    if (pid_ > 0) {
        kill(-pid_, SIGKILL);  // with its children; there is no group yet if it is very young
        kill(pid_, SIGKILL);
    }
    collect();
}

Filtered run_filter(const std::vector<std::string> &argv, const std::string &input) {
    Server server(argv, input);
    std::string directory = server.directory();
    RunOptions options;
    options.served = false;
    options.out_is = directory + "/filtered.out";
    options.err_is = directory + "/filtered.err";
    server.start(options);
    Filtered result;
    result.end = server.wait();
    result.out = read_file(options.out_is);
    result.err = read_file(options.err_is);
    CHECK_FALSE(file_exists(directory + "/announce"));
    return result;
}

std::string grain_program(const std::string &name) { return std::string(DCS_BINARY_DIR) + "/tests/grains/" + name; }

std::string program(const std::string &name) { return std::string(DCS_BINARY_DIR) + "/bin/" + name; }

}  // namespace grain_test
