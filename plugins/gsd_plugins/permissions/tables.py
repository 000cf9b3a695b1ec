"""The policy as data: names of files and of tools."""

from __future__ import annotations

# Names that no agent may change, wherever they stand in a path.
PROTECTED = frozenset(
    {
        *(".git", "git~1", ".planning", ".gsd", "gsd.toml", ".claude", ".mcp.json", ".claude.json"),
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile"),
        *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc"),
        *(".inputrc", ".envrc", ".gitconfig", ".ssh", ".netrc"),
    }
)

DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full"})

SECRET_NAMES = (
    *(".env", ".env.*", ".netrc", ".pgpass", ".git-credentials", ".pypirc", ".htpasswd"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.keystore"),
)
SHARED_EXAMPLES = frozenset({"example", "sample", "template", "dist", "test", "defaults"})
SECRET_FOLDERS = (
    *(".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker/config.json", ".config/gcloud", ".config/gh"),
    *(".claude.json", ".claude/.credentials.json", ".npmrc", ".cargo/credentials", ".cargo/credentials.toml"),
    *(".m2/settings.xml", ".gem/credentials", ".password-store", ".local/share/keyrings", ".mozilla"),
    *(".config/hub", ".config/op", ".bash_history", ".zsh_history", "library/keychains", ".terraform.d"),
)
SYSTEM_SECRETS = (
    *("/etc/shadow*", "/etc/gshadow*", "/etc/sudoers*", "/etc/ssh/*key", "/proc/*/environ", "/proc/*/mem"),
    *(
        "/run/secrets/*",
        "/var/run/secrets/*",
        "/dev/mem",
        "/dev/kmem",
        "/dev/sd*",
        "/dev/nvme*",
        "/dev/disk*",
    ),
)
SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/etc", "/nix", "/proc", "/sys", "/dev"),
    *("/Library", "/System", "/Applications", "/snap"),
)
LIBRARIES = (
    *(".cache", ".cargo/registry", ".rustup", ".pyenv", ".nvm", ".npm", ".local/lib", ".local/share"),
    *("go/pkg", ".m2/repository", ".gem", ".rbenv", ".sdkman", ".bun", ".deno", ".volta", ".asdf"),
)

READ_TOOLS = frozenset({"Read", "NotebookRead", "Glob", "Grep", "LS"})
WRITE_TOOLS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
QUIET_TOOLS = frozenset(
    {
        *("AskUserQuestion", "StructuredOutput", "TodoWrite", "TodoRead", "WebFetch", "WebSearch"),
        *("ToolSearch", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TaskOutput", "BashOutput"),
        *("Skill", "SlashCommand", "EnterPlanMode", "ExitPlanMode"),
    }
)
SHELL_ENDING_TOOLS = frozenset({"KillShell", "KillBash", "TaskStop"})
AGENT_TOOLS = frozenset({"Task", "Agent"})
