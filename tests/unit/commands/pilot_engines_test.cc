// What the programs of PBS, Torque and HTCondor print, and which options of theirs pilots do not take.
#include <cstdlib>
#include <ctime>

#include "commands/dcs/pilot/engine.h"
#include "support/about.h"
#include "support/catch.h"

using namespace dcs;
using namespace dcs::commands;

namespace {

using Words = std::vector<std::string>;

// qstat -f of OpenPBS 22.05
constexpr const char *openpbs = R"(Job Id: 1201.pbs-server
    Job_Name = dcs-0a1b2c3d-pilot1
    Job_Owner = ann@login1.example.org
    resources_used.cpupercent = 97
    resources_used.cput = 00:19:02
    resources_used.mem = 13260kb
    resources_used.ncpus = 8
    resources_used.walltime = 00:20:00
    job_state = R
    queue = workq
    server = pbs-server
    Checkpoint = u
    ctime = Thu Nov 26 00:58:01 2026
    Error_Path = login1.example.org:/home/ann/.local/state/dcs/pilots/pilot1/dcs-0
	a1b2c3d-pilot1.e1201
    exec_host = node7/0*8
    exec_vnode = (node7:ncpus=8)
    Hold_Types = n
    Rerunable = True
    Resource_List.ncpus = 8
    Resource_List.select = 1:ncpus=8
    Resource_List.walltime = 04:00:00
    stime = Thu Nov 26 00:58:03 2026
    session_id = 4711
    substate = 42
    Variable_List = PBS_O_HOME=/home/ann,PBS_O_LANG=en_US.UTF-8,
	PBS_O_PATH=/usr/local/bin:/usr/bin:/bin:/opt/pbs/bin,X = Y,
	job_state = H
    comment = Job run at Thu Nov 26 at 00:58 on (node7:ncpus=8)
    run_count = 1
    project = _pbs_project_default

Job Id: 1202.pbs-server
    Job_Name = dcs-0a1b2c3d-pilot2
    job_state = Q
    Resource_List.walltime = 100:00:00
    comment = Not Running: Insufficient amount of resource: ncpus (R: 8 A: 4 T: 64
	)

Job Id: 1203.pbs-server
    Job_Name = dcs-0a1b2c3d-pilot3
    job_state = H
    Hold_Types = u

Job Id: 1204.pbs-server
    Job_Name = dcs-0a1b2c3d-pilot4
    job_state = E
    exec_host = node8/1
    stime = Thu Nov 26 00:58:03 2026

Job Id: 1205.pbs-server
    Job_Name = dcs-0a1b2c3d-pilot5
    job_state = F
)";

// qstat -f of Torque 6.1
constexpr const char *torque = R"(Job Id: 77.torque.example.org
    Job_Name = dcs-0a1b2c3d-pilot1
    resources_used.walltime = 00:00:41
    job_state = R
    exec_host = node7/0-7
    Resource_List.nodes = 1:ppn=8
    Resource_List.walltime = 00:10:00
    Variable_List = PBS_O_QUEUE=batch,PBS_O_HOME=/home/ann,
	PBS_O_LOGNAME=ann
    start_time = Thu Nov 26 00:58:03 2026
    Walltime.Remaining = 521
    start_count = 1

Job Id: 76.torque.example.org
    Job_Name = dcs-0a1b2c3d-pilot2
    job_state = C
    exit_status = 0
)";

std::time_t at(int hour, int minute, int second) {
    std::tm parts = {};
    parts.tm_year = 126;
    parts.tm_mon = 10;
    parts.tm_mday = 26;
    parts.tm_hour = hour;
    parts.tm_min = minute;
    parts.tm_sec = second;
    parts.tm_isdst = -1;
    return std::mktime(&parts);
}

}  // namespace

TEST_CASE("pilots: jobs of OpenPBS") {
    const auto jobs = jobs_of_qstat(openpbs, at(1, 19, 3));
    REQUIRE(jobs.size() == 4);  // what has finished is none
    CHECK(jobs[0].id == "1201.pbs-server");
    CHECK(jobs[0].name == "dcs-0a1b2c3d-pilot1");
    CHECK(jobs[0].node == "node7");
    CHECK(jobs[0].state == "RUNNING");
    CHECK((!jobs[0].waits && !jobs[0].held && !jobs[0].over && jobs[0].reason.empty()));
    CHECK(jobs[0].used_s == 21 * 60);
    CHECK(jobs[0].left_s == 4 * 3600 - 21 * 60);
    CHECK(jobs[1].state == "QUEUED");
    CHECK((jobs[1].waits && !jobs[1].held && jobs[1].left_s == -1));
    CHECK(jobs[1].reason == "Not Running: Insufficient amount of resource: ncpus (R: 8 A: 4 T: 64)");
    CHECK((jobs[2].waits && jobs[2].held && jobs[2].state == "HELD"));
    CHECK((jobs[3].over && !jobs[3].waits && jobs[3].node == "node8" && jobs[3].left_s == -1));
}

TEST_CASE("pilots: jobs of Torque") {
    const auto jobs = jobs_of_qstat(torque, at(0, 59, 23));
    REQUIRE(jobs.size() == 1);  // what has completed is none
    CHECK(jobs[0].id == "77.torque.example.org");
    CHECK(jobs[0].node == "node7");
    CHECK(jobs[0].used_s == 80);
    CHECK(jobs[0].left_s == 520);
}

TEST_CASE("pilots: a clock of PBS that is not ours misleads by minutes at most") {
    CHECK(jobs_of_qstat(torque, at(0, 30, 0))[0].used_s == 41);
    CHECK(jobs_of_qstat(torque, at(9, 0, 0))[0].used_s == 41 + 180);
    CHECK(jobs_of_qstat("", 0).empty());
    CHECK(jobs_of_qstat("qstat: cannot connect to server pbs-server (errno=15010)\n\tmore\n    x = y\n", 0).empty());
}

TEST_CASE("pilots: limits in the form of PBS") {
    CHECK(pbs_time(60) == "00:01:00");
    CHECK(pbs_time(61.5) == "00:01:02");
    CHECK(pbs_time(4 * 3600 + 59) == "04:00:59");
    CHECK(pbs_time(30 * 86400) == "720:00:00");
}

TEST_CASE("pilots: jobs of HTCondor") {
    // condor_q -af:t of HTCondor 23.4
    const auto jobs = jobs_of_condor(
        "118\t0\tdcs-0a1b2c3d-pilot1\t2\tslot1_2@node7.example.org\t1795651083\t1795651143\t14400\tundefined\n"
        "119\t0\tdcs-0a1b2c3d-pilot2\t1\tundefined\tundefined\t1795651143\t14400\tundefined\n"
        "120\t0\tdcs-0a1b2c3d-pilot3\t5\tundefined\t1795651000\t1795651143\t14400\tError from slot1@node8: "
        "Failed to execute '/home/ann/job':\tPermission denied\n"
        "121\t0\tdcs-0a1b2c3d-pilot4\t3\tslot1@node9\t1795651083\t1795651143\tundefined\tundefined\n"
        "122\t0\tdcs-0a1b2c3d-pilot5\t4\tundefined\t1795651083\t1795651143\t14400\tundefined\n"
        "123\t0\tdcs-0a1b2c3d-pilot6\t7\tslot1@node9\t1795651083\t1795651143\t14400\tundefined\n"
        "-- Failed to fetch ads\n"
        "124\t0\tdcs\n");
    REQUIRE(jobs.size() == 5);  // what has completed is none, nor are other lines
    CHECK(jobs[0].id == "118.0");
    CHECK(jobs[0].name == "dcs-0a1b2c3d-pilot1");
    CHECK(jobs[0].node == "node7.example.org");
    CHECK((jobs[0].state == "RUNNING" && !jobs[0].waits && !jobs[0].over));
    CHECK((jobs[0].used_s == 60 && jobs[0].left_s == 14340));
    CHECK((jobs[1].state == "IDLE" && jobs[1].waits && !jobs[1].held && jobs[1].left_s == -1));
    CHECK((jobs[1].node.empty() && jobs[1].reason.empty()));
    CHECK((jobs[2].state == "HELD" && jobs[2].waits && jobs[2].held && jobs[2].used_s == 0));
    CHECK(jobs[2].reason == "Error from slot1@node8: Failed to execute '/home/ann/job':\tPermission denied");
    CHECK((jobs[3].state == "REMOVED" && jobs[3].over && jobs[3].left_s == -1));
    CHECK((jobs[4].state == "SUSPENDED" && !jobs[4].waits && !jobs[4].over));
}

TEST_CASE("pilots: what a command prints for a new job is its number, or none") {
    CHECK(*job_of_sbatch("17") == "17");
    CHECK(*job_of_sbatch("17;cluster2") == "17");
    CHECK(*job_of_sbatch("Welcome to the cluster\n17\n") == "17");
    CHECK(*job_of_qsub("Your project is p17.\n1201.pbs-server") == "1201.pbs-server");
    CHECK(*job_of_qsub("1201") == "1201");
    CHECK(*job_of_condor_submit("Submitting job(s).\n1 job(s) submitted to cluster 118.") == "118.0");
    for (const char *none :
         {"", "Submitted", "17 jobs", "17-18", "-1", "error 17", "17\nBye", "submitted to cluster ."}) {
        CAPTURE(none);
        for (const auto &job : {job_of_sbatch(none), job_of_qsub(none), job_of_condor_submit(none)}) {
            REQUIRE(job.status().code == Code::refused);
            CHECK(job.status().text.find("printed no number of a job") != std::string::npos);
        }
    }
    CHECK(job_of_sbatch("17\nBye").status().text == about("sbatch Bye squeue"));
}

TEST_CASE("pilots: options of an engine that its command sets itself") {
    const auto own = [](const char *engine, const Words &options) {
        return engine_kind(engine)->make("/nowhere")->own_option_in(options);
    };
    CHECK(own("slurm", {"--partition=short", "--mem", "2G"}).empty());
    CHECK(own("slurm", {"--time=1:00:00"}) == "--time");
    CHECK(own("slurm", {"-Jname"}) == "-J");
    CHECK(own("slurm", {"--nodelist=n1"}).empty());
    CHECK(own("pbs", {"-q", "short", "-l", "select=1:ncpus=8:mem=16gb", "-A", "p17"}).empty());
    CHECK(own("pbs", {"-l", "mem=1gb,walltime=60"}) == "-l walltime");
    CHECK(own("pbs", {"-lwalltime=60"}) == "-l walltime");
    CHECK(own("pbs", {"-l", "min_walltime=60"}) == "-l walltime");
    CHECK(own("pbs", {"-Nname"}) == "-N");
    CHECK(own("pbs", {"-J", "1-5"}) == "-J");
    CHECK(own("condor", {"-append", "request_memory = 2G"}).empty());
    CHECK(own("condor", {"-name", "schedd2"}) == "-name");
    CHECK(engine_kind("lsf") == nullptr);
}
