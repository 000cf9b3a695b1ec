"""Everyday work inside: Python, Node, Go, Rust and Java projects, offline, with the machine's toolchains."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from gsd_core.run import private_home
from tests.sandbox.box import Box, git, require_sandbox


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Box:
    """Return the sandbox around an empty project, with the real home's toolchains and caches."""
    require_sandbox()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # Copying the machine's caches takes longer than the tests, and none of them needs one.
    monkeypatch.setattr(private_home, "MAX_BYTES", 0)
    project = tmp_path / "shop"
    project.mkdir()
    git(project, "init", "-q")
    git(project, "config", "user.name", "Ada")
    git(project, "config", "user.email", "ada@example.org")
    git(project, "commit", "-qm", "first", "--allow-empty")
    return Box.around(project)


def need(*programs: str) -> None:
    """Skip the test if a program is not installed."""
    if missing := [name for name in programs if shutil.which(name) is None]:
        pytest.skip(f"{' and '.join(missing)} not installed")


def write(box: Box, files: dict[str, str]) -> None:
    for name, text in files.items():
        (box.project / name).parent.mkdir(parents=True, exist_ok=True)
        (box.project / name).write_text(text)


@pytest.mark.slow
def test_python_makes_an_environment_and_installs_a_package(work: Box) -> None:
    write(
        work,
        {
            "lib/pyproject.toml": (
                '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
            ),
            # The project's own build backend, because neither setuptools nor a registry may be there.
            "lib/backend.py": (
                "import zipfile\n"
                "def build_wheel(folder, config_settings=None, metadata_directory=None):\n"
                "    with zipfile.ZipFile(f'{folder}/lib-1-py3-none-any.whl', 'w') as wheel:\n"
                "        wheel.write('lib.py')\n"
                "        info = 'Metadata-Version: 2.1\\nName: lib\\nVersion: 1\\n'\n"
                "        wheel.writestr('lib-1.dist-info/METADATA', info)\n"
                "        tags = 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'\n"
                "        wheel.writestr('lib-1.dist-info/WHEEL', tags)\n"
                "        wheel.writestr('lib-1.dist-info/RECORD', '')\n"
                "    return 'lib-1-py3-none-any.whl'\n"
            ),
            "lib/lib.py": "def double(x): return 2 * x\n",
            "test_app.py": (
                "import unittest, tempfile, lib, multiprocessing\n"
                "class T(unittest.TestCase):\n"
                "    def test(self):\n"
                "        self.assertEqual(lib.double(2), 4)\n"
                "        with tempfile.NamedTemporaryFile() as file: file.write(b'x')\n"
                "        multiprocessing.Lock()\n"
            ),
        },
    )
    work.out(
        """
        set -e
        "$1" -m venv .venv
        .venv/bin/pip install -q --no-index ./lib
        .venv/bin/python -m unittest -q
        .venv/bin/python -c 'import pip; print(pip.__file__)' | grep "$PWD"
        """,
        sys.executable,
    )

    assert (work.project / ".venv" / "bin" / "python").exists()


@pytest.mark.slow
def test_node_installs_from_a_lock_file_and_tests(work: Box) -> None:
    need("node", "npm")
    write(
        work,
        {
            "lib/package.json": '{"name": "lib", "version": "1.0.0", "bin": {"lib-tool": "tool.js"}}',
            "lib/index.js": "module.exports = x => 2 * x;\n",
            "lib/tool.js": "#!/usr/bin/env node\nconsole.log('tool works');\n",
            "package.json": (
                '{"name": "shop", "version": "1.0.0", "dependencies": {"lib": "file:lib"},'
                ' "scripts": {"prepare": "node prepare.js", "tool": "lib-tool", "test": "node --test"}}'
            ),
            # The part of husky's installer that concerns git.
            "prepare.js": (
                "const {execFileSync: run} = require('child_process'), fs = require('fs');\n"
                "fs.mkdirSync('.husky/_', {recursive: true});\n"
                "fs.writeFileSync('.husky/_/pre-commit', '#!/bin/sh\\necho checked\\n', {mode: 0o755});\n"
                "run('git', ['config', 'core.hooksPath', '.husky/_']);\n"
            ),
            "app.test.js": (
                "const test = require('node:test'), assert = require('node:assert');\n"
                "test('doubles', () => assert.equal(require('lib')(2), 4));\n"
            ),
        },
    )
    out = work.out(
        """
        set -e
        npm install --offline --no-audit --no-fund >/dev/null
        rm -rf node_modules
        npm ci --offline --no-audit --no-fund >/dev/null
        npm test 2>&1 | grep -E 'pass 1'
        npm run -s tool
        npx --offline lib-tool
        git add -A && git commit -m second 2>&1 | grep checked
        npm config get cache
        """
    )

    assert out.splitlines()[-4:] == ["tool works", "tool works", "checked", f"{work.home}/.npm"]
    assert git(work.project, "log", "--format=%s") == "first"
    assert git(work.project, "config", "--list", "--local").count("hookspath") == 0


@pytest.mark.slow
def test_vitest_runs_and_husky_checks_the_agents_commits(work: Box) -> None:
    need("node", "npm")
    tools = Path(os.environ.get("GSD_PEER_DIR", "/nowhere"), "tools", "node_modules")
    if not tools.is_dir():
        reason = "no vitest and husky: see tests/peer/install.sh"
        pytest.fail(reason) if os.environ.get("GSD_REQUIRE_SANDBOX") == "1" else pytest.skip(reason)
    shutil.copytree(tools, work.project / "node_modules", symlinks=True)
    write(
        work,
        {
            ".gitignore": "node_modules\n",
            "package.json": '{"name": "shop", "private": true, "type": "module"}',
            "double.ts": "export const double = (x: number): number => 2 * x;\n",
            "double.test.ts": (
                "import {expect, test} from 'vitest';\nimport {double} from './double';\n"
                "test('doubles', () => expect(double(2)).toBe(4));\n"
            ),
        },
    )

    out = work.out(
        """
        set -e
        npx --offline vitest run 2>&1
        npx --offline husky
        echo 'npx --offline vitest run' > .husky/pre-commit
        git add -A; git commit -m second 2>&1; git log --format=%s
        sed -i 's/2 [*] x/3 * x/' double.ts
        git commit -am third >/dev/null 2>&1 || echo refused
        git log --format=%s | head -1
        """
    )

    assert out.count("1 passed") == 4  # files and tests, by the agent and by its hook
    assert out.splitlines()[-4:] == ["second", "first", "refused", "second"]
    assert git(work.project, "log", "--format=%s") == "first"
    assert git(work.project, "config", "--list", "--local").count("hookspath") == 0


@pytest.mark.slow
def test_go_builds_and_tests(work: Box) -> None:
    need("go")
    write(
        work,
        {
            "go.mod": "module example.org/shop\n\ngo 1.19\n",
            "shop.go": "package shop\n\nfunc Double(x int) int { return 2 * x }\n",
            "shop_test.go": (
                'package shop\n\nimport "testing"\n\n'
                "func TestDouble(t *testing.T) {\n\tif Double(2) != 4 {\n\t\tt.Fatal(t.TempDir())\n\t}\n}\n"
            ),
            "cmd/shop/main.go": 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("runs") }\n',
        },
    )

    out = work.out("go vet ./... && go test ./... && go run ./cmd/shop && go env GOCACHE GOMODCACHE")

    assert out.splitlines()[-3:] == ["runs", f"{work.home}/.cache/go-build", f"{work.home}/go/pkg/mod"]


@pytest.mark.slow
def test_rust_builds_and_tests(work: Box) -> None:
    need("cargo")
    write(
        work,
        {
            "Cargo.toml": (
                '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n'
                '[dependencies]\nlib = { path = "lib" }\n'
            ),
            "src/main.rs": 'fn main() { println!("{}", lib::double(2)); }\n#[test]\nfn runs() { main() }\n',
            "lib/Cargo.toml": '[package]\nname = "lib"\nversion = "0.1.0"\nedition = "2021"\n',
            "lib/src/lib.rs": "pub fn double(x: i32) -> i32 { 2 * x }\n",
        },
    )

    out = work.out("cargo test --offline 2>&1 | grep 'test result: ok. 1 passed'; cargo run -q --offline")

    assert out.endswith("\n4")


@pytest.mark.slow
def test_java_compiles_and_runs(work: Box) -> None:
    need("javac", "java")
    write(
        work,
        {
            "Shop.java": (
                "public class Shop { public static void main(String[] a) throws Exception {\n"
                '  java.nio.file.Files.createTempFile("a", "b");\n'
                '  System.out.println(System.getProperty("user.home")); } }\n'
            )
        },
    )

    assert work.out("javac Shop.java && java Shop") == str(work.home)


@pytest.mark.slow
def test_maven_reads_its_project_offline_and_uses_the_private_repository(work: Box) -> None:
    need("mvn")
    write(
        work,
        {
            "pom.xml": (
                "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId>"
                "<artifactId>shop</artifactId><version>1</version><packaging>pom</packaging></project>"
            )
        },
    )

    out = work.out("mvn -o -B -X validate")

    assert "BUILD SUCCESS" in out
    assert f"Using local repository at {work.home}/.m2/repository" in out


def test_a_server_answers_on_localhost(work: Box) -> None:
    script = """
        import http.server, threading, urllib.request
        server = http.server.HTTPServer(("localhost", 0), http.server.SimpleHTTPRequestHandler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(urllib.request.urlopen(f"http://localhost:{server.server_port}/answer.txt").read().decode())
    """
    write(work, {"answer.txt": "served", "serve.py": "\n".join(line[8:] for line in script.splitlines())})

    assert work.out('"$1" serve.py 2>/dev/null', sys.executable) == "served"


def test_a_server_in_the_background_is_reached_with_curl(work: Box) -> None:
    need("curl")
    write(work, {"answer.txt": "served"})
    script = """
        "$1" -u -m http.server 0 --bind 127.0.0.1 >log 2>&1 &
        until port=$(grep -oE 'port [0-9]+' log); do sleep 0.05; done
        curl -sS "http://127.0.0.1:${port#port }/answer.txt"
    """

    assert work.out(script, sys.executable) == "served"


def test_shells_and_system_tools_work(work: Box) -> None:
    work.out(
        """
        set -e
        test "$(cat /etc/os-release | wc -l)" -gt 0
        id -un; getent hosts localhost; date; locale >/dev/null; mktemp -d; mktemp -p /var/tmp
        echo x | tee /dev/stderr 2>/dev/null; : > /dev/null; head -c 4 /dev/urandom | wc -c
        cat <(echo process substitution); exec 3<>/dev/shm/x; nproc; ps aux >/dev/null || true
        tar cf - . | tar tf - >/dev/null; ln -s target link; readlink link; mkfifo fifo
        touch -d yesterday fifo
        """
    )
