"""The policy as data: programs and their subcommands."""

from __future__ import annotations

from collections.abc import Mapping

KEYWORDS = frozenset(
    {*("if", "then", "else", "elif", "fi", "while", "until", "do", "done", "esac", "{", "}", "!", "coproc")}
)

# Programs that run the rest of their line: options that take a value, and words before the rest.
WRAPPERS: dict[str, tuple[str, int]] = {
    "nohup": ("", 0), "setsid": ("", 0), "time": ("-o -f", 0), "command": ("", 0), "builtin": ("", 0),
    "exec": ("-a", 0), "nice": ("-n --adjustment", 0), "ionice": ("-c -n", 0), "chrt": ("", 1),
    "timeout": ("-s -k --signal --kill-after", 1), "gtimeout": ("-s -k --signal --kill-after", 1),
    "stdbuf": ("-i -o -e", 0), "watch": ("-n --interval", 0), "unbuffer": ("", 0), "caffeinate": ("-t -w", 0),
    "strace": ("-o -e -p -s", 0), "flock": ("-w -E", 1), "busybox": ("", 0), "toybox": ("", 0),
    "xargs": ("-I -n -P -L -d -s -a -E -i --max-args --max-procs --delimiter --arg-file", 0),
    "parallel": ("-j --jobs", 0), "cross-env": ("", 0), "npx": ("-p --package", 0), "bunx": ("", 0),
    "uvx": ("--with --from -p --python", 0), "chronic": ("", 0), "ltrace": ("-o -e", 0), "taskset": ("", 1),
    "uv run": ("--with -p --python --project --directory --group --extra --env-file --package -m", 0),
    "poetry run": ("", 0), "pipenv run": ("", 0), "pdm run": ("", 0), "hatch run": ("", 0),
    "rye run": ("", 0),
    "pnpm exec": ("", 0), "pnpm dlx": ("", 0), "yarn exec": ("", 0), "yarn dlx": ("", 0), "bun x": ("", 0),
    "npm exec": ("-p --package", 0), "bundle exec": ("", 0), "mise exec": ("", 0), "pipx run": ("--spec", 0),
}  # fmt: skip

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "rbash", "mksh"})
INTERPRETERS = frozenset(
    {"python", "python3", "node", "perl", "ruby", "php", "deno", "bun", "lua", "tclsh", "Rscript"}
)
DOWNLOADERS = frozenset({"curl", "wget", "http", "https", "xh", "aria2c", "fetch", "lynx"})


def _reasons(table: Mapping[str, str]) -> dict[str, str]:
    """Turn a table of reasons and their programs around."""
    return {program: reason for reason, programs in table.items() for program in programs.split()}


DENIED = _reasons(
    {
        "nothing here needs more rights": "sudo su doas pkexec run0 gosu",
        "end only processes of your own, by their id": "pkill killall skill snice xkill",
        "the machine stays on": "shutdown reboot halt poweroff telinit",
        "nothing may go on after this work": "crontab at batch systemd-run",
        "this is not for agents": (
            "mkfs fdisk parted mount umount wipefs diskutil useradd usermod passwd chsh visudo "
            "iptables insmod"
        ),
        "agents do not start agents": "claude codex gemini",
        "git hooks are not for agents to change": "husky lefthook",
    }
)

# Programs that always reach outward.
ASKED = _reasons(
    {
        "it reaches another machine": "ssh scp sftp mosh telnet ftp lftp nc ncat socat",
        "it sends mail": "mail mailx sendmail mutt",
        "it deploys": (
            "ansible ansible-playbook cap kamal heroku railway vercel sls serverless netlify fly "
            "flyctl eb doctl"
        ),
        "it publishes": "semantic-release release-it np",
        "it deletes a database": "dropdb dropuser",
        "what it runs cannot be seen": (
            "screen tmux script expect unshare nsenter chroot daemonize start-stop-daemon ssh-agent entr "
            "vi vim nvim emacs ed ex"
        ),
        "it changes the machine": (
            "apt apt-get dnf yum apk pacman brew snap port systemctl service launchctl osascript"
        ),
    }
)

# Subcommands that publish, deploy or destroy: among the first two words after the program.
ASKED_WORDS = {
    program: frozenset(words.split())
    for program, words in {
        "npm": "publish unpublish deprecate dist-tag owner access token login adduser config team org link",
        "pnpm": "publish login config",
        "yarn": "publish login global config",
        "bun": "publish",
        "pip": "config uninstall",
        "pip3": "config uninstall",
        "twine": "upload register",
        "poetry": "publish config",
        "cargo": "publish login logout yank owner",
        "gem": "push yank owner signin",
        "mvn": "deploy release:perform",
        "docker": "push login system volume rmi",
        "podman": "push login system volume rmi",
        "helm": "push install upgrade uninstall delete rollback",
        "pulumi": "up destroy import cancel stack",
        "terraform": "apply destroy import taint untaint state workspace login",
        "tofu": "apply destroy import taint untaint state workspace login",
        "cdk": "deploy destroy bootstrap",
        "sam": "deploy delete sync",
        "wrangler": "deploy publish secret delete",
        "mix": "hex.publish hex.user",
        "rails": "db:drop db:reset",
        "rake": "db:drop db:reset",
        "prisma": "reset",
        "setup.py": "upload register",
    }.items()
}
OUTWARD = frozenset({"publish", "deploy", "release", "unpublish", "push"})
# Programs whose subcommands (or scripts, or targets) mean what they say.
TALKATIVE = frozenset(
    {
        *(
            "npm",
            "pnpm",
            "yarn",
            "bun",
            "make",
            "gmake",
            "just",
            "task",
            "gradle",
            "gradlew",
            "uv",
            "hatch",
            "flit",
        ),
        *(
            "pdm",
            "rye",
            "poetry",
            "lerna",
            "changeset",
            "goreleaser",
            "firebase",
            "nuget",
            "dotnet",
            "fastlane",
        ),
        *("rake", "mvnw", "sbt", "mage", "nx", "turbo", "docker", "podman", "cargo"),
    }
)
# Programs of which only these subcommands are harmless; every other is asked about.
READING_WORDS = {
    program: frozenset(words.split())
    for program, words in {
        "kubectl": "get describe logs version explain api-resources api-versions top cluster-info diff help",
        "gh": "status search version help",
        "glab": "version help",
        "hub": "version help",
        "aws": "help",
        "gcloud": "help version info",
        "az": "help version",
        "gsutil": "ls help version",
        "s3cmd": "ls",
    }.items()
}
READING_VERBS = (
    *("list", "view", "show", "describe", "get", "ls", "status", "diff", "checks", "head", "logs", "help"),
)

SQL_CLIENTS = frozenset({"psql", "mysql", "mariadb", "mongosh", "mongo", "redis-cli", "sqlcmd", "cqlsh"})

# Programs that only read (as long as nothing is redirected); their words may name anything.
READERS = frozenset(
    {
        *(
            "cat",
            "head",
            "tail",
            "less",
            "more",
            "wc",
            "grep",
            "egrep",
            "fgrep",
            "rg",
            "ag",
            "ls",
            "stat",
            "file",
        ),
        *(
            "diff",
            "cmp",
            "comm",
            "du",
            "df",
            "tree",
            "jq",
            "cut",
            "tr",
            "nl",
            "od",
            "xxd",
            "hexdump",
            "strings",
        ),
        *("md5sum", "sha1sum", "sha256sum", "shasum", "cksum", "basename", "dirname", "realpath", "readlink"),
        *(
            "pwd",
            "cd",
            "pushd",
            "popd",
            "test",
            "[",
            "[[",
            "echo",
            "printf",
            "true",
            "false",
            ":",
            "date",
            "uname",
        ),
        *(
            "whoami",
            "id",
            "which",
            "type",
            "hash",
            "seq",
            "sleep",
            "wait",
            "expr",
            "column",
            "fold",
            "tac",
            "rev",
        ),
        *(
            "ps",
            "pgrep",
            "lsof",
            "env",
            "printenv",
            "exit",
            "return",
            "break",
            "continue",
            "shift",
            "read",
            "set",
        ),
        *("paste", "join", "uniq", "sort", "hostname", "nproc", "uptime", "man", "help", "bat", "fd", "git"),
    }
)
TALKERS = frozenset({"echo", "printf", ":", "true", "false", "test", "[", "[[", "exit", "return", "sleep"})
# Their first word that is no option is a pattern or a program text.
PATTERN_FIRST = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "jq", "sed", "awk", "gawk", "fd", "tr"})

# Programs that write, replace or delete what their words name: all of them, or the last.
WRITES_ALL = frozenset(
    {
        *("rm", "rmdir", "unlink", "shred", "mv", "touch", "mkdir", "truncate", "chmod", "chown", "chgrp"),
        *("tee", "ln", "sponge", "mkfifo", "trash", "gunzip", "gzip", "bzip2", "xz"),
    }
)
WRITES_LAST = frozenset({"cp", "install", "rsync", "ditto", "split"})
# Options whose value is written to.
WRITES_VALUE: dict[str, str] = {
    "curl": "-o --output --output-dir -D --dump-header -c --cookie-jar", "wget": "-O --output-document -P -o",
    "tar": "-C --directory -f --file", "unzip": "-d", "sort": "-o --output", "patch": "-d --directory -o",
    "tree": "-o", "cp": "-t --target-directory", "mv": "-t --target-directory", "ln": "-t",
    "gcc": "-o", "cc": "-o",
}  # fmt: skip
EXCLUDING = ("exclude", "ignore", "prune", "not", "skip", "omit", "except")
