#pragma once
// turn::Outside of the daemon: the event loop, the clocks, the log, the storage and probing threads.
#include <functional>

#include "net/loop.h"
#include "scheduler/shell/import_threads.h"
#include "scheduler/shell/library_thread.h"
#include "scheduler/shell/local_users.h"
#include "scheduler/shell/prober.h"
#include "storage/storage_thread.h"
#include "scheduler/shell/suspect.h"
#include "scheduler/shell/tls_door.h"
#include "scheduler/turn/outside.h"

namespace dcs::shell {

class RealOutside final : public turn::Outside {
public:
    RealOutside(net::Loop &loop, storage::StorageThread &storage, LibraryThread &library, ImportThreads &imports,
                Suspect &suspect, Prober &prober, LocalUsers &users)
        : loop_(loop),
          storage_(storage),
          library_(library),
          imports_(imports),
          suspect_(suspect),
          prober_(prober),
          users_(users) {}
    Instant now() override;
    std::int64_t wall_s() override;
    std::int64_t wall_ms() override;
    Token fresh_token() override;
    void send(ConnId conn, const wire::AnyMessage &message, core::RequestId request) override;
    void close(ConnId conn) override;
    void log(turn::Level level, const std::string &line) override;
    void start_commit(std::vector<store::TreeUpdate> updates, store::Room room) override;
    void working_on(const SessionKey &session) override;
    void working_for(const std::string &who) override;
    void start_library_job(library::Job job) override { library_.start(std::move(job)); }
    std::optional<Result<std::string>> decode_import(std::uint64_t id, std::string stream) override {
        imports_.start(id, std::move(stream));
        return std::nullopt;
    }
    void probe(const core::ProbeHost &probe) override;
    Status reread_settings(bool move_grains) override { return reread_(move_grains); }
    void set_log_level(const std::string &level) override;
    TlsDoor tls_door() override;
    Result<wire::Joined> issue_certificate(const std::string &host, const std::string &public_key,
                                           core::HostRole role) override;
    Result<wire::Begun> issue_program(const core::SendProgram &program) override;
    Status check_login(const std::string &user) override { return users_.check_login(user); }
    Status remove_host_line(const std::string &host) override { return remove_line_(host); }
    void on_remove_line(std::function<Status(const std::string &)> remove) { remove_line_ = std::move(remove); }
    void use_tls(shell::TlsDoor *door) { tls_ = door; }
    // What reread_settings() is: the Service has the files.
    void on_reread(std::function<Status(bool move_grains)> reread) { reread_ = std::move(reread); }
    std::vector<wire::ProblemRow> more_problems() override { return more_problems_(); }
    void on_more_problems(std::function<std::vector<wire::ProblemRow>()> more) { more_problems_ = std::move(more); }
    std::string store_path() override { return store_path_; }
    void say_store_path(const std::string &path) { store_path_ = path; }
    wire::MirrorStatus copy_of_store() override { return copy_of_store_(); }
    void on_copy_of_store(std::function<wire::MirrorStatus()> ask) { copy_of_store_ = std::move(ask); }
    [[noreturn]] void fatal(const std::string &why) override;

private:
    net::Loop &loop_;
    storage::StorageThread &storage_;
    LibraryThread &library_;
    ImportThreads &imports_;
    Suspect &suspect_;
    Prober &prober_;
    LocalUsers &users_;
    shell::TlsDoor *tls_ = nullptr;
    std::string store_path_;
    std::function<Status(const std::string &)> remove_line_;
    std::function<std::vector<wire::ProblemRow>()> more_problems_ = [] { return std::vector<wire::ProblemRow>(); };
    std::function<wire::MirrorStatus()> copy_of_store_ = [] { return wire::MirrorStatus(); };
    std::function<Status(bool move_grains)> reread_ = [](bool) { return Status::ok(); };
};

}  // namespace dcs::shell
