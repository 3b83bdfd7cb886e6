# SPDX-License-Identifier: MIT
"""The Debian package: what it needs, what is in it, and that it works."""

import glob
import os

from e2e import BUILD, PATIENCE, expect, expect_in, expect_true, run, test
from prefix import blocks, shell, use, write


def pack(place):
    """The packages by their names."""
    done = run(["cpack", "-G", "DEB", "-B", place.path("out")],
               patience=PATIENCE * 3, cwd=BUILD, env=place.env)
    expect(0, done.returncode, done.stdout + done.stderr)
    return {os.path.basename(path).split("_")[0]: path
            for path in glob.glob(place.path("out/*.deb"))}


def smoke(place):
    """What a first user does with an installed weir."""
    expect_in("weir 0.", shell(place, "weir --version"))
    shell(place, "weir add t --id 1 --body '{\"n\":1}'")
    expect_in('"id":"1"', shell(place, "weir run --handle t=echo "
                                       "--until-empty"))
    expect_in("verdict  RETRY", shell(place, "weir plugin try flaky || "
                                             "test $? = 10"))
    shell(place, "weir plugin new hello")
    expect_in("100% tests passed",
              shell(place, blocks(place.path("hello/README.md"))[0], "hello"))
    shell(place, "weir-bench --version; weir server stop")


@test
def packages_name_what_they_need(place):
    packages = pack(place)
    for name, parts in {
            "weir": ("Version: 0.1.0", "libev4", "libhiredis", "libjson-c",
                     "libjq1", "Recommends: weir-plugins, redis-server",
                     "Suggests: libweir-dev"),
            "libweir0": ("libev4", "libhiredis", "libjson-c"),
            "libweir-dev": ("Depends: libweir0 (= 0.1.0)",),
            "weir-plugins": ("libsqlite3-0", "libcurl", "Enhances: weir"),
    }.items():
        out = shell(place, "dpkg-deb --info " + packages.pop(name))
        for part in ("Package: %s\n" % name, *parts):
            expect_in(part, out)
        expect(name in ("libweir-dev", "weir-plugins"), "libev4" not in out)
        expect(name == "weir", "libjq" in out)
    expect({}, packages)


@test
def the_file_of_the_service_is_kept_as_it_was_changed(place):
    control = shell(place, "dpkg-deb --ctrl-tarfile %s | tar -xO ./conffiles"
                    % pack(place)["weir"])
    expect("/etc/weir/weir.conf\n", control)


def dpkg(place, words):
    return shell(place, "dpkg --root=%s --force-not-root --force-depends "
                        "--force-script-chrootless --log=/dev/null %s"
                 % (place.path("root"), words))


@test
def packages_are_installed_and_pass_their_smoke_test(place):
    packages = pack(place)
    root = place.path("root")
    os.makedirs(root + "/var/lib/dpkg/info")
    os.makedirs(root + "/var/lib/dpkg/updates")
    write(place, "root/var/lib/dpkg/status", "")
    # Their needs are met by the system that the test runs on.
    out = dpkg(place, "-i " + " ".join(packages.values()))
    for name in packages:
        expect_in("Setting up %s (" % name, out)
    use(place, root + "/usr")
    smoke(place)
    for name, path in (("weir", "/usr/bin/weir"),
                       ("weir", "/usr/lib/systemd/system/weir.service"),
                       ("weir", "/etc/weir/weir.conf"),
                       ("weir", "/usr/share/man/man1/weir.1"),
                       ("weir", "/usr/share/bash-completion/completions/weir"),
                       ("libweir0", "/usr/lib/libweir.so.0"),
                       ("libweir-dev", "/usr/lib/libweir.so"),
                       ("libweir-dev", "/usr/include/weir/plugin.h"),
                       ("weir-plugins", "/usr/lib/weir/plugins/echo.so")):
        expect_in(path + "\n", dpkg(place, "-L " + name))
    with open(root + "/usr/lib/systemd/system/weir.service") as file:
        expect_in("ExecStart=/usr/bin/weir run", file.read())
    checked = run(["weir", "check", "--config",
                   root + "/etc/weir/weir.conf"], env=place.env)
    expect_in("no topic", checked.stderr)
    dpkg(place, "-r " + " ".join(packages))
    expect_true(not os.path.exists(root + "/usr/bin/weir"), "it is gone")
