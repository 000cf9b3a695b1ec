"""The policy as data: programs and their subcommands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .lexer import Word


def names(text: str) -> frozenset[str]:
    """Return the names in *text*, a table of names separated by spaces."""
    return frozenset(text.split())


KEYWORDS = names(
    """
    if then else elif fi while until do done esac { } ! coproc
    """
)

# Programs that run the rest of their line as a command: their options that take a value, and the
# number of arguments before that command.
WRAPPERS: dict[str, tuple[str, int]] = {
    "nohup": ("", 0),
    "setsid": ("", 0),
    "time": ("-o -f", 0),
    "command": ("", 0),
    "builtin": ("", 0),
    "exec": ("-a", 0),
    "nice": ("-n --adjustment", 0),
    "ionice": ("-c -n", 0),
    "chrt": ("", 1),
    "timeout": ("-s -k --signal --kill-after", 1),
    "gtimeout": ("-s -k --signal --kill-after", 1),
    "stdbuf": ("-i -o -e", 0),
    "watch": ("-n --interval", 0),
    "unbuffer": ("", 0),
    "caffeinate": ("-t -w", 0),
    "strace": ("-o -e -p -s", 0),
    "flock": ("-w -E", 1),
    "busybox": ("", 0),
    "toybox": ("", 0),
    "xargs": ("-I -n -P -L -d -s -a -E -i --max-args --max-procs --delimiter --arg-file", 0),
    "parallel": ("-j --jobs", 0),
    "cross-env": ("", 0),
    "npx": ("-p --package", 0),
    "bunx": ("", 0),
    "uvx": ("--with --from -p --python", 0),
    "chronic": ("", 0),
    "ltrace": ("-o -e", 0),
    "taskset": ("", 1),
    "uv run": ("--with -p --python --project --directory --group --extra --env-file --package -m", 0),
    "poetry run": ("", 0),
    "pipenv run": ("", 0),
    "pdm run": ("", 0),
    "hatch run": ("", 0),
    "rye run": ("", 0),
    "pnpm exec": ("", 0),
    "pnpm dlx": ("", 0),
    "yarn exec": ("", 0),
    "yarn dlx": ("", 0),
    "bun x": ("", 0),
    "npm exec": ("-p --package", 0),
    "bundle exec": ("", 0),
    "mise exec": ("", 0),
    "pipx run": ("--spec", 0),
}

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "rbash", "mksh"})
INTERPRETERS = names(
    """
    python python3 node perl ruby php deno bun lua tclsh Rscript
    """
)
DOWNLOADERS = frozenset({"curl", "wget", "http", "https", "xh", "aria2c", "fetch", "lynx"})


def _reasons(table: Mapping[str, str]) -> dict[str, str]:
    """Turn a table of reasons and programs into one of programs and reasons."""
    return {program: reason for reason, programs in table.items() for program in programs.split()}


DENIED_PROGRAMS = _reasons(
    {
        "agents may not gain more privileges": "sudo su doas pkexec run0 gosu",
        "end only your own processes, by process id": "pkill killall skill snice xkill",
        "agents may not shut down the machine": "shutdown reboot halt poweroff telinit",
        "nothing may keep running after the step": "crontab at batch systemd-run",
        "agents may not administer the machine": (
            "mkfs fdisk parted mount umount wipefs diskutil useradd usermod passwd chsh visudo "
            "iptables insmod"
        ),
        "agents may not start other agents": "claude codex gemini",
        "agents may not change git hooks": "husky lefthook",
    }
)

# Programs that always have effects outside the project.
ASKED_PROGRAMS = _reasons(
    {
        "it connects to another machine": "ssh scp sftp mosh telnet ftp lftp nc ncat socat",
        "it sends mail": "mail mailx sendmail mutt",
        "it deploys": (
            "ansible ansible-playbook cap kamal heroku railway vercel sls serverless netlify fly "
            "flyctl eb doctl"
        ),
        "it publishes": "semantic-release release-it np",
        "it deletes a database": "dropdb dropuser",
        "what it runs cannot be checked": (
            "screen tmux script expect unshare nsenter chroot daemonize start-stop-daemon ssh-agent entr "
            "vi vim nvim emacs ed ex"
        ),
        "it changes the system": (
            "apt apt-get dnf yum apk pacman brew snap port systemctl service launchctl osascript"
        ),
    }
)

# Subcommands that publish, deploy or destroy: among the first two words after the program.
ASKED_SUBCOMMANDS = {
    program: names(subcommands)
    for program, subcommands in {
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
PUBLISHING_WORDS = frozenset({"publish", "deploy", "release", "unpublish", "push"})
# Programs whose subcommands, scripts or targets are named after what they do.
DESCRIPTIVE_PROGRAMS = names(
    """
    npm pnpm yarn bun make gmake just task gradle gradlew uv hatch flit pdm rye poetry lerna changeset
    goreleaser firebase nuget dotnet fastlane rake mvnw sbt mage nx turbo docker podman cargo
    """
)
# Programs that may run only these subcommands without asking.
HARMLESS_SUBCOMMANDS = {
    program: names(subcommands)
    for program, subcommands in {
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
HARMLESS_VERBS = (
    *("list", "view", "show", "describe", "get", "ls", "status", "diff", "checks", "head", "logs", "help"),
)

SQL_CLIENTS = frozenset({"psql", "mysql", "mariadb", "mongosh", "mongo", "redis-cli", "sqlcmd", "cqlsh"})

# Programs that only read, unless their output is redirected; they may be given any path.
READ_ONLY_PROGRAMS = names(
    """
    cat head tail less more wc grep egrep fgrep rg ag ls stat file diff cmp comm du df tree jq cut tr nl
    od xxd hexdump strings md5sum sha1sum sha256sum shasum cksum basename dirname realpath readlink pwd
    cd pushd popd test [ [[ echo printf true false : date uname whoami id which type hash seq sleep wait
    expr column fold tac rev ps pgrep lsof env printenv exit return break continue shift read set paste
    join uniq sort hostname nproc uptime man help bat fd git
    """
)
PRINTING_PROGRAMS = frozenset(
    {"echo", "printf", ":", "true", "false", "test", "[", "[[", "exit", "return", "sleep"}
)
# Programs whose first argument is a pattern or code, not a path.
PATTERN_FIRST = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "jq", "sed", "awk", "gawk", "fd", "tr"})

# Programs that write, replace or delete what their arguments name: all of them, or the last.
WRITES_ALL_ARGUMENTS = names(
    """
    rm rmdir unlink shred mv touch mkdir truncate chmod chown chgrp tee ln sponge mkfifo trash gunzip
    gzip bzip2 xz
    """
)
WRITES_LAST_ARGUMENT = frozenset({"cp", "install", "rsync", "ditto", "split"})
# Options whose value is a path that is written to.
OUTPUT_OPTIONS: dict[str, str] = {
    "curl": "-o --output --output-dir -D --dump-header -c --cookie-jar",
    "wget": "-O --output-document -P -o",
    "tar": "-C --directory -f --file",
    "unzip": "-d",
    "sort": "-o --output",
    "patch": "-d --directory -o",
    "tree": "-o",
    "cp": "-t --target-directory",
    "mv": "-t --target-directory",
    "ln": "-t",
    "gcc": "-o",
    "cc": "-o",
}
EXCLUDING_OPTIONS = ("exclude", "ignore", "prune", "not", "skip", "omit", "except")


def only_reads(program: str, words: Sequence[Word]) -> bool:
    """Whether *program* changes nothing when it is called with *words*."""
    if program == "sed":
        printing = [word.text for word in words if re.fullmatch(r"[\d,$;p ]+", word.text)]
        return len(words) > 1 and words[0].text == "-n" and bool(printing) and words[1].text == printing[0]
    if program == "find":
        return not any(
            word.text in ("-delete", "-fprint", "-fprintf", "-fls", "-ok", "-okdir") for word in words
        )
    writing = {"sort": ("-o", "--output"), "tree": ("-o",), "rg": ("--pre",), "fd": ("-x", "-X", "--exec")}
    if any(word.text.startswith(writing.get(program, ())) for word in words):
        return False
    return program in READ_ONLY_PROGRAMS and not (
        program == "uniq" and len([w for w in words if w.text[:1] != "-"]) > 1
    )
