# SPDX-License-Identifier: MIT
"""What is installed can be used from anywhere, by what its pages say."""

import os
import re
import shutil
import subprocess

from e2e import ROOT, WEIR, expect, expect_in, expect_true, test
from prefix import blocks, install, shell, write

TRIAL = """
#include <weir/test.h>

static enum weir_verdict run(void *self, struct weir_job *job)
{
    (void)self;
    return weir_retry(job, "later");
}

int main()
{
    struct weir_trial_options options = weir_trial_options();
    struct weir_trial_job job = weir_trial_job();
    struct weir_trial *trial = 0;
    bool is_good;

    options.serve.run = run;
    job.json = "{}";
    if (weir_trial_open(&options, &trial, 0) < 0 ||
        weir_trial_add(trial, &job, 0) < 0)
        return 1;
    weir_trial_advance(trial, 0);
    is_good = weir_trial_last(trial)->delay_ms == 15000;
    weir_trial_free(trial);
    return is_good ? 0 : 1;
}
"""
PLUGIN = """
#include <weir/plugin.h>

static enum weir_verdict run(void *, struct weir_job *job)
{
    weir_job_log(job, WEIR_LEVEL_INFO, "from C++");
    return WEIR_DONE;
}

WEIR_PLUGIN_EXPORT = {
    WEIR_PLUGIN_ABI, sizeof(struct weir_plugin), "cpp", 0, 0, 0, 0, 0, 0,
    run, 0, 0, 0,
};
"""
C_FLAGS = "-std=c11 -Wall -Wextra -Wpedantic -Werror -D_POSIX_C_SOURCE=200809L"
# A table that a source of today fills may have grown by tomorrow.
CXX_FLAGS = ("-std=c++11 -Wall -Wextra -Wpedantic -Werror "
             "-Wno-missing-field-initializers")


@test
def everything_is_where_it_belongs(place):
    prefix = install(place)
    for name in ("bin/weir", "bin/weir-bench", "include/weir/base.h",
                 "include/weir/body.h", "include/weir/change.h",
                 "include/weir/cron.h", "include/weir/job.h",
                 "include/weir/loop.h", "include/weir/notice.h",
                 "include/weir/past.h",
                 "include/weir/plugin.h", "include/weir/plugin.hpp",
                 "include/weir/redis.h", "include/weir/weir.hpp",
                 "include/weir/stats.h", "include/weir/take.h",
                 "include/weir/test.h",
                 "include/weir/weir.h", "include/weir/worker.h",
                 "lib/libweir.a", "lib/libweir.so",
                 "lib/weir/plugins/archive.so",
                 "lib/weir/plugins/deliver.so", "lib/weir/plugins/echo.so",
                 "lib/weir/plugins/flaky.so", "lib/pkgconfig/weir.pc",
                 "lib/pkgconfig/weir-plugin.pc",
                 "lib/cmake/weir/weirConfig.cmake",
                 "lib/systemd/system/weir.service",
                 "lib/systemd/system/weir@.service",
                 "share/weir/scripts/push.lua",
                 "share/weir/scripts/pull.lua",
                 "share/weir/scripts/finish.lua",
                 "share/weir/scripts/settle.lua",
                 "share/weir/scripts/beat.lua",
                 "share/doc/weir/wire-vectors.jsonl", "share/doc/weir/wire.md",
                 "share/bash-completion/completions/weir",
                 "share/man/man1/weir.1", "share/man/man1/weir-bench.1",
                 "share/man/man5/weir.conf.5", "share/man/man7/weir-plugin.7",
                 "share/man/man7/weir-guarantees.7",
                 "share/doc/weir/guarantees.md", "share/doc/weir/kinds.md"):
        expect_true(os.path.isfile(os.path.join(prefix, name)), name)
    expect(["base.h", "body.h", "change.h", "cron.h", "job.h", "loop.h",
            "notice.h", "past.h", "plugin.h", "plugin.hpp", "redis.h",
            "stats.h", "take.h", "test.h", "thread.h", "weir.h", "weir.hpp",
            "worker.h"],
           sorted(os.listdir(prefix + "/include/weir")))


@test
def links_of_the_installed_pages_lead_somewhere(place):
    folder = install(place) + "/share/doc/weir/"
    pages = [name for name in os.listdir(folder)
             if name.endswith(".md") and name != "README.md"]
    expect_true(len(pages) > 8, "there are pages: %r" % pages)
    for page in pages:
        with open(folder + page, encoding="utf-8") as file:
            text = re.sub(r"^```.*?^```", "", file.read(), flags=re.M | re.S)
            links = re.findall(r"\]\(([^)#:]+)[^):]*\)", text)
        for link in links:
            expect_true(os.path.exists(folder + link),
                        "%s in %s" % (link, page))


@test
def the_shared_library_shows_public_names_only(place):
    prefix = install(place)
    out = shell(place, "nm -D --defined-only %s/lib/libweir.so" % prefix)
    names = [line.split()[2] for line in out.splitlines()]
    expect_true(len(names) > 30, "there are some: %r" % names)
    expect([], [name for name in names
                if not name.startswith("weir_") or
                name.startswith("weir__")])
    expect_in("SONAME", shell(place, "objdump -p %s/lib/libweir.so | "
                                     "grep 'SONAME *libweir.so.0$'" % prefix))


@test
def a_new_plugin_is_built_tested_tried_run_and_installed(place):
    install(place)
    shell(place, "weir plugin new hello")
    build, serve, sanitize = blocks(place.path("hello/README.md"))
    out = shell(place, build, "hello")
    expect_in("100% tests passed", out)
    expect_in("name     hello", out)
    expect_in("verdict  DONE", out)
    expect_in("hello, Ada", out)
    expect_in("good morning, Ada", shell(place, serve, "hello"))
    expect_in("100% tests passed", shell(place, sanitize, "hello"))
    shell(place, "cmake --install hello/build; weir add greet "
                 "--body '{\"name\":\"Bob\"}'")
    expect_in("hello, Bob",
              shell(place, "weir run --handle greet=hello --until-empty"))


@test
def the_commands_of_the_tutorial_make_a_plugin(place):
    install(place)
    out = shell(place, "".join(blocks(ROOT + "/docs/plugins.md")[:5]))
    for part in ("100% tests passed", "verdict  DONE",
                 "greet 1: good morning, Ada", "nothing wrong, 1 topic"):
        expect_in(part, out)


@test
def sources_compile_by_the_commands_of_the_tutorial(place):
    install(place)
    page = ROOT + "/docs/plugins.md"
    with open(page, encoding="utf-8") as file:
        for name, source in re.findall(r"`(\w+\.c)`:\n\n```c\n(.*?)```",
                                       file.read(), re.S):
            write(place, name, source)
    for command in [block for block in blocks(page) if block.startswith("cc")]:
        shell(place, command)
    expect_true(os.path.exists(place.path("verdicts.so")), "a plugin")
    expect_true(os.path.exists(place.path("test_retry")), "a test")


@test
def a_new_plugin_builds_against_pkg_config_alone(place):
    prefix = install(place)
    shutil.rmtree(prefix + "/lib/cmake")
    shell(place, "weir plugin new hello")
    out = shell(place, blocks(place.path("hello/README.md"))[0], "hello")
    expect_in("100% tests passed", out)


@test
def a_new_plugin_builds_against_a_build_tree(place):
    place.env["PATH"] = os.path.dirname(WEIR) + ":" + place.env["PATH"]
    shell(place, "weir plugin new hello")
    out = shell(place, blocks(place.path("hello/README.md"))[0], "hello")
    expect_in("100% tests passed", out)


@test
def a_new_plugin_builds_against_a_folder_of_headers(place):
    place.env["PATH"] = os.path.dirname(WEIR) + ":" + place.env["PATH"]
    shell(place, "weir plugin new hello")
    out = shell(place, "cmake -B build -DWEIR_INCLUDE_DIR=%s/core/include && "
                       "cmake --build build && weir plugin try build/hello.so "
                       "--body '{\"name\":\"Ada\"}'" % ROOT, "hello")
    expect_in("the test is not built", out)
    expect_in("hello, Ada", out)


@test
def a_c_program_compiles_by_pkg_config(place):
    install(place)
    shell(place, "cc %s $(pkg-config --cflags weir) -o embed "
                 "%s/docs/examples/embed.c $(pkg-config --libs weir) -lev"
          % (C_FLAGS, ROOT))
    shell(place, "weir add t --delay 1h; weir server status")
    done = subprocess.run([place.path("embed"), "nonsense"], text=True,
                          env=place.env, capture_output=True)
    expect_true(done.returncode not in (0, 127) and done.stderr != "",
                "it runs and refuses: %r" % done.stderr)


@test
def a_host_compiles_by_the_commands_of_the_pages(place):
    place.env.pop("WEIR_PLUGIN_PATH")
    prefix = place.path("prefix")
    (script,) = [block for block in blocks(ROOT + "/README.md")
                 if block.startswith("cmake --install")]
    page = ROOT + "/docs/embedding.md"
    with open(page, encoding="utf-8") as file:
        write(place, "host.c",
              re.search(r"```c\n(.*?)```", file.read(), re.S).group(1))
    script = script.replace("/opt/weir", prefix) \
        .replace("--install build", "--install " + os.path.dirname(WEIR))
    out = shell(place, 'LD_LIBRARY_PATH=""; PKG_CONFIG_PATH=""\n' + script +
                blocks(page)[0] + "weir topic list\n"
                "./host unix://%s/redis.sock" % place.data)
    expect_in("hello, Ada", out)


@test
def a_c_program_links_the_static_library(place):
    prefix = install(place)
    os.remove(prefix + "/lib/libweir.so")
    write(place, "trial.c", TRIAL.replace("main()", "main(void)")
          .replace("weir_trial_options()", "{0}")
          .replace("weir_trial_job()", "{0}").replace(
              "struct {0}", "struct weir_trial_options"))
    shell(place, "cc %s $(pkg-config --cflags weir) -o trial trial.c "
                 "$(pkg-config --static --libs weir) && ./trial" % C_FLAGS)
    expect_true("libweir" not in shell(place, "ldd trial"), "it is inside")
    expect_true("libjq" not in shell(place, "ldd trial"), "it needs no jq")


@test
def only_the_command_needs_jq(place):
    prefix = install(place)
    needs = shell(place, "readelf -d %s/lib/libweir.so" % prefix)
    expect_in("libhiredis", needs)
    expect_true("libjq" not in needs, needs)
    expect_in("libjq", shell(place, "readelf -d %s/bin/weir" % prefix))


@test
def a_cpp_program_compiles_links_and_runs(place):
    install(place)
    write(place, "trial.cc", "#include <weir/plugin.h>\n"
                             "#include <weir/weir.h>\n" + TRIAL)
    shell(place, "g++ %s $(pkg-config --cflags weir) -o trial trial.cc "
                 "$(pkg-config --libs weir) && ./trial" % CXX_FLAGS)


@test
def a_cpp_plugin_compiles_and_handles_a_job(place):
    install(place)
    write(place, "cpp.cc", PLUGIN)
    out = shell(place, "g++ %s -shared -fPIC $(pkg-config --cflags "
                       "weir-plugin) -o cpp.so cpp.cc && "
                       "weir plugin try cpp.so" % CXX_FLAGS)
    expect_in("from C++", out)


@test
def a_cmake_project_finds_library_and_plugin_directory(place):
    prefix = install(place)
    write(place, "trial.cc", TRIAL)
    write(place, "CMakeLists.txt", """
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES CXX)
find_package(weir 0.1 REQUIRED)
message(STATUS "plugins: ${WEIR_PLUGIN_DIR}")
add_executable(trial trial.cc)
target_link_libraries(trial PRIVATE weir::weir)
""")
    out = shell(place, "cmake -B b -DCMAKE_PREFIX_PATH=%s && "
                       "cmake --build b && b/trial" % prefix)
    expect_in("plugins: %s/lib/weir/plugins" % prefix, out)
    expect_in(os.path.realpath(prefix + "/lib/weir/plugins"),
              os.path.realpath(shell(place, "pkg-config --variable=plugindir "
                                            "weir").strip()))


@test
def manual_pages_are_well_formed(place):
    prefix = install(place)
    for page in ("man1/weir.1", "man1/weir-bench.1", "man5/weir.conf.5",
                 "man7/weir-plugin.7", "man7/weir-guarantees.7"):
        path = "%s/share/man/%s" % (prefix, page)
        expect("", shell(place, "groff -mandoc -Tutf8 -ww -z " + path))
        expect([], re.findall("@[A-Z_]+@", open(path).read()),
                    "all is filled in: " + page)


@test
def the_service_runs_what_is_installed(place):
    prefix = install(place)
    for name in ("weir.service", "weir@.service"):
        with open("%s/lib/systemd/system/%s" % (prefix, name)) as file:
            unit = file.read()
        expect_in("ExecStart=%s/bin/weir run --config "
                  "${CREDENTIALS_DIRECTORY}/weir.conf\n" % prefix, unit)
        expect_in("Type=notify\n", unit)
