#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Scripts can be parsed, and shellcheck, where installed, has no warning."""

import re

import lint


def shell_of(text):
    """bash, sh, or None when the file is no shell script."""
    match = re.match(r"#!\s*(?:/usr/bin/env\s+|/(?:usr/)?bin/)(bash|sh)\b",
                     text)
    return match.group(1) if match else None


def check(tree, report):
    shellcheck = lint.tool("shellcheck")
    if shellcheck is None:
        report.note("shellcheck is not installed; scripts are only parsed")
    for path in tree.paths:
        shell = shell_of(tree.text(path)[:80])
        if shell is None:
            continue
        report.checked.add(path)
        code, output = lint.output_of(shell, "-n", path, cwd=tree.root)
        if code != 0:
            match = re.search(r"line (\d+)", output)
            report.finding(path, int(match.group(1)) if match else 1,
                           f"{shell} cannot parse this")
        elif shellcheck:
            _, output = lint.output_of(
                shellcheck, "--norc", "--severity=warning", "--format=gcc",
                path, cwd=tree.root)
            for line, what in re.findall(r":(\d+):\d+: \w+: (.*)", output):
                report.finding(path, int(line), what)


CASES = {
    "what is allowed": ({
        "run": '#!/usr/bin/env bash\necho "$1"\n',
        ".ci/run": "#!/bin/sh\nexec true\n",
        "README": "if then fi\n",
    }, []),
    "what cannot be parsed": (
        {".ci/run": "#!/usr/bin/env bash\necho\nfi\n"},
        [".ci/run:3: bash cannot parse this"]),
    "what shellcheck warns about": (
        {"run": "#!/bin/bash\ncd /tmp\n"},
        ["run:2: Use 'cd ... || exit'"]),
}

if __name__ == "__main__":
    if lint.tool("shellcheck") is None:
        CASES.popitem()
    lint.main(check, CASES)
